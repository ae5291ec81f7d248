import { createHash, randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { type Child, useFolder, usePrograms } from './children.ts';

const { run, runIn, command } = usePrograms();
const folder = useFolder();

const isRoot = process.getuid?.() === 0;

/** Runs it as somebody whom permissions bind: root without the capabilities by which root passes them by. */
function runBound(mode: string, path: string, options = {}): Child {
  const started = command(mode, path, options);
  if (!isRoot) return runIn(started[0] as string, started.slice(1));
  const dropped = '-dac_override,-dac_read_search,-fowner';
  return runIn('setpriv', ['--bounding-set', dropped, '--inh-caps', dropped, ...started]);
}

/** A sound file with tasks in it. */
async function withTasks(tasks = 20): Promise<string> {
  const path = join(folder(), 'tasks.db');
  await run('enqueue', path, { tasks, input: { how: 'quick', padding: 'x'.repeat(2_000) } }).endsWell();
  return path;
}

/** Everything that the folder holds, and what is in it. */
function contents(): Record<string, string> {
  const files = readdirSync(folder(), { withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ name }) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder(), name)))
        .digest('hex'),
    ]),
  );
}

/** That a program told of an error in our words, and ended by itself. */
async function expectRefusal(child: Child, code: string, text: RegExp): Promise<void> {
  const { error } = await child.says<{ error: { code: string; name: string; message: string } }>({ error: {} });
  expect(error.code).toBe(code);
  expect(error.name).toBe('StoreError');
  expect(error.message).toMatch(text);
  expect(await child.ended).toEqual({ code: 3, signal: null });
  expect(child.said).toHaveLength(1);
}

describe('a database that cannot be written', () => {
  test('because the file is read-only is refused, left as it is, and works again once it is writable', async () => {
    const path = await withTasks();
    await chmod(path, 0o444);
    const before = contents();

    for (const mode of ['open', 'enqueue', 'worker']) {
      await expectRefusal(runBound(mode, path, { tasks: 1 }), 'store_read_only', /read-only for this user/);
    }
    expect(contents()).toEqual(before);

    await chmod(path, 0o644);
    const child = runBound('enqueue', path, { tasks: 1, input: null });
    await child.endsWell();
    expect(child.said).toContainEqual({ acknowledged: [21] });
  });

  test('because its folder is read-only is refused, left as it is, and works again once that is writable', async () => {
    const path = await withTasks();
    const before = contents();
    await chmod(folder(), 0o555);

    await expectRefusal(runBound('open', path), 'store_read_only', /its folder/);
    await expectRefusal(runBound('open', join(folder(), 'new.db')), 'store_read_only', /must not make files in/);
    expect(contents()).toEqual(before);

    await chmod(folder(), 0o755);
    await runBound('open', path).endsWell();
  });

  test('because its folder may not be entered is refused', async () => {
    const inner = join(folder(), 'inner');
    mkdirSync(inner);
    await chmod(inner, 0o000);

    await expectRefusal(runBound('open', join(inner, 'tasks.db')), 'store_unavailable', /this user must not open it/);
    await chmod(inner, 0o755);
  });

  test('because its file system is read-only is refused', async () => {
    const path = await withTasks();
    const [node, ...args] = command('open', path);
    const script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"';
    const child = inOwnMounts(script, [folder(), node as string, ...args]);

    await expectRefusal(child, 'store_read_only', /its file system is read-only/);
    await run('open', path).endsWell();
  });
});

/** Runs a shell script, with arguments, where it may mount what it likes. */
function inOwnMounts(script: string, args: readonly string[]): Child {
  return runIn('unshare', [isRoot ? '-m' : '-Urm', 'sh', '-ec', script, 'sh', ...args]);
}

describe('a database that is not there', () => {
  test('is refused where its folder is missing, and nothing is made', async () => {
    const child = run('open', join(folder(), 'missing', 'tasks.db'));
    await expectRefusal(child, 'store_unavailable', /missing\/tasks\.db cannot be opened: its folder does not exist/);
    expect(readdirSync(folder())).toEqual([]);
  });

  test('is refused where its path is a folder', async () => {
    await expectRefusal(run('open', folder()), 'store_unavailable', /it is a folder itself/);
    expect(readdirSync(folder())).toEqual([]);
  });

  test('is made where its folder is there, and from an empty file', async () => {
    const path = join(folder(), 'tasks.db');
    await run('open', path).endsWell();
    const empty = join(folder(), 'empty.db');
    writeFileSync(empty, '');
    await run('open', empty).endsWell();
    expect(readdirSync(folder()).sort()).toEqual(['empty.db', 'tasks.db']);
  });
});

describe('a database that is damaged is refused, and left as it is', () => {
  const damages: readonly [string, (path: string) => void][] = [
    ['random bytes', (path) => writeFileSync(path, randomBytes(100_000))],
    ['a text', (path) => writeFileSync(path, 'dear diary\n')],
    ['a long text', (path) => writeFileSync(path, 'dear diary\n'.repeat(10_000))],
    ['cut within its header', (path) => truncateSync(path, 50)],
    ['cut within a page', (path) => truncateSync(path, 9_000)],
    ['cut after some pages', (path) => truncateSync(path, 4_096 * 5)],
    ['with a first page of noise', (path) => overwrite(path, 0, randomBytes(4_096))],
    ['with a schema of noise', (path) => overwrite(path, 100, randomBytes(3_900))],
  ];

  test.each(damages)('%s', async (_, damage) => {
    const path = await withTasks();
    damage(path);
    const before = contents();

    await expectRefusal(
      run('open', path),
      'store_corrupt',
      /is damaged, or is not an SQLite database.*Restore a backup/,
    );
    await expectRefusal(
      run('enqueue', path, { tasks: 1 }),
      'store_corrupt',
      /is damaged, or is not an SQLite database/,
    );

    expect(contents()).toEqual(before);
  });

  test('one page of many flipped: whoever comes upon it is told, and the check finds it', async () => {
    const path = await withTasks(500);
    const pages = readFileSync(path).length / 4_096;
    // The pages of the wide rows are the many in the middle.
    for (let page = 40; page < pages - 10; page++) overwrite(path, page * 4_096, Buffer.alloc(4_096, 0xa5));

    const child = run('read', path);

    expect(await child.ended).toEqual({ code: 3, signal: null });
    expect(child.said.at(-1)).toMatchObject({ error: { name: 'StoreError', code: 'store_corrupt' } });
  });
});

function overwrite(path: string, at: number, bytes: Buffer): void {
  const content = readFileSync(path);
  bytes.copy(content, at);
  writeFileSync(path, content);
}

test('a database that a newer version wrote is refused, and left as it is', async () => {
  const path = await withTasks();
  const database = new Database(path);
  database.exec('UPDATE hf_schema SET version = 99, least_writer = 99');
  database.close();
  const before = contents();

  const text =
    /written by a newer Holdfast \(schema 99\); this one knows schema \d+\. Nothing was changed\. Update holdfast/;
  for (const mode of ['open', 'enqueue', 'worker']) {
    await expectRefusal(run(mode, path, { tasks: 1 }), 'store_too_new', text);
  }

  expect(contents()).toEqual(before);
});

test('a database that a newer version wrote so that older ones may write it too is taken', async () => {
  const path = await withTasks();
  const database = new Database(path);
  database.exec('UPDATE hf_schema SET version = 99');
  database.close();

  await run('enqueue', path, { tasks: 1, input: null }).endsWell();

  const after = new Database(path, { readonly: true });
  expect(after.prepare('SELECT version FROM hf_schema').get()).toEqual({ version: 99 });
  after.close();
});

/** On a disk of 2 MB, of which a file named `filler` takes a part. */
function onSmallDisk(mode: string, options: object): Child {
  const disk = join(folder(), 'disk');
  mkdirSync(disk);
  const filler = join(disk, 'filler');
  const [node, ...args] = command(mode, join(disk, 'tasks.db'), { ...options, filler });
  const script = 'mount -t tmpfs -o size=2m tmpfs "$1" && head -c 600000 /dev/zero > "$2" && shift 2 && exec "$@"';
  return inOwnMounts(script, [disk, filler, node as string, ...args]);
}

test('a full disk refuses what does not fit, keeps all that was acknowledged, and is written again when there is space', async () => {
  const child = onSmallDisk('fill', {});
  const full = await child.says<{ acknowledged: number; retryable: boolean }>({ error: { code: 'store_full' } });

  expect(full).toMatchObject({
    retryable: true,
    error: { message: expect.stringMatching(/no space left.*rolled back/) },
  });
  expect(full.acknowledged).toBeGreaterThan(5);
  expect(await child.says({ ready: full.acknowledged })).toMatchObject({ broken: [] });
  expect(await child.says({ again: true })).toEqual({ again: true });
  await child.endsWell();
});

test('work that ended on a full disk is not lost and not judged: its outcome is written when there is space', async () => {
  const child = onSmallDisk('workOne', { input: { how: 'fill the disk' } });

  await child.says({ log: 'The outcome could not be written; trying again', code: 'store_full' });
  expect(await child.says({ finished: 'succeeded' })).toMatchObject({ task: { executions: 1, attempts: 0 } });

  await child.endsWell();
});

test('a SQLite library that was not built says how to build it', async () => {
  const home = join(folder(), 'app');
  const modules = join(home, 'node_modules');
  mkdirSync(modules, { recursive: true });
  for (const name of readdirSync('node_modules')) {
    if (name === 'better-sqlite3' || name.startsWith('.')) continue;
    symlinkSync(resolve('node_modules', name), join(modules, name));
  }
  const library = join(modules, 'better-sqlite3');
  mkdirSync(library);
  for (const part of ['package.json', 'lib'])
    cpSync(join('node_modules/better-sqlite3', part), join(library, part), { recursive: true });
  cpSync('dist', join(home, 'dist'), { recursive: true });
  cpSync('package.json', join(home, 'package.json'));
  const dist = `file://${home}/dist/`;
  const text = /better-sqlite3 is not built for this Node.*npm rebuild better-sqlite3/;

  await expectRefusal(run('open', join(folder(), 'tasks.db'), { dist }), 'store_unsupported', text);
  expect(existsSync(join(folder(), 'tasks.db'))).toBe(false);
});
