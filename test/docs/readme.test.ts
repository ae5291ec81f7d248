import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask } from '../postgres/ask.ts';
import { openDatabases } from '../postgres/databases.ts';
import { installPacked, root, run } from './packed.ts';
import { readPage } from './page.ts';

const tsc = join(root, 'node_modules/typescript/bin/tsc');

const LIBRARIES = ['bullmq', 'pg-boss', 'graphile-worker', 'celery', 'sidekiq'];

describe('the README, and the examples of pages', () => {
  let folder: string;
  const codeOf = async (page: string): Promise<readonly string[]> =>
    [...(await readPage(page)).matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code as string);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-readme-'));
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    await installPacked(folder);
  });

  afterAll(() => rm(folder, { recursive: true }));

  test('has five lines that run as they stand, from the packed package, in plain JavaScript', async () => {
    await writeFile(join(folder, 'five.js'), (await codeOf('README.md'))[0] as string);
    const { stdout, stderr } = await run(process.execPath, ['five.js'], { cwd: folder });
    expect(stdout).toBe('Hello, world!\n');
    expect(stderr).toBe('');
  });

  test('docs/operations/postgres.md has an example that does what it says on a real server', async () => {
    const databases = await openDatabases(async () => {});
    const { url } = await databases.take();
    await symlink(join(root, 'node_modules/pg'), join(folder, 'node_modules/pg'));
    const page = 'docs/operations/postgres.md';
    const [example = ''] = await codeOf(page);
    await writeFile(join(folder, 'shared.js'), example.replace(/postgres:\/\/[^']*/, url));
    expect(await run(process.execPath, ['shared.js'], { cwd: folder })).toEqual({ stdout: '', stderr: '' });
    expect(await ask(url, 'SELECT type, payload FROM holdfast.holdfast_tasks ORDER BY id')).toEqual([
      { type: 'resize', payload: '"a.png"' },
    ]);
    await databases.close();
  });

  test('docs/guides/testing.md and claiming.md have examples that run', async () => {
    await writeFile(join(folder, 'testing.js'), (await codeOf('docs/guides/testing.md')).join('\n'));
    expect(await run(process.execPath, ['testing.js'], { cwd: folder })).toEqual({
      stdout: 'needs_manual\n',
      stderr: '',
    });
    await writeFile(join(folder, 'claiming.js'), (await codeOf('docs/guides/claiming.md')).join('\n'));
    expect(await run(process.execPath, ['claiming.js'], { cwd: folder })).toEqual({ stdout: '', stderr: '' });
  });

  test.each(LIBRARIES)('docs/guides/coming-from/%s.md has our side of the code, and it runs', async (library) => {
    await writeFile(join(folder, `${library}.js`), (await codeOf(`docs/guides/coming-from/${library}.md`)).join('\n'));
    const { stdout, stderr } = await run(process.execPath, [`${library}.js`], { cwd: folder });
    expect({ stdout, stderr }).toEqual({ stdout: 'mail to ada@example.org\n', stderr: '' });
  });

  test('their examples are taken by strict TypeScript as they stand, without types of better-sqlite3 or Node', async () => {
    const pages = [
      'README.md',
      'docs/guides/testing.md',
      'docs/guides/claiming.md',
      'docs/operations/postgres.md',
      ...LIBRARIES.map((name) => `docs/guides/coming-from/${name}.md`),
    ];
    const files = await Promise.all(
      pages.map(async (page, i) => {
        await writeFile(join(folder, `page-${i}.mts`), `${(await codeOf(page)).join('\n')}\nexport {};\n`);
        return `page-${i}.mts`;
      }),
    );
    const options = '--noEmit --strict --module nodenext --target es2022 --lib es2022,dom'.split(' ');
    const { stdout } = await run(process.execPath, [tsc, ...options, '--types', '', ...files], { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe('');
  });

  test('the picture of the README is drawn from what the engine does', async () => {
    const checked = await run(process.execPath, ['scripts/four-failures.mjs', '--check'], { cwd: root });
    expect(checked.stderr).toBe('');
  });
});
