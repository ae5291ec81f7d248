import { mkdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';
import { type Ended, ON_TERMINAL, Project } from './cli-process.ts';
import { checkDocuments } from './documents.ts';

/** What looks at a store and changes nothing, and how it ends. */
const LOOKS: readonly (readonly [words: string, exit: number])[] = [
  ['status', 0],
  ['status --check', 8],
  ['list', 0],
  ['list state:dead since:1h', 0],
  ['show 1', 0],
  ['explain 3', 0],
  ['explain 5', 0],
  ['explain --type shell_command --error {"status":429,"headers":{"retry-after":"120"}}', 0],
  ['inbox', 0],
  ['failures', 0],
  ['sources', 0],
  ['sources show cmd:true', 0],
  ['queues', 0],
  ['workers', 0],
  ['redrives', 0],
  ['schedules', 0],
  ['events', 0],
  ['stats', 0],
  ['redrive state:dead --dry-run', 0],
  ['wait 1 4', 1],
];

/** Tables, which fit the terminal. Sentences of the others may be wrapped by it. */
const FITS = /^(?:list|failures|sources|queues|workers|redrives|schedules)(?: state|$)/;

const ESCAPE = '\u001b[';

let databases: TestDatabases;
beforeAll(async () => {
  const maker = new Project();
  databases = await openDatabases(async (url) => {
    const { exit, stderr } = await maker.run('db', 'migrate', '--store', url);
    if (exit !== 0) throw new Error(stderr);
  });
  await maker.remove();
});
afterAll(() => databases.close());

/** A store with what an operator meets: a dead task, one that needs a person, one held by its source, one that waits for its retry. */
async function fill(project: Project): Promise<void> {
  await project.run('run', '--attempts', '1', '--', 'sh', '-c', 'echo "invalid IBAN DE00" >&2; exit 3');
  mkdirSync(project.path('to'));
  for (const file of ['a', 'to/a']) project.write(file, file);
  expect((await project.run('mv', 'a', 'to')).exit).toBe(4);
  await project.run('run', '-b', '--', 'true');
  await project.run('sources', 'hold', 'cmd:true', '--note', 'the host moves');
  await project.run('run', '--', 'sh', '-c', 'exit 0');
  const waits = ['run', '--attempts', '3', '--backoff', 'fixed:1h', '--', 'sh', '-c', 'echo no route >&2; exit 255'];
  const detached = project.start(waits);
  await detached.says('next attempt in');
  detached.kill('SIGINT');
  expect((await detached.ended).exit).toBe(75);
}

describe.each(['SQLite', 'PostgreSQL'])('the operator’s desk on %s', (store) => {
  let project: Project;
  let drop = () => {};
  beforeAll(async () => {
    project = new Project();
    if (store === 'PostgreSQL') {
      const database = await databases.take();
      drop = database.drop;
      project.env = { HOLDFAST_STORE: database.url };
    }
    await fill(project);
  });
  afterAll(async () => {
    await project.remove();
    drop();
  });

  const onTerminal = (words: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> =>
    project.start(words.map(inShell), { under: ON_TERMINAL, env: { COLUMNS: '80', TERM: 'xterm-256color', ...env } })
      .ended;

  test.each(LOOKS)(
    '%s: in a pipe without colours, as one document, and on a terminal of 80 columns',
    async (line, exit) => {
      const words = line.split(' ');
      const piped = await project.run(...words);
      expect(piped).toMatchObject({ exit, stdout: expect.not.stringContaining(ESCAPE) });

      const document = await project.run(...words, '--json');
      expect(document.exit).toBe(exit);
      expect(JSON.parse(document.stdout)).toMatchObject({ schema: expect.stringMatching(/^holdfast\.[a-z_.]+\/v1$/) });
      checkDocuments(document.stdout);

      const plain = await onTerminal(words, { NO_COLOR: '1' });
      expect(plain).toMatchObject({ exit, stdout: expect.not.stringContaining(ESCAPE) });
      const lines = plain.stdout.split(/\r?\n/);
      const widest = Math.max(...lines.map((each) => each.length));
      const rows = lines.reduce((sum, each) => sum + Math.ceil(Math.max(1, each.length) / 80), 0);
      if (line === 'status') expect(rows).toBeLessThanOrEqual(24);
      if (FITS.test(line)) expect([line, widest <= 80 ? 'fits' : plain.stdout]).toEqual([line, 'fits']);
    },
  );

  test('has colours on a terminal, unless it is dumb or somebody asked for none', async () => {
    expect((await onTerminal(['list'], {})).stdout).toContain(ESCAPE);
    expect((await onTerminal(['list'], { TERM: 'dumb' })).stdout).not.toContain(ESCAPE);
    expect((await onTerminal(['list', '--no-color'], {})).stdout).not.toContain(ESCAPE);
  });

  test('says the same on both stores', async () => {
    const say = async (...words: readonly string[]) => {
      const { stdout, stderr } = await project.run(...words);
      return masked(`${stdout}${stderr}`, project);
    };
    expect(await say('status')).toMatchInlineSnapshot(`
      "Attention
        ⚑ 1 task needs a person: fs.dest_exists. Something stands at the destination already. Compare the two, and move or remove one of them.
        holdfast inbox reason:fs.dest_exists
        ✕ 1 dead: process.exit (#1 sh -c 'echo "invalid IBAN DE00" >&2; exit 3': exit 3: invalid IBAN DE00)
        holdfast list state:dead reason:process.exit
        ⏸ 1 task is due, and no worker is running
        holdfast worker
        ⏸ 1 ready task waits for the source cmd:true, held LONG ago by SOMEBODY the host moves
        holdfast sources release cmd:true
      Tasks  ○ 1 ready  ↻ 1 retrying  ⚑ 1 needs a person  ✕ 1 dead  ✓ 1 succeeded
      Due  1 now, next in LONG
      Failing  shell_command with process.exit, 1 failure at TIME: exit 255: no route
      Oldest  ready for LONG (queue default)
      Workers  none
      Store  STORE
      "
    `);
    expect(await say('list')).toMatchInlineSnapshot(`
      "  #  TASK  SOURCE  REASON  ATTEMPTS  WHEN  ERROR
      ↻  5  sh -c 'echo no route >&2; exit 255'  cmd:sh  process.exit  1/3  in LONG  exit 255: no route
      ✓  4  sh -c 'exit 0'  cmd:sh  0/8  LONG ago
      ○  3  true  cmd:true  0/8  held: source held
      ⚑  2  mv FOLDER/a FOLDER/to/a  fs:MOUNT  fs.dest_exists  1/1  since LONG  EEXIST: file already exists, link 'FOLDER/a' -> 'FOLDER/to/a'
      ✕  1  sh -c 'echo "invalid IBAN DE00" >&2; exit 3'  cmd:sh  process.exit  1/1  LONG ago  exit 3: invalid IBAN DE00
      "
    `);
    expect(await say('show', '1')).toMatchInlineSnapshot(`
      "#1 sh -c 'echo "invalid IBAN DE00" >&2; exit 3'  ✕ dead at TIME
      type shell_command  queue default  source cmd:sh
      recorded TIME  one attempt
      attempts
        1  TIME  LONG  foreground-PID  ✕  process.exit  exit 3  → dead
        invalid IBAN DE00
      why  process.exit: attempt 1 of 1 failed.
      next  retry it  holdfast retry 1
      output holdfast logs 1
      input  {"argv":["sh","-c","echo \\"invalid IBAN DE00\\" >&2; exit 3"],"program":"PROGRAM","cwd":"FOLDER"}
      "
    `);
    expect(await say('explain', '5')).toMatchInlineSnapshot(`
      "↻ #5 shell_command is retrying: attempt 2 is due in LONG.
        why  process.exit: attempt 1 of 3 failed; next attempt in LONG (fixed LONG, retry 1). (LONG ago on foreground-PID)
        due  in LONG
        source  cmd:sh is not held
        queue  default is not paused
        worker  no worker is running  ← this would hold it
        fails  if it fails with process.exit again: again after LONG; it ends after 3 attempts: dead
        next  When it is due, it goes on when a worker runs that takes it.
        change  make it due now  holdfast retry 5
        start a worker  holdfast worker
        cancel it  holdfast cancel 5
      "
    `);
    expect(await say('inbox')).toMatchInlineSnapshot(`
      "⚑ #2 mv FOLDER/a FOLDER/to/a  fs:MOUNT  since LONG ago
        needs a person: fs.dest_exists: attempt 1 of 1 failed.
        EEXIST: file already exists, link 'FOLDER/a' -> 'FOLDER/to/a'
        Something stands at the destination already. Compare the two, and move or remove one of them.
        FOLDER/a  1 byte, changed TIME
        FOLDER/to/a  4 bytes, changed TIME
        keep both  holdfast resolve 2 --as keep-both  (what is there becomes FOLDER/to/a.before-2, and the move is tried again)
        overwrite  holdfast resolve 2 --as overwrite  (FOLDER/to/a is removed, and the move is tried again)
        skip  holdfast resolve 2 --as skip  (the source stays where it is, and the task is dead)
        it is done  holdfast resolve 2 --as succeeded
      "
    `);
    expect(await say('events')).toMatchInlineSnapshot(`
      "TIME  ✕ #1 shell_command  cmd:sh  process.exit: exit 3: invalid IBAN DE00  → dead
      TIME  ⚑ #2 file_move  fs:MOUNT  fs.dest_exists: EEXIST: file already exists, link 'FOLDER/a' -> 'FOLDER/to/a'  → needs_manual
      TIME  ⏸ source cmd:true  held by SOMEBODY the host moves
      TIME  ↻ #5 shell_command  cmd:sh  process.exit: exit 255: no route  → LONG (fixed LONG, retry 1)
      "
    `);
    expect(await say('wait', '1', '4')).toMatchInlineSnapshot(`
      "#1 ✕ dead: process.exit: attempt 1 of 1 failed.
      #4 ✓ succeeded
      "
    `);
    expect(await say('list', 'conector:x')).toMatchInlineSnapshot(`
      "error: unknown filter key "conector", at column 1
        conector:x
        ^^^^^^^^ did you mean "source"?  (exit 2)
      "
    `);
    expect(await say('show', '99999')).toMatchInlineSnapshot(`
      "error: no task #99999 in STORE
        The newest number is 5.
        all of them: holdfast list
        another store: --store PATH  (exit 3)
      "
    `);
    expect(await say('retry', '2')).toMatchInlineSnapshot(`
      "○ #2 due now, in a new round
      No worker is running: start holdfast worker, or use holdfast resume 2
      "
    `);
  });
});

function inShell(word: string): string {
  return /^[\w.:/=-]+$/.test(word) ? word : `'${word}'`;
}

/** Without what differs from run to run. */
function masked(text: string, { folder, env = {} }: Project): string {
  const address = new URL(env.HOLDFAST_STORE ?? 'file:///x');
  return text
    .replaceAll(folder, 'FOLDER')
    .replaceAll('FOLDER/.holdfast/holdfast.db', 'STORE')
    .replaceAll(`postgres://${address.host}${address.pathname}`, 'STORE')
    .replaceAll(/\d\d\d\d-\d\d-\d\dT[\d:.]+Z|\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d/g, 'TIME')
    .replaceAll(/\b[\d.]+(?:ms|s|m|h)(?:\d+(?:ms|s|m|h))*\b/g, 'LONG')
    .replaceAll('just now', 'LONG ago')
    .replaceAll(/\bby \S+/g, 'by SOMEBODY')
    .replaceAll(/"program":"[^"]*"/g, '"program":"PROGRAM"')
    .replaceAll(/fs:\/\S*/g, 'fs:MOUNT')
    .replaceAll(/foreground-\d+/g, 'foreground-PID')
    .replaceAll(/ {2,}/g, '  ');
}
