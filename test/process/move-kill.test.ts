import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import {
  appendFile,
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

/**
 * Every system call by which `move` changes something or makes it durable. A call that is killed does not happen, so the
 * kill before each one shows every state that a SIGKILL can leave: reads and `close` change nothing in between. `?` lets
 * strace pass over the calls that this processor does not have.
 */
const CALLS = [
  ...['link', 'linkat', 'symlink', 'symlinkat', 'unlink', 'unlinkat', 'rename', 'renameat', 'renameat2'],
  ...['mkdir', 'mkdirat', 'rmdir', 'open', 'openat', 'write', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate'],
  ...['chmod', 'fchmod', 'fchmodat', 'chown', 'fchown', 'fchownat', 'lchown', 'utimensat', 'futimesat'],
];

const LOOKS = ['statx', 'lstat', 'stat', 'fstat', 'newfstatat', 'readlink', 'readlinkat'];

/** The new name is durable before the old one goes. */
const LINKING = ['link', 'fsync', 'unlink', 'fsync'];

const COPYING = [
  // Another device; a temporary, and whether it can be linked.
  ...['link', 'open', 'link', 'unlink'],
  // The times are copied by `cp`.
  ...['pwrite64', 'pwrite64', 'pwrite64', 'fchmod', 'fsync'],
  ...LINKING,
  // The temporary, last.
  'unlink',
];

const CONTENT = Buffer.from('holdfast '.repeat(34_000));
const DRIVER = 'test/process/move-driver.mjs';

let sameDevice: string;
let otherDevice: string;

beforeAll(async () => {
  sameDevice = await mkdtemp(join(tmpdir(), 'holdfast-kill-'));
  otherDevice = await mkdtemp(join('/dev/shm', 'holdfast-kill-'));
  if (statSync(sameDevice).dev === statSync(otherDevice).dev) {
    throw new Error(`Moves across devices cannot be tested: ${tmpdir()} and /dev/shm are one device. Set TMPDIR.`);
  }
});

afterAll(async () => {
  for (const folder of [sameDevice, otherDevice]) if (folder) await rm(folder, { recursive: true, force: true });
});

describe('a move that is killed at any system call', () => {
  test('leaves a file on one device whole, and the next execution moves it', () =>
    killAtEveryCall(file, () => sameDevice, LINKING));

  test('leaves a file across devices whole, and the next execution moves it', () =>
    killAtEveryCall(file, () => otherDevice, COPYING));

  test('leaves a folder whole, and the next execution moves it', () =>
    killAtEveryCall(folder, () => sameDevice, ['mkdir', 'rename', 'fsync', 'fsync']));

  test('leaves a symbolic link whole, and the next execution moves it', () =>
    killAtEveryCall(link, () => sameDevice, LINKING));

  test('leaves a symbolic link across devices whole, and the next execution moves it', () =>
    killAtEveryCall(link, () => otherDevice, ['link', 'symlink', 'utimens', ...LINKING, 'unlink']));
});

/** A worker that lost its lease, but still lives and goes on later. */
describe('a move that stands still after any look or change while the next execution runs', () => {
  test('does no harm to a file on one device', () => overtakeAfterEveryCall(file, () => sameDevice));
  test('does no harm to a file across devices', () => overtakeAfterEveryCall(file, () => otherDevice));
  test('does no harm to a folder', () => overtakeAfterEveryCall(folder, () => sameDevice));
  test('does no harm to an empty folder', () => overtakeAfterEveryCall(emptyFolder, () => sameDevice));
  test('does no harm to a symbolic link across devices', () => overtakeAfterEveryCall(link, () => otherDevice));
});

describe('what somebody does between the new name and the removal of the old one', () => {
  const devices = [
    ['one device', () => sameDevice],
    ['two devices', () => otherDevice],
  ] as const;
  /** Moves, and acts right after the new name was given. */
  const actAfterLink = async (device: string, act: (place: Place) => Promise<unknown>, thing = file) => {
    const calls = await recordCalls(thing, device);
    const call = calls.findLast(({ name }) => /^(sym)?link/.test(name)) as Call;
    const place = await makePlace(thing, device);
    const said = await pauseAfter(call, place, () => act(place));
    const { result, error }: { result?: object; error?: object } = JSON.parse(said);
    return { result, error, place };
  };
  const isChanged = { signal: 'failed', kind: 'transient', reason: 'fs.changed' };

  test.each(devices)('removing the new name never costs the last copy: %s', async (_, device) => {
    const { error, place } = await actAfterLink(device(), ({ to }) => unlink(to));
    expect(error).toMatchObject(isChanged);
    expect(await look(file, place.from)).toBe('whole');
  });

  test('removing a symbolic link that was made anew never costs the last one: two devices', async () => {
    const { error, place } = await actAfterLink(otherDevice, ({ to }) => unlink(to), link);
    expect(error).toMatchObject(isChanged);
    expect(await look(link, place.from)).toBe('whole');
  });

  test.each(devices)('taking the new name elsewhere at once is as good as after the move: %s', async (_, device) => {
    const { result, place } = await actAfterLink(device(), ({ to }) => rename(to, `${to}.taken`));
    expect(result).toMatchObject({ bytes: CONTENT.length });
    expect(await look(file, `${place.to}.taken`)).toBe('whole');
    expect(await Promise.all(place.folders.map((path) => readdir(path)))).toEqual([[], ['moved.taken']]);
  });

  test.each(devices)('an old name that somebody else removes at last is no failure: %s', async (_, device) => {
    const lastLook = (await recordCalls(file, device(), 'and looks')).findLast(isLook) as Call;
    const place = await makePlace(file, device());
    const said = await pauseAfter(lastLook, place, () => unlink(place.from));
    expect(JSON.parse(said)).toMatchObject({ result: { bytes: CONTENT.length } });
    await expectMoved(file, place, said);
  });

  test('a new file under the old name is not removed: one device', async () => {
    const { result, place } = await actAfterLink(sameDevice, async ({ from }) => {
      await writeFile(`${from}.new`, 'new');
      await rename(`${from}.new`, from);
    });
    expect(result).toMatchObject({ how: 'linked' });
    expect(await readFile(place.from, 'utf8')).toBe('new');
    expect(await look(file, place.to)).toBe('whole');
  });

  test('a new link under the old name is not removed: two devices', async () => {
    const replace = async ({ from }: Place) => {
      await symlink('../new', `${from}.new`);
      await rename(`${from}.new`, from);
    };
    const { result, place } = await actAfterLink(otherDevice, replace, link);
    expect(result).toMatchObject({ how: 'copied' });
    expect([await readlink(place.from), await readlink(place.to)]).toEqual(['../new', '../nowhere']);
  });

  test('a source that is written to is not removed, and a person compares the two: two devices', async () => {
    const { error, place } = await actAfterLink(otherDevice, ({ from }) => appendFile(from, 'more'));
    expect(error).toMatchObject(isChanged);
    const { said } = await outcomeOf(drive(place, 2));
    expect(JSON.parse(said)).toMatchObject({ error: { code: 'EEXIST', syscall: 'link' } });
    expect(await readFile(place.from, 'utf8')).toBe(`${CONTENT}more`);
    expect(await look(file, place.to)).toBe('whole');
    expect(await readdir(dirname(place.to))).toEqual(['moved']);
  });

  test('a source that was only touched is moved by the next execution: two devices', async () => {
    const { error, place } = await actAfterLink(otherDevice, ({ from }) => utimes(from, 1, 1));
    expect(error).toMatchObject(isChanged);
    const { said } = await outcomeOf(drive(place, 2));
    expect(JSON.parse(said)).toMatchObject({ result: { how: 'copied' } });
    expect(await Promise.all(place.folders.map((path) => readdir(path)))).toEqual([[], ['moved']]);
  });
});

/** Something to move: how it is made, and what it is when it is whole. A place made for a folder is nothing yet. */
interface Thing {
  make(path: string): Promise<void>;
  look(path: string): Promise<'whole' | 'nothing' | 'a part'>;
}

const file: Thing = {
  make: async (path) => {
    await writeFile(path, CONTENT);
    await chmod(path, 0o640);
  },
  look: async (path) => {
    const { mode } = await lstat(path);
    return (await readFile(path)).equals(CONTENT) && (mode & 0o777) === 0o640 ? 'whole' : 'a part';
  },
};

const folder: Thing = {
  make: async (path) => {
    await mkdir(path);
    for (const name of ['a', 'b']) await writeFile(join(path, name), CONTENT);
  },
  look: async (path) => {
    const names = await readdir(path);
    if (names.length === 0) return 'nothing';
    const whole = names.map(async (name) => (await readFile(join(path, name))).equals(CONTENT));
    return names.length === 2 && (await Promise.all(whole)).every(Boolean) ? 'whole' : 'a part';
  },
};

const emptyFolder: Thing = {
  make: (path) => mkdir(path),
  look: async (path) => ((await readdir(path)).length === 0 ? 'whole' : 'a part'),
};

const link: Thing = {
  make: (path) => symlink('../nowhere', path),
  look: async (path) => ((await lstat(path)).isSymbolicLink() ? 'whole' : 'a part'),
};

interface Place {
  readonly from: string;
  readonly to: string;
  /** Where the executions keep their checkpoint. */
  readonly checkpoint: string;
  readonly folders: readonly string[];
}

async function killAtEveryCall(thing: Thing, device: () => string, expected: readonly string[]): Promise<void> {
  const calls = await recordCalls(thing, device());
  // On other processors `link` is called `linkat`, and so on.
  expect(calls.map(({ name }) => name.replace(/at2?$/, ''))).toEqual(expected);

  await twoAtATime(calls, async (call) => {
    const at = `killed before ${call.name} number ${call.number}, ${call.line}`;
    const place = await makePlace(thing, device());

    const child = drive(place, 1, ['-o', '/dev/null', ...injected(call, 'SIGKILL')]);
    const ended = await outcomeOf(child);
    expect(ended.signal, `${at}: it was not killed, but said ${ended.said}`).toBe('SIGKILL');

    const states = [await look(thing, place.from), await look(thing, place.to)];
    expect(states, at).toContain('whole');
    expect(states, at).not.toContain('a part');

    const next = await outcomeOf(drive(place, 2));
    expect(JSON.parse(next.said), at).toMatchObject({ result: { to: place.to } });
    await expectMoved(thing, place, at);
  });
}

async function overtakeAfterEveryCall(thing: Thing, device: () => string): Promise<void> {
  const calls = await recordCalls(thing, device(), 'and looks');
  const made = calls.findIndex(({ name }) => name === 'mkdir');
  // A folder is made and looked at before a record proves whose it is.
  const unproven = made < 0 ? [] : calls.slice(made, made + 2);
  await twoAtATime(calls, async (call) => {
    const at = `overtaken after ${call.name} number ${call.number}, ${call.line}`;
    const place = await makePlace(thing, device());

    let next = '';
    await pauseAfter(call, place, async () => {
      next = (await outcomeOf(drive(place, 2))).said;
    });

    if (unproven.includes(call)) {
      // The new folder is left alone, a person is asked, and nothing is moved.
      expect(JSON.parse(next), at).toMatchObject({ error: { code: 'EEXIST' } });
      expect(await look(thing, place.from), at).toBe('whole');
      return;
    }
    expect(JSON.parse(next), at).toMatchObject({ result: { to: place.to } });
    await expectMoved(thing, place, at);
  });
}

async function expectMoved(thing: Thing, place: Place, at: string): Promise<void> {
  expect(await look(thing, place.to), at).toBe('whole');
  expect(existsSync(place.from), at).toBe(false);
  expect(await Promise.all(place.folders.map((path) => readdir(path))), at).toEqual([[], ['moved']]);
}

/** More would only wait for the processor. */
async function twoAtATime<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  const take = async () => {
    for (const item of waiting) await act(item);
  };
  await Promise.all([take(), take()]);
}

/**
 * Stops the whole process after one of its calls, acts, and lets it go on.
 * @returns what it said in the end.
 */
async function pauseAfter(call: Call, place: Place, act: () => Promise<unknown>): Promise<string> {
  const child = drive(place, 1, injected(call, 'SIGSTOP'));
  const ended = outcomeOf(child);
  const lines = createInterface({ input: child.stderr as Readable });
  const stopped = new Promise<void>((resolve) => {
    lines.on('line', (line) => line.includes('stopped by SIGSTOP') && resolve());
  });
  const early = ended.then(({ said }) => {
    throw new Error(`It was not stopped after ${call.line}, but said ${said}`);
  });
  await Promise.race([stopped, early]);
  early.catch(() => undefined);
  try {
    await act();
  } finally {
    process.kill(-(child.pid as number), 'SIGCONT');
  }
  return (await ended).said;
}

function injected({ name, number }: Call, signal: 'SIGKILL' | 'SIGSTOP'): readonly string[] {
  return ['-e', `inject=${name}:signal=${signal}:when=${number}`];
}

interface Call {
  readonly name: string;
  /** The how-manieth of its name, which is what strace counts. */
  readonly number: number;
  readonly line: string;
}

/** What a move that nobody disturbs calls. */
async function recordCalls(thing: Thing, device: string, which?: 'and looks'): Promise<Call[]> {
  const place = await makePlace(thing, device);
  const log = join(sameDevice, 'calls');
  const { said } = await outcomeOf(drive(place, 1, ['-o', log]));
  expect(JSON.parse(said)).toMatchObject({ result: { to: place.to } });

  const counts = new Map<string, number>();
  const lines = (await readFile(log, 'utf8')).split('\n');
  // Of the one thread that does all file work: strace counts the calls of each thread apart, and `cp` is another process.
  const [thread] = lines.find((line) => CHANGES_OR_LOOKS.test(line))?.split(' ') ?? [];
  const calls = lines.flatMap((line) => {
    const [, pid, name] = /^(\d+) +(\w+)\(/.exec(line) ?? [];
    if (name === undefined || pid !== thread) return [];
    const number = (counts.get(name) ?? 0) + 1;
    counts.set(name, number);
    return [{ name, number, line }];
  });
  await rm(log);
  return calls.filter((call) => changesSomething(call) || (which && isLook(call)));
}

const CHANGES_OR_LOOKS = new RegExp(`^\\d+ +(${[...CALLS, ...LOOKS].join('|')})\\(`);

/** What was seen may no longer be so when it is acted upon. */
function isLook({ name }: Call): boolean {
  return LOOKS.includes(name);
}

/** Most files are opened to be read. */
function changesSomething({ name, line }: Call): boolean {
  return CALLS.includes(name) && (!name.startsWith('open') || line.includes('O_CREAT'));
}

/**
 * strace sees and counts only the calls that touch the place (`-P`), and they come in the same order in every run, because
 * one thread does all file work.
 */
function drive({ from, to, folders, checkpoint }: Place, execution: number, strace?: readonly string[]): ChildProcess {
  const command = [process.execPath, DRIVER, from, to, String(execution)];
  const temporary = join(dirname(to), `.moved.holdfast-7-${execution}`);
  const paths = [...folders, from, to, temporary, `${temporary}.link`].flatMap((path) => ['-P', path]);
  const trace = `trace=${[...CALLS, ...LOOKS].map((name) => `?${name}`).join()}`;
  const traced = strace && ['strace', '-f', '-y', '-qq', ...paths, '-e', trace, ...strace, ...command];
  const [program = '', ...args] = traced ?? command;
  return spawn(program, args, {
    env: { ...process.env, UV_THREADPOOL_SIZE: '1', CHECKPOINT: checkpoint },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, which can be told to go on after a SIGSTOP.
    detached: true,
  });
}

async function outcomeOf(child: ChildProcess): Promise<{ said: string; signal: NodeJS.Signals | null }> {
  const said = [child.stdout, child.stderr].map((stream) => (stream ? text(stream) : ''));
  try {
    const [, signal] = await once(child, 'close');
    const [stdout = '', stderr] = await Promise.all(said);
    return { said: stdout || `nothing, and on stderr ${stderr}`, signal };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Error('strace is missing, so no move was killed. Install it: apt-get install strace', { cause: error });
  }
}

async function makePlace(thing: Thing, device: string): Promise<Place> {
  const folders = [await mkdtemp(join(sameDevice, 'from-')), await mkdtemp(join(device, 'to-'))] as const;
  const checkpoint = join(await mkdtemp(join(sameDevice, 'checkpoint-')), 'checkpoint');
  const place = { from: join(folders[0], 'thing'), to: join(folders[1], 'moved'), folders, checkpoint };
  await thing.make(place.from);
  return place;
}

async function look(thing: Thing, path: string): Promise<'whole' | 'nothing' | 'a part'> {
  const there = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  return there === undefined ? 'nothing' : thing.look(path);
}
