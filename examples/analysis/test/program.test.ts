import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));
const run = promisify(execFile);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-analysis-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('the command validate prints each attempt with its verdict, and exits with 0', async () => {
  const { stdout } = await run(process.execPath, [MAIN]);
  expect(stdout.split('\n').filter((line) => /^attempt|^The (?:last|schedule)/.test(line))).toEqual([
    'attempt 1   scheduled   attempts 1   delay 300 s    ok',
    'attempt 2   scheduled   attempts 2   delay 900 s    ok',
    'attempt 3   scheduled   attempts 3   delay 3600 s   ok',
    'attempt 4   dead        attempts 4   delay none     ok',
    'The last failure was ERR_VALIDATION: Position FAKE_POSITION_DOES_NOT_EXIST does not exist.',
    'The schedule is kept.',
  ]);
});

test('the command validate exits with 1 where a file says another schedule', async () => {
  const config = join(folder, 'other.yaml');
  writeFileSync(config, 'types: { analysis: { retry: { backoff: { schedule: [5m, 15m, 30m] } } } }');
  const failed = await run(process.execPath, [MAIN, 'validate', '--config', config]).catch((error) => error);
  expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining('delay should be 3600') });
});

test('what is submitted is worked by another process', async () => {
  const where = ['--url', join(folder, 'analysis.db')];
  const { stdout } = await run(process.execPath, [MAIN, 'submit', 'ACME', 'NONE', ...where]);
  expect(stdout).toBe('ACME is task #1\nNONE is task #2\n');

  const child = spawn(process.execPath, [MAIN, 'work', ...where], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  try {
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      if (lines.push(line) === 2) child.kill('SIGINT');
    }
    expect(lines.toSorted()).toEqual([
      '#1, execution 1: The handler succeeded.',
      expect.stringContaining('#2, execution 1: validation: attempt 1 of 4 failed; next attempt in 5m'),
    ]);
    expect(await ended).toEqual([0, null]);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
});
