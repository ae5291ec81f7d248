import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { installPacked, root, run } from './packed.ts';

describe('the app in examples, with the packed package', () => {
  let folder: string;
  const node = (...args: string[]) => run(process.execPath, args, { cwd: folder });
  /** What a compiler says: nothing, if all is well. */
  const compile = (tsc: string, ...args: string[]) => node(tsc, ...args).catch((error: { stdout: string }) => error);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-app-'));
    const isOwn = (path: string) => !/\/(node_modules|build)$/.test(path);
    await cp(join(root, 'examples/app'), folder, { recursive: true, filter: isOwn });
    await installPacked(folder);
  });

  afterAll(() => rm(folder, { recursive: true }));

  test('compiles in strict mode with TypeScript 7, and so do our declarations', async () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    expect((await node(tsc, '--version')).stdout).toMatch(/^Version 7\./);
    expect((await compile(tsc, '--noEmit', '--skipLibCheck', 'false')).stdout).toBe('');
  });

  test('compiles in strict mode with TypeScript 5.9, does its work in several processes, and passes its own tests', async () => {
    const tsc = 'node_modules/typescript/bin/tsc';
    expect((await node(tsc, '--version')).stdout).toMatch(/^Version 5\.9\./);
    expect((await compile(tsc)).stdout).toBe('');
    const [{ stdout: said }, { stdout: tested }] = await Promise.all([
      node('build/main.js'),
      node('--test', 'build/test/'),
    ]);
    expect(said.split('\n')).toEqual([
      'mail to ada@example.org: Order 1: 1250 cents',
      'the invoice of 1250 cents is sent',
      'the import has begun',
      'the import is cancelled',
      '40 books are indexed, many at once',
      'the cover of Notes is drawn by a child process',
      '',
    ]);
    expect(tested).toMatch(/^# pass 3$/m);
  });
});
