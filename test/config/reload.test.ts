import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Registry } from '../../src/config/registry.ts';
import { type ConfigWatch, type WatchOptions, watchConfig } from '../../src/config/watch.ts';
import type { InvalidConfigError } from '../../src/errors.ts';

const attempts = (count: number) => `types: { a: { retry: { maxAttempts: ${count} } } }\n`;
const OLD = attempts(2);
const NEW = attempts(3);
const BROKEN = attempts(0);

let folder: string;
let path: string;
let watching: ConfigWatch | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-config-'));
  path = join(folder, 'holdfast.yaml');
  writeFileSync(path, OLD);
});

afterEach(() => {
  watching?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A loaded file under watch, and what is told of it. */
async function watched(options: WatchOptions = {}) {
  const registry = await loadConfig(path);
  const told: (Config | InvalidConfigError)[] = [];
  const waiters: ((value: Config | InvalidConfigError) => void)[] = [];
  const tell = (value: Config | InvalidConfigError) => {
    const waiter = waiters.shift();
    if (waiter) waiter(value);
    else told.push(value);
  };
  watching = watchConfig(path, registry, { quietFor: '10ms', onReload: tell, onRefused: tell, ...options });
  return {
    registry,
    watch: watching,
    /** The next thing that it tells. */
    next: () =>
      new Promise<Config | InvalidConfigError>((resolve) => {
        const first = told.shift();
        if (first) resolve(first);
        else waiters.push(resolve);
      }),
  };
}

function attemptsOf(registry: Registry): number {
  return registry.policyFor({ type: 'a' }).policy.maxAttempts;
}

test.each([
  [{ onReload: 'log' }, /onReload must be a function, got 'log'/],
  [{ onRefused: true }, /onRefused must be a function, got true/],
  [{ log: console.log }, /no function `debug`/],
])('watchConfig refuses %o', async (options, answer) => {
  const registry = await loadConfig(path);
  expect(() => watchConfig(path, registry, options as unknown as WatchOptions)).toThrow(answer);
});

describe('a file under watch', () => {
  test('that is refused is told of by a warning of the process, where nobody else listens', async () => {
    const registry = await loadConfig(path);
    watching = watchConfig(path, registry, { quietFor: '10ms' });
    const warned = once(process, 'warning');
    writeFileSync(path, 'types: { a: { retry: { maxAttempts: none } } }');
    await watching.reload();
    expect((await warned)[0]).toMatchObject({
      name: 'HoldfastWarning',
      message: expect.stringContaining('The file is not used.'),
    });
  });

  test('is read anew when it is written', async () => {
    const { registry, next } = await watched();
    writeFileSync(path, NEW);
    await next();
    expect(attemptsOf(registry)).toBe(3);
  });

  test('is followed when another is renamed onto it, time and again', async () => {
    const { registry, next } = await watched();
    for (const count of [3, 4, 5]) {
      writeFileSync(join(folder, 'holdfast.yaml.tmp'), attempts(count));
      renameSync(join(folder, 'holdfast.yaml.tmp'), path);
      await next();
      expect(attemptsOf(registry)).toBe(count);
    }
  });

  test('is followed when a link to its folder leads elsewhere', async () => {
    for (const [name, text] of [
      ['one', OLD],
      ['two', NEW],
    ] as const) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'holdfast.yaml'), text);
    }
    rmSync(path);
    symlinkSync('one', join(folder, 'current'));
    symlinkSync(join('current', 'holdfast.yaml'), path);
    const { registry, next } = await watched();
    symlinkSync('two', join(folder, 'tomorrow'));
    renameSync(join(folder, 'tomorrow'), join(folder, 'current'));
    await next();
    expect(attemptsOf(registry)).toBe(3);
  });

  test('leaves everything as it was where it is refused, until it is mended', async () => {
    const { registry, next } = await watched();
    writeFileSync(path, BROKEN);
    expect(await next()).toMatchObject({ code: 'invalid_config', problems: [{ line: 1 }] });
    expect(attemptsOf(registry)).toBe(2);
    expect(registry.rejected?.message).toContain('is refused: 1 error');
    writeFileSync(path, NEW);
    await next();
    expect(attemptsOf(registry)).toBe(3);
    expect(registry.rejected).toBeUndefined();
  });

  test('leaves everything as it was where it is gone or empty', async () => {
    const { registry, next } = await watched();
    rmSync(path);
    expect(await next()).toMatchObject({ problems: [{ message: 'There is no such file.' }] });
    writeFileSync(path, '');
    expect(await next()).toMatchObject({ problems: [{ message: 'The file is empty.' }] });
    expect(attemptsOf(registry)).toBe(2);
  });

  test('is looked at now and then, where the system tells nothing', async () => {
    const { registry, next } = await watched({ quietFor: '1h', lookEvery: '10ms' });
    writeFileSync(path, NEW);
    await next();
    expect(attemptsOf(registry)).toBe(3);
  });

  test('that changed after it was loaded is read at once', async () => {
    const registry = await loadConfig(path);
    writeFileSync(path, NEW);
    await new Promise<void>((resolve) => {
      watching = watchConfig(path, registry, { onReload: () => resolve() });
    });
    expect(attemptsOf(registry)).toBe(3);
  });

  test('is read when it is asked for, changed or not', async () => {
    const { registry, watch } = await watched({ quietFor: '1h', lookEvery: '1h' });
    expect(await watch.reload()).toBe(true);
    writeFileSync(path, BROKEN);
    expect(await watch.reload()).toBe(false);
    expect(attemptsOf(registry)).toBe(2);
  });

  test('tells a log what came into force, what was refused, and what goes unused', async () => {
    const lines: string[] = [];
    const hear = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`);
    const log = { debug: hear('debug'), info: hear('info'), warn: hear('warn'), error: hear('error') };
    const { watch } = await watched({ quietFor: '1h', lookEvery: '1h', log });
    await watch.reload();
    lines.length = 0;
    writeFileSync(path, 'types: { a: { retry: { extends: analysis, maxAttempts: 3 } } }');
    await watch.reload();
    writeFileSync(path, BROKEN);
    await watch.reload();
    expect(lines).toEqual([
      'info The configuration is now in use',
      expect.stringContaining('warn The delay 1h is never used'),
      'error The configuration is invalid; the last valid one stays in use',
    ]);
  });

  test('is left alone once it is closed', async () => {
    const { registry, watch } = await watched();
    watch.close();
    writeFileSync(path, NEW);
    expect(await watch.reload()).toBe(false);
    expect(attemptsOf(registry)).toBe(2);
  });
});

describe('a file that cannot be read', () => {
  test('is refused by name', async () => {
    const missing = join(folder, 'holdfst.yaml');
    await expect(loadConfig(missing)).rejects.toMatchObject({
      code: 'invalid_config',
      file: missing,
      problems: [{ message: 'There is no such file.' }],
    });
    await expect(loadConfig(folder)).rejects.toMatchObject({ code: 'invalid_config' });
  });
});
