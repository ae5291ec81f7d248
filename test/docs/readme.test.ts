import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask } from '../postgres/ask.ts';
import { openDatabases } from '../postgres/databases.ts';
import { installPacked, root, run } from './packed.ts';

const tsc = join(root, 'node_modules/typescript/bin/tsc');

describe('the README', () => {
  let folder: string;
  let readme: string;
  let examples: readonly string[];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-readme-'));
    readme = await readFile(join(root, 'README.md'), 'utf8');
    examples = [...readme.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code as string);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    await installPacked(folder);
  });

  afterAll(() => rm(folder, { recursive: true }));

  test('has five lines that run as they stand, from the packed package, in plain JavaScript', async () => {
    await writeFile(join(folder, 'five.js'), examples[0] as string);
    const { stdout, stderr } = await run(process.execPath, ['five.js'], { cwd: folder });
    expect(stdout).toBe('Hello, world!\n');
    expect(stderr).toBe('');
  });

  test('has an example and a statement for PostgreSQL that do what they say on a real server', async () => {
    const databases = await openDatabases(async () => {});
    const { url } = await databases.take();
    await symlink(join(root, 'node_modules/pg'), join(folder, 'node_modules/pg'));
    const example = examples.find((code) => code.includes('holdfast/postgres')) as string;
    await writeFile(join(folder, 'shared.js'), example.replace(/postgres:\/\/[^']*/, url));
    expect(await run(process.execPath, ['shared.js'], { cwd: folder })).toEqual({ stdout: '', stderr: '' });
    const [, statement = ''] = /^```sql\n(.*?)^```/ms.exec(readme) ?? [];
    await ask(url, statement);
    expect(await ask(url, 'SELECT type, payload FROM holdfast.holdfast_tasks ORDER BY id')).toEqual([
      { type: 'resize', payload: '"a.png"' },
      { type: 'resize', payload: '"a.png"' },
    ]);
    await databases.close();
  });

  test('has examples that strict TypeScript takes as they stand, without types of better-sqlite3 or Node', async () => {
    const files = await Promise.all(
      examples.map(async (code, i) => {
        // Later examples go on from the one before, as a reader does.
        const before = i === 2 ? `${examples[1]}\n` : '';
        await writeFile(join(folder, `example-${i}.mts`), `${before}${code}\nexport {};\n`);
        return `example-${i}.mts`;
      }),
    );
    const options = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--types',
      '',
      '--lib',
      'es2022,dom',
    ];
    const { stdout } = await run(process.execPath, [tsc, ...options, ...files], { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe('');
  });

  test('names commands that package.json has', async () => {
    const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: object };
    const named = [...readme.matchAll(/npm (?:run )?([a-z-]+)/g)].map(([, name]) => name as string);
    expect(named.filter((name) => !['ci', 'i'].includes(name) && !(name in scripts))).toEqual([]);
    expect(named.length).toBeGreaterThan(2);
  });
});
