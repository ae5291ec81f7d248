import { afterAll, beforeAll, describe, expect } from 'vitest';
import { commandNames } from '../../src/cli/program.ts';
import { defineTask, NeedsManual, openHoldfast, type StoreOpener } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';
import { type Project, test } from './cli-process.ts';

/** It clears the screen, sets the title, turns the writing round, hides a line, and is a control sequence in one character. */
const HOSTILE = 'x\u001b[2J\u001b]0;owned\u0007\u202egnp.exe\u2066\u0000\r\u009b31m\u{e0041}\u2028end';
/** The part of it that a name may have. */
const NAME = 'x\u202egnp\u009b31m\u2066end';
const HUGE = `${HOSTILE}${'0123456789'.repeat(1_048_576)}`;
/** No command prints more, except one that shows a whole error, which is at most 8,192 characters of each of its parts. */
const MOST_PRINTED = 200_000;

/** The arguments of each command, of those that only read before those that act. Some have several forms. */
const CALLS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  status: [[], ['--summary'], ['--check']],
  list: [[], ['state:dead'], ['--held'], ['--all'], ['error:owned']],
  ls: [[]],
  show: [['1'], ['2'], ['1', '-v'], ['2', '-vv']],
  explain: [
    ['1'],
    ['2'],
    ['3'],
    ['1', '--error', JSON.stringify({ message: HOSTILE })],
    ['1', '--if', 'maxAttempts: 9'],
  ],
  top: [['--once']],
  stats: [[]],
  inbox: [[]],
  failures: [
    [],
    ['show', 'GROUP'],
    ['acknowledge', 'GROUP', '--note', NAME],
    ['mute', 'GROUP', '--for', '1h'],
    ['note', 'GROUP', '--note', NAME],
    ['resolve', 'GROUP'],
    ['reopen', 'GROUP'],
  ],
  events: [[], ['error:owned']],
  logs: [['1']],
  sources: [[], ['show', NAME], ['hold', NAME], ['release', NAME]],
  queues: [[], ['pause', 'default'], ['resume', 'default'], ['order', 'default', 'fifo']],
  schedules: [[]],
  workers: [[]],
  quarantine: [[], ['list'], ['show', '1']],
  policies: [[], ['show', NAME], ['schedule', NAME], ['validate']],
  classify: [[HOSTILE.replace('\u0000', '')], [NAME, '--type', NAME]],
  db: [[], ['prune', '--dry-run'], ['clock'], ['migrate']],
  doctor: [[]],
  'bug-report': [[]],
  service: [['print']],
  completion: [['bash']],
  version: [[]],
  help: [['list'], [NAME]],
  wait: [
    ['1', '--timeout', '1s'],
    [`source:"${NAME}"`, '--timeout', '1s'],
  ],
  enqueue: [
    [NAME, '{"a":1}'],
    ['t', NAME],
  ],
  import: [[NAME]],
  // What its command prints passes as it is while it runs here: `logs` shows it later.
  run: [['--attempts', '1', '--', 'false', NAME]],
  mv: [[NAME, 'nowhere/']],
  http: [['--attempts', '1', 'GET', `http://127.0.0.1:9/${NAME}`]],
  resume: [['4']],
  worker: [['--drain']],
  redrive: [
    ['state:dead', '--note', NAME, '--dry-run'],
    ['state:dead', '--note', NAME, '-y'],
  ],
  redrives: [[], ['show', '1'], ['pause', '1'], ['resume', '1'], ['cancel', '1']],
  resolve: [['2'], ['2', '--as', 'dead', '--note', NAME]],
  retry: [['1'], ['state:dead', '-y']],
  hold: [['3', '--note', NAME]],
  release: [['3']],
  cancel: [['3', '--note', NAME]],
};

/** It serves until it is stopped, and prints its address. */
const NOT_CALLED = ['ui'];

/** What a terminal obeys. Our own colours and moves of the cursor are none of these. */
const OBEYED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /\u001b\]|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/** In a pipe there are no colours of ours either. */
function obeyedIn(text: string): string | undefined {
  return text.includes('\u001b') ? '\u001b' : OBEYED.exec(text)?.[0];
}

/** Tasks with such a name whose failures say such things: #1 is dead, #2 waits for a person, #3 is held, #4 is a waiting command. */
async function prepare(project: Project, store: StoreOpener): Promise<string> {
  const fails = defineTask(NAME, {
    retry: { maxAttempts: 1 },
    source: NAME,
    async run(input: { n: number }, task): Promise<void> {
      await task.progress({ at: NAME });
      const cause = Object.assign(new Error(HUGE), { code: HOSTILE, name: HOSTILE });
      if (input.n === 2) throw new NeedsManual(HUGE, { cause });
      throw Object.assign(new Error(HUGE, { cause }), { code: HOSTILE, name: HOSTILE });
    },
  });
  const holdfast = await openHoldfast({ store, tasks: [fails] });
  try {
    await holdfast.enqueue(fails, { n: 1 }, { key: NAME });
    await holdfast.enqueue(fails, { n: 2 });
    await holdfast.worker({ name: NAME }).drain();
    const { id } = await holdfast.enqueue(fails, { n: 3, text: HOSTILE.replace('\u0000', '') } as { n: number });
    await holdfast.hold(id, { actor: NAME, note: HOSTILE.replace('\u0000', '') });
    await holdfast.sources.hold(NAME, { actor: NAME, note: HOSTILE.replace('\u0000', '') });
    const [group] = await holdfast.failures.list();
    await project.run('run', '--detach', '--', 'true', NAME);
    return group?.id ?? '';
  } finally {
    await holdfast.close();
  }
}

test('every command is called', () => {
  expect(Object.keys(CALLS).concat(NOT_CALLED).sort()).toEqual(commandNames().sort());
});

describe.each(['sqlite', 'postgres'] as const)('what a task says cannot disturb a terminal, on %s', (kind) => {
  let databases: TestDatabases;
  if (kind === 'postgres') {
    beforeAll(async () => {
      databases = await openDatabases(async (url) => {
        const holdfast = await openHoldfast({ store: postgres(url) });
        await holdfast.close();
      });
    });
    afterAll(() => databases.close());
  }

  async function storeOf(project: Project): Promise<StoreOpener> {
    if (kind === 'sqlite') return sqlite(project.store);
    const { url } = await databases.take();
    project.env = { HOLDFAST_STORE: url };
    return postgres(url);
  }

  async function* calls(project: Project) {
    const group = await prepare(project, await storeOf(project));
    for (const [command, forms] of Object.entries(CALLS)) {
      for (const form of forms) yield [command, ...form.map((word) => (word === 'GROUP' ? group : word))];
    }
  }

  test('through a pipe', async ({ project }) => {
    for await (const call of calls(project)) {
      const { stdout, stderr } = await project.run(...call);
      const obeyed = obeyedIn(stdout + stderr);
      expect([call, obeyed]).toEqual([call, undefined]);
      expect([call, Math.max(MOST_PRINTED, stdout.length)]).toEqual([call, MOST_PRINTED]);
    }
  });

  test('with --json', async ({ project }) => {
    for await (const call of calls(project)) {
      const { stdout } = await project.run(...call.slice(0, 1), '--json', ...call.slice(1));
      const obeyed = obeyedIn(stdout);
      expect([call, obeyed]).toEqual([call, undefined]);
      expect([call, Math.max(MOST_PRINTED, stdout.length)]).toEqual([call, MOST_PRINTED]);
    }
  });

  test('on a terminal', async ({ project }) => {
    for await (const call of calls(project)) {
      const { stdout } = await project.runOnTerminal(...call);
      const obeyed = OBEYED.exec(stdout)?.[0];
      expect([call, obeyed]).toEqual([call, undefined]);
      expect([call, Math.max(MOST_PRINTED, stdout.length)]).toEqual([call, MOST_PRINTED]);
    }
  });
});
