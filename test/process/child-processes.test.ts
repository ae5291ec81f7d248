import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { useFolder, usePrograms } from './children.ts';

const DIST = new URL('../../dist/', import.meta.url);
const front = new URL('index.js', DIST).href;
const store = new URL('store/sqlite/index.js', DIST).href;
// The child processes import what was built.
const { openHoldfast } = (await import(front)) as typeof import('../../src/index.ts');
const { sqlite } = (await import(store)) as typeof import('../../src/store/sqlite/index.ts');
const { blocking, child, elsewhere, exiting, lost, starting } = await import(
  new URL('child-task.mjs', import.meta.url).href
);

const { run, runIn, command } = usePrograms();
const folder = useFolder();

const pays = (reason: string, fault = 'task') => ({ charge: 'task', failure: { reason, fault } });
const PAYS_NOTHING = { charge: 'deferrals', failure: { reason: 'process.not_loaded', fault: 'worker' } };
const succeeds = (result: unknown) => ({ task: { state: 'succeeded', result } });

/** What a handler in a child process does, and how its task ends. */
const TABLE: readonly (readonly [name: string, type: string, how: string, end: object])[] = [
  ['reads its task', 'child', 'result', succeeds({ type: 'child', attempt: 1, submitted: true })],
  [
    'saves its progress and checkpoint',
    'child',
    'checkpoint twice',
    { task: { result: { page: 2 }, progress: 'half' } },
  ],
  ['sees why a checkpoint is refused', 'child', 'refused checkpoint', succeeds('payload_rejected at $')],
  ['succeeds if its result cannot be kept', 'child', 'refused result', { task: { state: 'succeeded' } }],
  ['may send messages of its own, which nobody reads', 'child', 'own messages', succeeds('done')],
  ['asks for a wait', 'child', 'later', { task: { state: 'scheduled', attempts: 0, reason: 'mail.not_yet' } }],
  ['fails with a reason', 'child', 'reason', pays('order.closed')],
  ['returns a signal', 'child', 'signal', { task: { state: 'needs_manual' } }],
  ['throws an error with a getter', 'child', 'getter', pays('http.5xx', 'source')],
  ['throws an error with a cause', 'child', 'cause', pays('net.refused', 'source')],
  ['fails with an error that nobody waits for', 'child', 'stray', pays('net.reset', 'source')],
  ['pays for its SIGKILL', 'child', 'killed', pays('process.killed')],
  ['pays for its crash', 'child', 'crash', pays('process.crashed')],
  ['pays for an exit without an answer', 'child', 'exit 0', pays('process.exit')],
  ['pays if it closes its channel', 'child', 'closed channel', pays('process.killed')],
  ['pays for memory beyond its limit', 'child', 'memory', pays('process.out_of_memory')],
  ['is killed if it blocks longer than its timeout', 'blocking', '', pays('timeout')],
  ['pays nothing if its module lacks the type', 'elsewhere', '', PAYS_NOTHING],
  ['pays nothing if its module ends the process', 'exiting', '', PAYS_NOTHING],
  [
    'is refused a worker of its own',
    'starting',
    '',
    { ...PAYS_NOTHING, failure: { message: expect.stringContaining('imported a module that starts a worker') } },
  ],
  ['pays nothing if its module does not exist', 'lost', '', PAYS_NOTHING],
];

test('a handler in a child process does what it could do in its worker, and pays only for itself', async () => {
  const path = join(folder(), 'tasks.db');
  const holdfast = await openHoldfast({
    store: sqlite(path),
    tasks: [blocking, child, elsewhere, exiting, lost, starting],
  });
  const ids = await Promise.all(TABLE.map(async ([, type, how]) => (await holdfast.enqueue(type, { how })).id));
  await holdfast.worker({ concurrency: 6, grace: '500ms' }).drain();

  for (const [at, [name, , , end]] of TABLE.entries()) {
    const id = ids[at] as number;
    const last = (await holdfast.history(id)).at(-1);
    expect.soft({ ...last, task: await holdfast.get(id) }, name).toMatchObject(end);
  }
  await holdfast.close();
});

test('a child process that cannot be started costs its task nothing', async () => {
  const program = command('workWithoutFiles', join(folder(), 'tasks.db'));
  const said = await runIn('sh', ['-c', 'ulimit -n 200; exec "$@"', 'sh', ...program]).endsWell();
  expect(said).toContainEqual({ reason: 'fs.too_many_files', charge: 'deferrals' });
});

describe('a child process', () => {
  const isGone = async (pid: number) => {
    while (existsSync(`/proc/${pid}/stat`) && !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z'))
      await delay(20);
    return true;
  };
  /** Starts a worker whose child does this, and waits until its handler runs. */
  const working = async (how: string) => {
    const path = join(folder(), 'tasks.db');
    const witness = join(folder(), 'witness');
    const holdfast = await openHoldfast({ store: sqlite(path), tasks: [child] });
    const { id } = await holdfast.enqueue(child, { how, witness });
    const worker = run('worker', path, { name: 'first', worker: { leaseFor: '1s' } });
    while (!existsSync(witness) || readFileSync(witness, 'utf8') === '') await delay(20);
    return { holdfast, id, worker, pid: Number(readFileSync(witness, 'utf8')) };
  };

  test.each(['wait for abort', 'block'])('ends with its killed worker: %s', async (how) => {
    const { holdfast, id, worker, pid } = await working(how);
    worker.signal('SIGKILL');
    expect(await isGone(pid)).toBe(true);

    // Another worker takes the task over, and the lost worker is at fault.
    await holdfast.cancel(id);
    await holdfast.worker({ types: ['child'] }).drain();
    const loss = (await holdfast.history(id)).find(({ kind }) => kind === 'execution');
    expect(loss).toMatchObject({ outcome: 'loss', worker: 'first', charge: 'nobody' });
    await holdfast.close();
  });

  test('takes along the programs that its handler started', async () => {
    const holdfast = await openHoldfast({ store: sqlite(join(folder(), 'tasks.db')), tasks: [child] });
    const { id } = await holdfast.enqueue(child, { how: 'leave a program' });
    await holdfast.worker().drain();
    expect(await isGone((await holdfast.get(id)).result as number)).toBe(true);
    await holdfast.close();
  });

  test('leaves a signal to its worker, is told of a cancel, and may still succeed', async () => {
    const { holdfast, id, worker, pid } = await working('finish when aborted');
    process.kill(pid, 'SIGTERM');
    await holdfast.cancel(id);
    await worker.says({ settled: id, state: 'succeeded' });
    expect(await holdfast.get(id)).toMatchObject({ result: 'AbortError' });
    await holdfast.close();
  });
});
