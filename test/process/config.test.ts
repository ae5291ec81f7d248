import { spawn } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';

const retry = (says: string) => `types: { broken: { retry: { jitter: none, ${says} } } }\n`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-config-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Replaces the file as an editor does. */
function edit(file: string, text: string): void {
  writeFileSync(`${file}~`, text);
  renameSync(`${file}~`, file);
}

test('a file that is edited while 100 tasks wait changes the next decision of each, and a refused one changes none', async () => {
  const file = join(folder, 'holdfast.yaml');
  writeFileSync(file, retry('backoff: { fixed: 1h }'));
  const child = spawn(process.execPath, ['test/process/config-driver.mjs', join(folder, 'tasks.db'), file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async () => JSON.parse((await lines.next()).value ?? '{"ended":true}');

    expect(await next()).toEqual({ decided: { 3600000: 100 } });

    edit(file, retry('backoff: { fixed: 2h }'));
    expect(await next()).toEqual({ reloaded: true });
    expect(await next()).toEqual({ decided: { 7200000: 100 } });

    edit(file, retry('maxAttempts: 0'));
    expect(await next()).toMatchObject({ refused: [{ path: 'types.broken.retry.maxAttempts', line: 1, value: '0' }] });
    expect(await next()).toEqual({ decided: { 7200000: 100 } });

    edit(file, retry('maxAttempts: 4, onExhausted: needs_manual'));
    expect(await next()).toEqual({ reloaded: true });
    expect(await next()).toEqual({ decided: { needs_manual: 100 } });

    child.stdin.end();
    expect(await next()).toEqual({ ended: true });
  } finally {
    child.kill('SIGKILL');
  }
});
