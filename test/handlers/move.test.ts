import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, renameSync, statSync, writeFileSync } from 'node:fs';
import {
  chmod,
  chown,
  lchown,
  link,
  lstat,
  lutimes,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SIGNAL } from '../../src/failure/signals.ts';
import { type MoveResult, move } from '../../src/handlers/move.ts';
import type { Json } from '../../src/task.ts';

const TASK = 7;

let here: string;
let from: string;
let to: string;
/** What the executions of a test save for one another. */
let checkpoint: Json | undefined;

beforeEach(async () => {
  checkpoint = undefined;
  here = await mkdtemp(join(tmpdir(), 'holdfast-move-'));
  await mkdir(join(here, 'inbox'));
  await mkdir(join(here, 'archive'));
  from = join(here, 'inbox', 'a.txt');
  to = join(here, 'archive', 'b.txt');
});

afterEach(() => rm(here, { recursive: true, force: true }));

describe('on one device', () => {
  test('moves a file: its content, mode and inode are at the new name, and the old name is gone', async () => {
    await writeFile(from, 'hello');
    await chmod(from, 0o640);
    const { ino } = await lstat(from);

    expect(await run()).toEqual({ to, how: 'linked', bytes: 5 });

    expect(await readFile(to, 'utf8')).toBe('hello');
    expect(await lstat(to)).toMatchObject({ ino, nlink: 1, mode: 0o100640 });
    expect(await names()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('moves a folder with all that is in it', async () => {
    await makeFolder(from);

    expect(await run()).toEqual({ to, how: 'folder' });

    expect(await readFile(join(to, 'deep', 'leaf'), 'utf8')).toBe('leaf');
    expect(await lstat(to)).toMatchObject({ mode: 0o040750 });
    expect(await names()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test.each(['nowhere', '../archive', '.'])(
    'moves a symbolic link to %s itself, not what it points to',
    async (text) => {
      await symlink(text, from);

      expect(await run()).toEqual({ to, how: 'linked' });

      expect(await readlink(to)).toBe(text);
      expect(await names()).toEqual({ inbox: [], archive: ['b.txt'] });
    },
  );

  test.each(['a named pipe', 'a socket', 'a device'])('refuses %s for good', async (kind) => {
    const path = kind === 'a device' ? '/dev/null' : from;
    if (kind === 'a named pipe') system('mkfifo', [from]);
    const server = kind === 'a socket' ? createServer().listen(from) : undefined;
    if (server) await once(server, 'listening');

    await expect(run({ from: path })).rejects.toMatchObject({
      message: expect.stringContaining(`'${path}' is ${kind}`),
      [SIGNAL]: { signal: 'permanent', reason: 'fs.special_file' },
    });

    server?.close();
    expect(await names()).toMatchObject({ archive: [] });
  });

  test.each([
    ['inbox/a.txt', '/archive/b.txt'],
    ['/inbox/a.txt', 'b.txt'],
  ])('refuses the relative paths of %s → %s, which mean something else in every process', async (from, to) => {
    await expect(run({ from, to })).rejects.toMatchObject({
      [SIGNAL]: { signal: 'permanent', reason: 'input.invalid' },
    });
  });

  test('does not start when it was aborted before', async () => {
    await writeFile(from, 'hello');
    const reason = new Error('shutdown');
    await expect(run({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(await names()).toEqual({ inbox: ['a.txt'], archive: [] });
  });
});

describe('a destination that is taken', () => {
  const sources = {
    'a file': () => writeFile(from, 'ours'),
    'a folder': () => makeFolder(from),
    'a symbolic link': () => symlink('ours', from),
  };
  const destinations = {
    'a file': () => writeFile(to, 'theirs'),
    'a folder': () => makeFolder(to),
    'an empty folder': () => mkdir(to),
    'a dangling symbolic link': () => symlink('theirs', to),
    'a symbolic link to the source': () => symlink(from, to),
  };
  const pairs = Object.keys(sources).flatMap((source) =>
    Object.keys(destinations).map((destination) => [source, destination] as const),
  );

  test.each(pairs)('is never overwritten: %s onto %s', async (source, destination) => {
    await sources[source as keyof typeof sources]();
    await destinations[destination as keyof typeof destinations]();
    const before = [await snapshot(from), await snapshot(to)];
    const syscall = source === 'a folder' ? 'mkdir' : 'link';

    for (const execution of [1, 2]) {
      await expect(run({ execution })).rejects.toMatchObject({ code: 'EEXIST', syscall });
    }

    expect([await snapshot(from), await snapshot(to)]).toEqual(before);
    expect(await names()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
  });

  test('a private folder with content, which only looks like our half-step, stays', async () => {
    await makeFolder(from);
    await mkdir(to, 0o700);
    await writeFile(join(to, 'theirs'), 'theirs');

    await expect(run({ execution: 2 })).rejects.toMatchObject({ code: 'EEXIST', syscall: 'mkdir' });

    expect(await readdir(to)).toEqual(['theirs']);
    expect(await readdir(from)).toEqual(['deep']);
  });

  test.each(['file', 'folder'])('the same %s under another path is no destination', async (kind) => {
    await (kind === 'file' ? writeFile(from, 'hello') : mkdir(from, 0o700));
    await symlink('inbox', join(here, 'alias'));
    const before = await snapshot(from);

    for (const path of [from, join(here, 'inbox', '.', 'a.txt'), join(here, 'alias', 'a.txt')]) {
      for (const execution of [1, 2]) {
        await expect(run({ to: path, execution })).rejects.toMatchObject({
          [SIGNAL]: { signal: 'permanent', reason: 'fs.same_file' },
        });
      }
    }
    expect(await snapshot(from)).toEqual(before);
  });

  test('the same file under another path is no destination, although it has a third name', async () => {
    await writeFile(from, 'hello');
    await link(from, join(here, 'archive', 'third'));
    await symlink('inbox', join(here, 'alias'));

    await expect(run({ to: join(here, 'alias', 'a.txt') })).rejects.toMatchObject({
      [SIGNAL]: { reason: 'fs.same_file' },
    });
    expect(await names()).toEqual({ inbox: ['a.txt'], archive: ['third'] });
  });

  test('a folder does not move into itself', async () => {
    await makeFolder(from);
    await expect(run({ to: join(from, 'inside') })).rejects.toMatchObject({ code: 'EINVAL', syscall: 'rename' });
    expect(await readdir(from)).toEqual(['deep']);
  });
});

describe('missing things', () => {
  test('a missing source is ENOENT on the first execution, although the destination exists', async () => {
    await writeFile(to, 'theirs');
    await expect(run()).rejects.toMatchObject({ code: 'ENOENT', path: from });
    expect(await readFile(to, 'utf8')).toBe('theirs');
  });

  test('a missing source and a missing destination are ENOENT on any execution', async () => {
    await expect(run({ execution: 3 })).rejects.toMatchObject({ code: 'ENOENT', path: from });
  });

  test.each(['file', 'folder'])('a missing parent of the destination is ENOENT, and the %s stays', async (kind) => {
    await (kind === 'file' ? writeFile(from, 'hello') : makeFolder(from));
    await expect(run({ to: join(here, 'nowhere', 'b') })).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await names()).toMatchObject({ inbox: ['a.txt'] });
  });
});

describe('the next execution finishes a half-step', () => {
  test('linked, but not yet unlinked', async () => {
    await writeFile(from, 'hello');
    await link(from, to);
    expect(await run({ execution: 2 })).toEqual({ to, how: 'linked', bytes: 5 });
    expect(await names()).toEqual({ inbox: [], archive: ['b.txt'] });
    expect(await readFile(to, 'utf8')).toBe('hello');
  });

  test('linked within one folder under a name that differs in case only', async () => {
    to = join(here, 'inbox', 'A.TXT');
    await writeFile(from, 'hello');
    await link(from, to);
    expect(await run({ execution: 2 })).toEqual({ to, how: 'linked', bytes: 5 });
    expect(await names()).toEqual({ inbox: ['A.TXT'], archive: [] });
  });

  test('a symbolic link that was linked, but not yet unlinked', async () => {
    await symlink('nowhere', from);
    await link(from, to);
    expect(await run({ execution: 2 })).toEqual({ to, how: 'linked' });
    expect(await names()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('the place for a folder was made, but the folder not yet renamed', async () => {
    await makeFolder(from);
    const stopped = new Error('killed');
    await expect(
      run({
        beforeSaving: () => {
          throw stopped;
        },
      }),
    ).rejects.toBe(stopped);
    await mkdir(to, 0o700);
    // Nothing says that this task made it, so it is somebody else's.
    await expect(run({ execution: 2 })).rejects.toMatchObject({ code: 'EEXIST', syscall: 'mkdir' });

    await rm(to, { recursive: true });
    const dyingAfterPlace = () => {
      throw stopped;
    };
    await expect(run({ execution: 3, beforeSaving: dyingAfterPlace })).rejects.toBe(stopped);
    await rm(to, { recursive: true });
    await run({ execution: 3 });
    // As if it had been killed before the rename: the same place, and the source where it was.
    renameSync(to, from);
    await mkdir(to, 0o700);
    await expect(run({ execution: 4 })).rejects.toMatchObject({ code: 'EEXIST', syscall: 'mkdir' });
    await rm(to, { recursive: true });
    expect(await run({ execution: 4 })).toEqual({ to, how: 'folder' });
    expect(await readdir(to)).toEqual(['deep']);
    expect(await names()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('everything was done, but its worker did not live to say so', async () => {
    await writeFile(from, 'hello');
    await run();
    expect(await run({ execution: 2 })).toEqual({ to, how: 'already_moved', bytes: 5 });
  });

  test('everything was done, and the file was written to since', async () => {
    await writeFile(from, 'hello');
    await run();
    appendFileSync(to, ' world');
    expect(await run({ execution: 2 })).toEqual({ to, how: 'already_moved', bytes: 11 });
  });

  test('everything was done, and the folder that it came from is gone', async () => {
    await writeFile(from, 'hello');
    await run();
    await rm(dirname(from), { recursive: true });
    expect(await run({ execution: 2 })).toEqual({ to, how: 'already_moved', bytes: 5 });
  });
});

/** What an earlier execution came to, and what it saved, before the source was gone. */
describe('a source that is gone while another file has the name of the destination', () => {
  const devices = ['one device', 'two devices'] as const;
  let elsewhere: SecondDevice;
  beforeAll(async () => {
    elsewhere = await secondDevice();
  });
  afterAll(() => elsewhere?.close());

  const outcomes = {
    'never began': async () => {},
    'found no source': async () => {
      await expect(run()).rejects.toMatchObject({ code: 'ENOENT' });
    },
    'found the destination taken': async () => {
      await writeFile(from, 'ours');
      await writeFile(to, 'first');
      await expect(run()).rejects.toMatchObject({ code: 'EEXIST' });
      await rm(to);
    },
    'was stopped before it saved anything': async () => {
      await writeFile(from, 'ours');
      const stopped = new Error('killed');
      const beforeSaving = () => {
        throw stopped;
      };
      await expect(run({ beforeSaving })).rejects.toBe(stopped);
    },
    'was refused by the system': async () => {
      await writeFile(from, 'ours');
      await expect(run({ to: join(here, 'nowhere', 'b') })).rejects.toMatchObject({ code: 'ENOENT' });
    },
  };

  describe.each(devices)('%s', (device) => {
    beforeEach(() => {
      if (device === 'two devices') to = join(elsewhere.path, `b-${basename(here)}`);
    });
    afterEach(() => rm(to, { force: true }));

    test.each(Object.keys(outcomes) as (keyof typeof outcomes)[])(
      'is missing: the execution before %s',
      async (what) => {
        await outcomes[what]();
        await rm(from, { force: true });
        await writeFile(to, 'theirs');
        for (const execution of [2, 3]) {
          await expect(run({ execution })).rejects.toMatchObject({ code: 'ENOENT', path: from });
        }
        expect(await readFile(to, 'utf8')).toBe('theirs');
      },
    );
  });

  test('is missing, although the other file got the number of its inode', async () => {
    await writeFile(from, 'ours');
    await expect(run({ to: join(here, 'nowhere', 'b') })).rejects.toMatchObject({ code: 'ENOENT' });
    const { ino } = await lstat(from);
    await rm(from);
    for (let n = 0; !existsSync(to) && n < 1_000; n += 1) {
      const path = join(here, `${n}`);
      await writeFile(path, 'theirs');
      if ((await lstat(path)).ino === ino) renameSync(path, to);
    }
    // File systems that never give a number out again leave nothing to test.
    if (!existsSync(to)) return;
    await expect(run({ execution: 2 })).rejects.toMatchObject({ code: 'ENOENT', path: from });
  });
});

describe('across devices', () => {
  let elsewhere: SecondDevice;
  beforeAll(async () => {
    elsewhere = await secondDevice();
  });
  afterAll(() => elsewhere?.close());
  beforeEach(async () => {
    await rm(join(elsewhere.path, 'archive'), { recursive: true, force: true });
    await mkdir(join(elsewhere.path, 'archive'));
    to = join(elsewhere.path, 'archive', 'b.txt');
  });

  const content = Buffer.from('holdfast '.repeat(40_000));
  const temporary = (execution: number) => join(dirname(to), `.b.txt.holdfast-${TASK}-${execution}`);
  const left = async () => ({ inbox: await readdir(dirname(from)), archive: await readdir(dirname(to)) });

  test('copies a file with its mode, times and owner, and leaves nothing else', async () => {
    await writeFile(from, content);
    await chown(from, 1234, 4321);
    await chmod(from, 0o4751);
    await utimes(from, 1_000_000_000, 1_234_567_890.123);
    let heartbeats = 0;

    const result = await run({ heartbeat: () => (heartbeats += 1) });

    expect(result).toEqual({ to, how: 'copied', bytes: content.length });
    expect((await readFile(to)).equals(content)).toBe(true);
    const stats = await lstat(to);
    expect(stats).toMatchObject({ mode: 0o104751, uid: 1234, gid: 4321, nlink: 1 });
    expect(stats.mtimeMs).toBeCloseTo(1_234_567_890_123, 0);
    expect(heartbeats).toBeGreaterThanOrEqual(6);
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('copies an empty file', async () => {
    await writeFile(from, '');
    expect(await run()).toEqual({ to, how: 'copied', bytes: 0 });
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('makes a symbolic link anew, with the same text', async () => {
    await symlink('../nowhere', from);
    expect(await run()).toEqual({ to, how: 'copied' });
    expect(await readlink(to)).toBe('../nowhere');
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('keeps the times and owner of a symbolic link', async () => {
    await symlink('../nowhere', from);
    await lchown(from, 1234, 4321);
    await lutimes(from, 1_000_000_000, 1_000_000_000);
    expect(await run()).toEqual({ to, how: 'copied' });
    expect(await lstat(to)).toMatchObject({ uid: 1234, gid: 4321, mtimeMs: 1_000_000_000_000, nlink: 1 });
  });

  test('finishes a symbolic link that it made, while its source still stands', async () => {
    await symlink('../nowhere', from);
    await run();
    // As if it had been killed before the old name was removed.
    await symlink('../nowhere', from);
    expect(await run({ execution: 2 })).toEqual({ to, how: 'copied' });
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('the same symbolic link that somebody else made there is not ours', async () => {
    await symlink('../nowhere', from);
    await symlink('../nowhere', to);
    for (const execution of [1, 2]) {
      await expect(run({ execution })).rejects.toMatchObject({ code: 'EEXIST', syscall: 'link' });
    }
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
  });

  test('says that all was done, where its worker did not live to say so', async () => {
    await writeFile(from, content);
    await run();
    expect(await run({ execution: 2 })).toEqual({ to, how: 'already_moved', bytes: content.length });
  });

  test.each(['with Perl', 'without'])('keeps holes, %s', async (perl) => {
    const size = perl === 'without' ? 8_000_000 : 3_000_000_000;
    const file = await open(from, 'w');
    await file.write('first', 0);
    await file.write('last', size - 4);
    await file.truncate(size + 3_000_000);
    await file.close();
    const used = (await lstat(from)).blocks;
    const path = process.env.PATH;
    if (perl === 'without') process.env.PATH = '/nowhere';
    try {
      expect(await run()).toMatchObject({ how: 'copied', bytes: size + 3_000_000 });
    } finally {
      process.env.PATH = path;
    }
    const moved = await open(to);
    const read = async (at: number, length: number) => {
      const { buffer } = await moved.read(Buffer.alloc(length), 0, length, at);
      return buffer.toString();
    };
    expect([await read(0, 6), await read(size - 5, 5)]).toEqual(['first\0', '\0last']);
    await moved.close();
    expect((await lstat(to)).blocks).toBeLessThanOrEqual(used + 16);
  });

  test('keeps extended attributes, an ACL, and times to the nanosecond from before 1970', async () => {
    await writeFile(from, content);
    system('setfattr', ['-n', 'user.origin', '-v', 'camera', from]);
    system('setfacl', ['-m', 'u:1234:r', from]);
    system('touch', ['-d', '1960-02-03 04:05:06.123456789 UTC', from]);
    const acl = system('getfacl', ['-cn', from]);
    const { mtimeNs } = await lstat(from, { bigint: true });
    expect(await run()).toEqual({ to, how: 'copied', bytes: content.length });
    expect(system('getfattr', ['--absolute-names', '--only-values', '-n', 'user.origin', to])).toBe('camera');
    expect(system('getfacl', ['-cn', to])).toBe(acl);
    expect([mtimeNs % 1_000n, (await lstat(to, { bigint: true })).mtimeNs]).toEqual([-211n, mtimeNs]);
  });

  test('asks a person about a folder, and leaves no empty one behind', async () => {
    await makeFolder(from);
    await expect(run()).rejects.toMatchObject({
      message: expect.stringContaining('cp -a'),
      [SIGNAL]: { signal: 'needs_manual', reason: 'fs.cross_device_folder' },
    });
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: [] });
    expect(await readdir(from)).toEqual(['deep']);
  });

  test('does not overwrite a file that exists', async () => {
    await writeFile(from, content);
    await writeFile(to, 'theirs');
    await expect(run()).rejects.toMatchObject({ code: 'EEXIST', syscall: 'link' });
    expect(await readFile(to, 'utf8')).toBe('theirs');
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
  });

  test('does not overwrite a file that appears while it copies', async () => {
    await writeFile(from, content);
    const heartbeat = onceOnly(() => writeFileSync(to, 'theirs'));
    await expect(run({ heartbeat })).rejects.toMatchObject({ code: 'EEXIST', syscall: 'link', dest: to });
    expect(await readFile(to, 'utf8')).toBe('theirs');
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
  });

  const changes = {
    'is appended to': () => appendFileSync(from, 'more'),
    'is rewritten with the same size': () => writeFileSync(from, Buffer.alloc(content.length, 'x')),
    'is replaced by another file': () => {
      writeFileSync(`${from}.new`, content);
      renameSync(`${from}.new`, from);
    },
    'is cut': () => writeFileSync(from, 'short'),
  };
  test.each(Object.keys(changes) as (keyof typeof changes)[])(
    'keeps a source that %s while it is copied, and tries again later',
    async (change) => {
      await writeFile(from, content);
      await utimes(from, 1, 1);
      const heartbeat = onceOnly(changes[change]);

      await expect(run({ heartbeat })).rejects.toMatchObject({
        [SIGNAL]: { signal: 'failed', kind: 'transient', reason: 'fs.changed' },
      });

      expect(await left()).toEqual({ inbox: ['a.txt'], archive: [] });
      expect(await run({ execution: 2 })).toMatchObject({ how: 'copied' });
    },
  );

  test('does not follow a source that grows as fast as it is read', async () => {
    await writeFile(from, content);
    let heartbeats = 0;
    const heartbeat = () => {
      heartbeats += 1;
      if (heartbeats < 100) appendFileSync(from, content);
    };
    await expect(run({ heartbeat })).rejects.toMatchObject({ [SIGNAL]: { reason: 'fs.changed' } });
    expect(heartbeats).toBeLessThan(10);
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: [] });
  });

  test('never believes a copy that does not read back as it was written', async () => {
    await writeFile(from, content);
    let heartbeats = 0;
    const heartbeat = () => {
      heartbeats += 1;
      if (heartbeats === 2) writeFileSync(temporary(1), 'bit rot', { flag: 'r+' });
    };
    await expect(run({ heartbeat })).rejects.toMatchObject({
      [SIGNAL]: { signal: 'failed', kind: 'transient', reason: 'fs.copy_differs' },
    });
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: [] });
  });

  test('stops between two chunks when it is aborted, and the source stays whole', async () => {
    await writeFile(from, content);
    const abort = new AbortController();
    const reason = new Error('the lease was lost');
    let heartbeats = 0;
    const heartbeat = () => {
      heartbeats += 1;
      abort.abort(reason);
    };
    await expect(run({ signal: abort.signal, heartbeat })).rejects.toBe(reason);
    expect(heartbeats).toBe(1);
    expect((await readFile(from)).equals(content)).toBe(true);
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: [] });
  });

  test('writes a name of 255 bytes, and keeps its temporary within what a name may have', async () => {
    to = join(dirname(to), `${'ü'.repeat(127)}x`);
    await writeFile(from, content);
    expect(await run()).toMatchObject({ how: 'copied' });
    expect((await readFile(to)).equals(content)).toBe(true);
  });

  test('an unfinished temporary of an earlier execution is replaced', async () => {
    await writeFile(from, content);
    await writeFile(temporary(1), content.subarray(0, 1000));
    await writeFile(temporary(2), '');
    await link(temporary(2), `${temporary(2)}.link`);
    expect(await run({ execution: 3 })).toEqual({ to, how: 'copied', bytes: content.length });
    expect((await readFile(to)).equals(content)).toBe(true);
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('a symbolic link in the place of a temporary is never written through', async () => {
    await writeFile(from, content);
    const victim = join(here, 'victim');
    await writeFile(victim, 'precious');
    for (const execution of [1, 2]) await symlink(victim, temporary(execution));

    await expect(run({ execution: 2 })).rejects.toMatchObject({
      [SIGNAL]: { signal: 'failed', kind: 'transient', reason: 'fs.temporary_exists' },
    });
    expect(await run({ execution: 3 })).toMatchObject({ how: 'copied' });
    expect(await readFile(victim, 'utf8')).toBe('precious');
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('a copy that became the destination is finished once it was compared', async () => {
    await writeFile(from, content);
    await writeFile(temporary(1), content);
    await link(temporary(1), to);
    let heartbeats = 0;
    expect(await run({ execution: 2, heartbeat: () => (heartbeats += 1) })).toEqual({
      to,
      how: 'copied',
      bytes: content.length,
    });
    expect(heartbeats).toBeGreaterThanOrEqual(6);
    expect((await readFile(to)).equals(content)).toBe(true);
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('a copy that became the destination, but no longer is what the source says, needs a person', async () => {
    await writeFile(from, Buffer.concat([content.subarray(1), Buffer.from('!')]));
    await writeFile(temporary(1), content);
    await link(temporary(1), to);
    for (const execution of [2, 3]) {
      await expect(run({ execution })).rejects.toMatchObject({ code: 'EEXIST', syscall: 'link' });
    }
    expect((await readFile(to)).equals(content)).toBe(true);
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
  });

  test('a copy whose source was removed leaves only its temporary to clear away', async () => {
    await writeFile(temporary(1), content);
    await link(temporary(1), to);
    expect(await run({ execution: 2 })).toEqual({ to, how: 'already_moved', bytes: content.length });
    expect(await left()).toEqual({ inbox: [], archive: ['b.txt'] });
  });

  test('a temporary is kept when nothing else is left of the file', async () => {
    await writeFile(temporary(1), content);
    await expect(run({ execution: 2 })).rejects.toMatchObject({ code: 'ENOENT', path: from });
    expect(await left()).toEqual({ inbox: [], archive: ['.b.txt.holdfast-7-1'] });
  });

  test('the same content that somebody else put there is not ours', async () => {
    await writeFile(from, content);
    await writeFile(to, content);
    await expect(run({ execution: 2 })).rejects.toMatchObject({ code: 'EEXIST', syscall: 'link' });
    expect(await left()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
  });

  test('never overwrites what a racing writer creates', { timeout: 60_000 }, async () => {
    await race('file', dirname(from), dirname(to), 100);
  });

  // In memory, where a sync costs nothing.
  test.each(['file', 'folder'] as const)(
    'a %s within one device never overwrites it either',
    { timeout: 60_000 },
    async (kind) => {
      await race(kind, await mkdtemp(join(elsewhere.path, 'inbox-')), dirname(to));
    },
  );
});

describe('where the system refuses', () => {
  let built: Built;
  beforeAll(async () => {
    if (process.getuid?.() !== 0) throw new Error('These tests mount file systems and change users: run them as root.');
    built = await build();
  });
  afterAll(() => rm(built?.folder ?? '', { recursive: true, force: true }));

  describe('another user', () => {
    const NOBODY = 65534;
    beforeEach(async () => {
      await chmod(here, 0o755);
      await chmod(dirname(from), 0o777);
      await chmod(dirname(to), 0o777);
      await writeFile(from, 'hello');
      await chown(from, NOBODY, NOBODY);
    });
    const runAsNobody = async (execution = 1) => {
      const { stdout } = await promisify(execFile)(process.execPath, driving(execution), { uid: NOBODY, gid: NOBODY });
      return JSON.parse(stdout);
    };
    const driving = (execution: number) => [built.driver, from, to, String(execution), built.module];

    test('moves its own file', async () => {
      expect(await runAsNobody()).toEqual({ result: { to, how: 'linked', bytes: 5 } });
    });

    test('moves a file into a folder that it may write to but not list', async () => {
      await chmod(dirname(to), 0o333);
      expect(await runAsNobody()).toEqual({ result: { to, how: 'linked', bytes: 5 } });
    });

    test('gets EACCES from link where it may not write, and nothing happens', async () => {
      await chmod(dirname(to), 0o755);
      expect(await runAsNobody()).toMatchObject({
        error: { code: 'EACCES', syscall: 'link', path: from, dest: to },
      });
      expect(await names()).toEqual({ inbox: ['a.txt'], archive: [] });
    });

    test('gets EACCES from unlink where it may not remove, and the new name is taken back', async () => {
      await chmod(dirname(from), 0o755);
      for (const execution of [1, 2]) {
        expect(await runAsNobody(execution)).toMatchObject({
          error: { code: 'EACCES', syscall: 'unlink', path: from },
        });
        expect(await names()).toEqual({ inbox: ['a.txt'], archive: [] });
      }
    });

    test('a link that it found, and did not make, is not taken back', async () => {
      await chmod(dirname(from), 0o755);
      await link(from, to);
      expect(await runAsNobody()).toMatchObject({ error: { code: 'EACCES', syscall: 'unlink' } });
      expect(await names()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
    });

    test("gets EPERM from a sticky folder for somebody else's file, and is not told that hard links are missing", async () => {
      await chmod(dirname(from), 0o1777);
      await chown(from, 0, 0);
      await chmod(from, 0o666);
      expect(await runAsNobody()).toMatchObject({ error: { code: 'EPERM', syscall: 'unlink' } });
      expect(await names()).toEqual({ inbox: ['a.txt'], archive: [] });
    });

    test('a folder that it may not move leaves no empty one behind', async () => {
      await unlink(from);
      await makeFolder(from);
      await chmod(dirname(from), 0o755);
      expect(await runAsNobody()).toMatchObject({ error: { code: 'EACCES', syscall: 'rename' } });
      expect(await names()).toEqual({ inbox: ['a.txt'], archive: [] });
    });

    describe('across devices', () => {
      let elsewhere: SecondDevice;
      beforeEach(async () => {
        elsewhere = await secondDevice();
        await chmod(elsewhere.path, 0o777);
        to = join(elsewhere.path, 'b.txt');
      });
      afterEach(() => elsewhere.close());

      test('a file of others keeps no setuid when it cannot keep its owner', async () => {
        await chown(from, 0, 0);
        await chmod(from, 0o4755);
        const note = 'Not kept at the destination: its owner and its mode.';
        expect(await runAsNobody()).toEqual({ result: { to, how: 'copied', bytes: 5, note } });
        expect(await lstat(to)).toMatchObject({ uid: NOBODY, mode: 0o100755 });
      });

      test('gets EACCES from open for a file that it may not read, and leaves nothing', async () => {
        await chown(from, 0, 0);
        await chmod(from, 0o600);
        expect(await runAsNobody()).toMatchObject({ error: { code: 'EACCES', syscall: 'open', path: from } });
        expect(await readdir(elsewhere.path)).toEqual([]);
      });

      test.each(['file', 'symbolic link'])(
        'a copied %s is taken back where its source may not be removed',
        async (kind) => {
          if (kind === 'symbolic link') await unlink(from).then(() => symlink('nowhere', from));
          await chmod(dirname(from), 0o755);
          expect(await runAsNobody()).toMatchObject({ error: { code: 'EACCES', syscall: 'unlink', path: from } });
          expect(await readdir(elsewhere.path)).toEqual([]);
          expect(await readdir(dirname(from))).toEqual(['a.txt']);
        },
      );

      test('a symbolic link that it found, and did not make, is not taken back', async () => {
        await unlink(from);
        const temporary = join(elsewhere.path, `.b.txt.holdfast-${TASK}-1`);
        for (const path of [from, temporary]) await symlink('nowhere', path);
        await link(temporary, to);
        await chmod(dirname(from), 0o755);
        expect(await runAsNobody(2)).toMatchObject({ error: { code: 'EACCES', syscall: 'unlink', path: from } });
        expect(await readlink(to)).toBe('nowhere');
      });

      test('a copy that it found, and did not make, is not taken back', async () => {
        const temporary = join(elsewhere.path, `.b.txt.holdfast-${TASK}-1`);
        await writeFile(temporary, 'hello');
        await chmod(temporary, 0o644);
        await link(temporary, to);
        await chmod(dirname(from), 0o755);
        expect(await runAsNobody(2)).toMatchObject({ error: { code: 'EACCES', syscall: 'unlink', path: from } });
        expect(await readdir(elsewhere.path)).toEqual([basename(temporary), 'b.txt']);

        await chmod(dirname(from), 0o777);
        expect(await runAsNobody(3)).toEqual({ result: { to, how: 'copied', bytes: 5 } });
        expect(await readdir(elsewhere.path)).toEqual(['b.txt']);
      });
    });
  });

  describe('an error that strace injects', () => {
    const injected = (call: string, error: string, sibling = `,?${call}at`) => {
      const calls = `${sibling && '?'}${call}${sibling}`;
      const strace = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`];
      const command = [process.execPath, built.driver, from, to, '1', built.module];
      // One thread does all file work: strace counts the calls of each thread apart.
      return JSON.parse(system('strace', [...strace, ...command], { UV_THREADPOOL_SIZE: '1' }));
    };
    beforeEach(() => writeFile(from, 'hello'));

    test('EPERM from link is a matter of permission where another link works', async () => {
      expect(injected('link', 'EPERM:when=1')).toMatchObject({
        error: { code: 'EPERM', syscall: 'link', path: from, dest: to },
      });
      expect(await names()).toEqual({ inbox: ['a.txt'], archive: [] });
    });

    test.each(['EPERM', 'EOPNOTSUPP', 'EMLINK'])('%s from every link asks a person', async (code) => {
      expect(injected('link', code)).toMatchObject({
        error: { signal: 'needs_manual', reason: 'fs.no_hard_links', message: expect.stringContaining('mv -n') },
      });
      expect(await names()).toEqual({ inbox: ['a.txt'], archive: [] });
    });

    test.each([
      ['fchmod', 'its mode'],
      ['utimensat', 'its times'],
      ['fchown', 'its owner'],
    ])('EPERM from %s: the content is moved, and a note says that %s was not kept', async (call, lost) => {
      await chown(from, 1234, 4321);
      await chmod(from, 0o640);
      await utimes(from, 1, 1);
      const elsewhere = await secondDevice();
      try {
        to = join(elsewhere.path, 'b.txt');
        const siblings = {
          fchown: ',?fchownat,?chown',
          fchmod: ',?chmod,?fchmodat,?setxattr,?fsetxattr',
          utimensat: '',
        };
        const calls = `${call}${siblings[call as keyof typeof siblings]}`;
        const { result } = injected(calls, 'EPERM', '');
        expect(result).toMatchObject({ how: 'copied', note: expect.stringContaining(lost) });
        expect(await readFile(to, 'utf8')).toBe('hello');
        expect(existsSync(from)).toBe(false);
      } finally {
        await elsewhere.close();
      }
    });

    test('extended attributes that the destination does not take are named in a note', async () => {
      const elsewhere = await secondDevice();
      try {
        to = join(elsewhere.path, 'b.txt');
        system('setfattr', ['-n', 'user.origin', '-v', 'camera', from]);
        const { result } = injected('?fsetxattr,?setxattr', 'EOPNOTSUPP', '');
        expect(result).toMatchObject({ note: 'Not kept at the destination: its extended attributes.' });
      } finally {
        await elsewhere.close();
      }
    });

    test('without GNU cp a note says what could not be looked at', async () => {
      const elsewhere = await secondDevice();
      try {
        to = join(elsewhere.path, 'b.txt');
        const said = system(process.execPath, [built.driver, from, to, '1', built.module], { PATH: '/nowhere' });
        expect(JSON.parse(said).result).toMatchObject({
          note: 'Not kept at the destination: its extended attributes and ACL, if it had any.',
        });
      } finally {
        await elsewhere.close();
      }
    });

    test('EIO from unlink says not whether the old name is gone, so the new one stays', async () => {
      expect(injected('unlink', 'EIO:when=1')).toMatchObject({ error: { code: 'EIO', syscall: 'unlink', path: from } });
      expect(await names()).toEqual({ inbox: ['a.txt'], archive: ['b.txt'] });
      expect(await run({ execution: 2 })).toEqual({ to, how: 'linked', bytes: 5 });
    });
  });

  describe('a mounted file system', () => {
    /** Runs a script in a mount namespace of its own. `move FROM TO` prints the outcome; what follows is for `ls`. */
    const inside = (script: string) => {
      const move = `move() { "${process.execPath}" "${built.driver}" "$1" "$2" 1 "${built.module}"; }`;
      const shell = ['sh', '-euc', `${move}\ncd "${here}"\n${script}`];
      const printed = system('unshare', ['-m', '-i', '--propagation', 'private', ...shell]);
      const [outcome, ...listed] = printed.trimEnd().split('\n');
      return { ...JSON.parse(outcome ?? ''), listed };
    };

    test('EBUSY: a folder that is a mount point stays, and no empty one is left', () => {
      expect(
        inside(`
          mkdir inbox/disk
          mount -t tmpfs none inbox/disk
          move "$PWD/inbox/disk" "$PWD/archive/disk"
          ls -A inbox archive`),
      ).toMatchObject({
        error: { code: 'EBUSY', syscall: 'rename' },
        listed: ['archive:', '', 'inbox:', 'disk'],
      });
    });

    test('EBUSY: a file that is a mount point was copied before it refused, so the copy is taken back', () => {
      expect(
        inside(`
          echo bound > bound
          touch inbox/a.txt
          mount --bind bound inbox/a.txt
          move "$PWD/inbox/a.txt" "$PWD/archive/b.txt"
          ls -A inbox archive`),
      ).toMatchObject({
        error: { code: 'EBUSY', syscall: 'unlink' },
        listed: ['archive:', '', 'inbox:', 'a.txt'],
      });
    });

    test('ENOSPC: a full disk leaves the source, and no part of the copy', () => {
      expect(
        inside(`
          head -c 300000 /dev/zero > inbox/a.txt
          mount -t tmpfs -o size=128k none archive
          move "$PWD/inbox/a.txt" "$PWD/archive/b.txt"
          ls -A inbox archive`),
      ).toMatchObject({
        error: { code: 'ENOSPC', syscall: 'write' },
        listed: ['archive:', '', 'inbox:', 'a.txt'],
      });
    });

    test('EROFS: a source that cannot be removed is not left in two places', () => {
      expect(
        inside(`
          mount -t tmpfs none inbox
          echo hello > inbox/a.txt
          mount -o remount,ro inbox
          move "$PWD/inbox/a.txt" "$PWD/archive/b.txt"
          ls -A inbox archive`),
      ).toMatchObject({
        error: { code: 'EROFS', syscall: 'unlink' },
        listed: ['archive:', '', 'inbox:', 'a.txt'],
      });
    });

    test('a file system without hard links asks a person, before anything is copied onto it', () => {
      const outcome = inside(`
        echo hello > inbox/a.txt
        mount -t mqueue none archive
        move "$PWD/inbox/a.txt" "$PWD/archive/b.txt"
        ls -A inbox archive`);
      expect(outcome).toMatchObject({
        error: { signal: 'needs_manual', reason: 'fs.no_hard_links' },
        listed: ['archive:', '', 'inbox:', 'a.txt'],
      });
    });

    test('a file system without hard links asks a person about a move within it', () => {
      const outcome = inside(`
        mount -t mqueue none inbox
        touch inbox/a.txt
        chown 1234 inbox/a.txt
        move "$PWD/inbox/a.txt" "$PWD/inbox/b.txt"
        ls -A inbox`);
      expect(outcome).toMatchObject({
        error: { signal: 'needs_manual', reason: 'fs.no_hard_links' },
        listed: ['a.txt'],
      });
    });
  });
});

interface RunOptions {
  readonly from?: string;
  readonly to?: string;
  readonly execution?: number;
  readonly signal?: AbortSignal;
  readonly heartbeat?: () => void;
  /** Called at each save, before it counts; what it throws is the end of the execution. */
  readonly beforeSaving?: () => void;
}

function run(options: RunOptions = {}): Promise<MoveResult> {
  const { execution = 1, signal = new AbortController().signal, heartbeat = () => undefined } = options;
  const input = { from: options.from ?? from, to: options.to ?? to };
  const saveCheckpoint = async (value: unknown) => {
    options.beforeSaving?.();
    checkpoint = JSON.parse(JSON.stringify(value));
  };
  return move(input, { id: TASK, execution, signal, heartbeat, checkpoint, saveCheckpoint });
}

async function names(): Promise<{ inbox: string[]; archive: string[] }> {
  return { inbox: await readdir(join(here, 'inbox')), archive: await readdir(join(here, 'archive')) };
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(join(path, 'deep'), { recursive: true });
  await writeFile(join(path, 'deep', 'leaf'), 'leaf');
  await chmod(path, 0o750);
}

/** What an untouched file, folder or link keeps. */
async function snapshot(path: string): Promise<object> {
  const stats = await lstat(path, { bigint: true });
  const content = stats.isFile() ? readFile(path, 'utf8') : stats.isDirectory() ? readdir(path) : readlink(path);
  return { ino: stats.ino, mode: stats.mode, mtime: stats.mtimeNs, content: await content };
}

function onceOnly(act: () => void): () => void {
  let done = false;
  return () => {
    if (!done) act();
    done = true;
  };
}

/**
 * A writer in a thread of its own tries to create each destination with its own content, while `move` goes for the same
 * name. Who won last time starts later this time, so that the two stay within microseconds of one another.
 */
async function race(kind: 'file' | 'folder', inbox: string, archive: string, rounds = 300): Promise<void> {
  const racer = new Worker(RACER, { eval: true });
  const stood = { ours: 0, theirs: 0 };
  let lead = 0;
  try {
    for (let round = 0; round < rounds; round += 1) {
      const input = { from: join(inbox, `${round}`), to: join(archive, `${round}`) };
      await (kind === 'file' ? writeFile(input.from, 'ours') : makeFolder(input.from));

      const answer = once(racer, 'message');
      racer.postMessage({ kind, to: input.to, spins: Math.max(0, lead) });
      for (let spin = lead; spin < 0; spin += 1) Atomics.load(SPINNING, 0);
      const [moved] = await Promise.allSettled([run(input)]);
      const [created] = await answer;

      stood[moved.status === 'fulfilled' ? 'ours' : 'theirs'] += 1;
      await expectBothSurvive(kind, input, moved, created);
      lead += Math.round((moved.status === 'fulfilled' ? -1 : 1) * (200 + 2_000 * ((round * 7) % 5)));
    }
  } finally {
    await racer.terminate();
  }
  expect(stood.ours, 'the racer always won, so nothing was tested').toBeGreaterThan(0);
  expect(stood.theirs, 'the racer never won, so nothing was tested').toBeGreaterThan(0);
  expect((await readdir(archive)).filter((name) => name.startsWith('.'))).toEqual([]);
}

const SPINNING = new Int32Array(new SharedArrayBuffer(4));

const RACER = `
  const { parentPort } = require('node:worker_threads');
  const { mkdirSync, writeFileSync } = require('node:fs');
  const spinning = new Int32Array(new SharedArrayBuffer(4));
  parentPort.on('message', ({ kind, to, spins }) => {
    for (let spin = 0; spin < spins; spin += 1) Atomics.load(spinning, 0);
    try {
      if (kind === 'folder') mkdirSync(to, { recursive: true });
      writeFileSync(kind === 'folder' ? to + '/theirs' : to, 'theirs', { flag: 'wx' });
      parentPort.postMessage(true);
    } catch {
      parentPort.postMessage(false);
    }
  });
`;

async function expectBothSurvive(
  kind: 'file' | 'folder',
  input: { from: string; to: string },
  moved: PromiseSettledResult<MoveResult>,
  created: boolean,
): Promise<void> {
  const ours = moved.status === 'fulfilled' ? input.to : input.from;
  expect(await readFile(kind === 'file' ? ours : join(ours, 'deep', 'leaf'), 'utf8')).toMatch(/^(ours|leaf)$/);
  expect(existsSync(input.from)).toBe(moved.status === 'rejected');
  if (moved.status === 'rejected') expect(moved.reason).toMatchObject({ code: 'EEXIST' });
  if (created) expect(await readFile(kind === 'file' ? input.to : join(input.to, 'theirs'), 'utf8')).toBe('theirs');
  if (kind === 'file') expect(created).toBe(moved.status === 'rejected');
}

interface SecondDevice {
  readonly path: string;
  close(): Promise<void>;
}

/** Runs a program of the system. Without it nothing is tested, which must not go unseen. */
function system(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const ended = spawnSync(program, args, { encoding: 'utf8', env: { ...process.env, ...env } });
  if (ended.error) {
    const needed = 'apt-get install strace util-linux coreutils';
    throw new Error(`${program} does not run here: ${needed}`, { cause: ended.error });
  }
  if (ended.status !== 0) throw new Error(`${program} ended with ${ended.status ?? ended.signal}: ${ended.stderr}`);
  return ended.stdout;
}

/** A folder on another device than the temporary one: in /dev/shm, or on a tmpfs mounted for the purpose. */
async function secondDevice(): Promise<SecondDevice> {
  const first = statSync(tmpdir()).dev;
  if (existsSync('/dev/shm') && statSync('/dev/shm').dev !== first) {
    const path = await mkdtemp('/dev/shm/holdfast-move-');
    return { path, close: () => rm(path, { recursive: true }) };
  }
  const path = await mkdtemp(join(tmpdir(), 'holdfast-device-'));
  try {
    system('mount', ['-t', 'tmpfs', 'none', path]);
  } catch (cause) {
    await rm(path, { recursive: true });
    throw new Error('Moves across devices were not tested: there is no second device, and none can be mounted.', {
      cause,
    });
  }
  return {
    path,
    close: async () => {
      system('umount', [path]);
      await rm(path, { recursive: true });
    },
  };
}

interface Built {
  readonly folder: string;
  readonly driver: string;
  readonly module: string;
}

/** The handler and its driver in a folder that every user may read, for what needs a process of its own. */
async function build(): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-built-'));
  await chmod(folder, 0o755);
  const project = {
    extends: resolve('tsconfig.build.json'),
    compilerOptions: {
      rootDir: resolve('src'),
      outDir: folder,
      declaration: false,
      typeRoots: [resolve('node_modules/@types')],
    },
    include: [],
    files: [resolve('src/handlers/move.ts')],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(project));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));
  execFileSync(process.execPath, [tsc, '-p', folder]);

  const driver = join(folder, 'driver.mjs');
  await writeFile(driver, await readFile('test/process/move-driver.mjs'));
  return { folder, driver, module: pathToFileURL(join(folder, 'handlers', 'move.js')).href };
}
