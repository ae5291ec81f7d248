import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  defineTask,
  exponential,
  Failed,
  jsonLog,
  LOG_EVENTS,
  type Logger,
  NeedsManual,
  PermanentFailure,
  RetryLater,
} from '../../src/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';
import { atOnce, gate, useFolder, useKits } from './scene.ts';

test('docs/reference/logs.md has a row for each event', () => {
  const page = readFileSync(new URL('../../docs/reference/logs.md', import.meta.url), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  expect(LOG_EVENTS.filter((event) => !rows.some((row) => row.split('|')[1]?.includes(`\`${event}\``)))).toEqual([]);
});

const open = useKits();
const folder = useFolder();

interface Line {
  readonly level: string;
  readonly event?: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

function listening(): { readonly lines: Line[]; readonly log: Logger; readonly eventsOf: (task: number) => string[] } {
  const lines: Line[] = [];
  const note = (level: string) => (fields: object, message: string) => void lines.push({ ...fields, level, message });
  const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
  const eventsOf = (task: number) => lines.filter((line) => line.task === task).map(({ event }) => event ?? '');
  return { lines, log, eventsOf };
}

const isEnd = (event: string) => event.startsWith('ended.');

/** A handler that goes through a script, an execution at a time. */
function scripted(...steps: readonly (() => unknown)[]) {
  return defineTask('work', {
    source: 'api:x',
    retry: { ...atOnce, maxAttempts: 3 },
    run: (_: unknown, task) => steps[task.execution - 1]?.(),
  });
}

const fail = () => {
  throw new Failed('busy', { reason: 'api.busy' });
};

describe('a log tells each thing that happens to a task once', () => {
  test('a first execution, retries, deferrals and the end apart', async () => {
    const { log, lines, eventsOf } = listening();
    const later = () => {
      throw new RetryLater('1m');
    };
    const work = scripted(fail, later, fail, () => 'done');
    const kit = await open({ tasks: [work], log });
    const { id } = await kit.holdfast.enqueue(work, { secret: 'hunter2' }, { key: 'k' });
    await kit.advance('2m');

    expect(eventsOf(id)).toEqual([
      'started.initial',
      'waiting.retry',
      'started.retry',
      'waiting.deferral',
      'started.deferral',
      'waiting.retry',
      'started.retry',
      'ended.succeeded',
    ]);
    expect(lines.filter(({ task }) => task === id)[1]).toMatchObject({
      level: 'warn',
      task: id,
      type: 'work',
      queue: 'default',
      source: 'api:x',
      key: 'k',
      worker: expect.any(String),
      execution: 1,
      attempt: 1,
      state: 'ready',
      reason: 'api.busy',
      kind: 'transient',
      fault: 'task',
      error: 'busy',
      retryInMs: 0,
      ranForMs: 0,
      step: 'retry',
      rule: 'policy',
      message: expect.stringMatching(/./),
    });
    expect(lines.at(-1)).toMatchObject({ level: 'info', execution: 4, attempt: 3, state: 'succeeded' });
    expect(JSON.stringify(lines)).not.toContain('hunter2');
    for (const { event } of lines) if (event !== undefined) expect(LOG_EVENTS).toContain(event);
  });

  test.each<[string, () => unknown, string, string]>([
    ['success', () => 'done', 'ended.succeeded', 'info'],
    ['exhausted attempts', fail, 'ended.dead', 'error'],
    [
      'a permanent failure',
      () => {
        throw new PermanentFailure('no');
      },
      'ended.dead',
      'error',
    ],
  ])('one end, by %s', async (_, step, event, level) => {
    const { log, lines, eventsOf } = listening();
    const work = scripted(step, step, step);
    const kit = await open({ tasks: [work], log });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.advance('1d');
    expect(eventsOf(id).filter(isEnd)).toEqual([event]);
    expect(lines.find((line) => line.event === event)).toMatchObject({ task: id, level });
  });

  test('one end, by a sweep of deadlines', async () => {
    const { log, eventsOf } = listening();
    const work = scripted();
    const kit = await open({ tasks: [work], log });
    await kit.holdfast.pauseQueue('default');
    const { id } = await kit.holdfast.enqueue(work, null, { deadline: new Date(kit.clock.now() + 60_000) });
    await kit.advance('1d');
    expect(eventsOf(id)).toEqual(['ended.dead']);
  });

  test('one end for one that needs a person, when a person answers', async () => {
    const { log, lines, eventsOf } = listening();
    const work = scripted(() => {
      throw new NeedsManual('which one?');
    });
    const kit = await open({ tasks: [work], log });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    expect(lines.at(-1)).toMatchObject({
      level: 'error',
      event: 'needs_manual',
      reason: 'explicit.needs_manual',
    });
    await kit.holdfast.resolve(id, { as: 'succeeded', actor: 'eva', note: 'found it' });
    await kit.advance('1d');
    expect(eventsOf(id)).toEqual(['started.initial', 'needs_manual', 'ended.succeeded']);
    expect(lines.at(-1)).toMatchObject({
      level: 'info',
      actor: 'eva',
      verb: 'resolve',
      note: 'found it',
      from: 'needs_manual',
      state: 'succeeded',
    });
  });

  test('one end for one that a person cancels, whether it waits or runs', async () => {
    const { log, eventsOf } = listening();
    const entered = gate();
    const work = defineTask('work', {
      async run(_: unknown, task) {
        entered.open();
        await new Promise((_, reject) => task.signal.addEventListener('abort', () => reject(task.signal.reason)));
      },
    });
    const kit = await open({ tasks: [work], log });
    const { id: waiting } = await kit.holdfast.enqueue(work, null, { delay: '9d' });
    const { id: running } = await kit.holdfast.enqueue(work, null);
    await entered.passed;
    await kit.holdfast.cancel(waiting);
    await kit.holdfast.cancel(running);
    await kit.advance('1d');
    expect(eventsOf(waiting)).toEqual(['ended.cancelled']);
    const ofRunning = eventsOf(running);
    expect(ofRunning.filter(isEnd)).toEqual(['ended.cancelled']);
    expect(ofRunning).toContain('cancel_requested');
  });

  test('one end for a task that a newer one replaced, while it waited or at its retry', async () => {
    const { log, lines, eventsOf } = listening();
    const entered = gate();
    const go = gate();
    const work = defineTask('work', {
      retry: atOnce,
      async run(_: unknown, task) {
        if (task.execution > 1 || task.id > 1) return;
        entered.open();
        await go.passed;
        throw new Error('no');
      },
    });
    const unique = { key: 'u', while: 'waiting', onConflict: 'replace' } as const;
    const kit = await open({ tasks: [work], log });
    const { id: first } = await kit.holdfast.enqueue(work, null, { unique });
    await entered.passed;
    const { id: second } = await kit.holdfast.enqueue(work, null, { unique, delay: '9d' });
    const { id: third } = await kit.holdfast.enqueue(work, null, { unique, delay: '1h' });
    go.open();
    await kit.advance('1d');
    expect(eventsOf(first).filter(isEnd)).toEqual(['ended.cancelled']);
    expect(eventsOf(second)).toEqual(['ended.cancelled']);
    expect(eventsOf(third)).toEqual(['started.initial', 'ended.succeeded']);
    for (const id of [first, second]) {
      expect(lines.find(({ task, event }) => task === id && event === 'ended.cancelled')).toMatchObject({
        reason: 'unique.superseded',
      });
    }
  });

  test('another end for another round', async () => {
    const { log, eventsOf } = listening();
    const work = scripted(() => {
      throw new PermanentFailure('no');
    });
    const kit = await open({ tasks: [work], log });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    await kit.holdfast.retry(id);
    await kit.advance('1d');
    expect(eventsOf(id).sort()).toEqual(
      ['started.initial', 'ended.dead', 'retried', 'started.initial', 'ended.succeeded'].sort(),
    );
  });

  test('a recovery, and one end, where the first worker comes back too late', async () => {
    const path = join(folder(), 'tasks.db');
    const [here, there] = [listening(), listening()];
    const entered = gate();
    const go = gate();
    const work = defineTask('work', {
      async run(_: unknown, task) {
        if (task.execution > 1) return;
        entered.open();
        await go.passed;
      },
    });
    const kit = await open({ tasks: [work], log: here.log, store: aStore(path), worker: { leaseFor: '30s' } });
    const { id } = await kit.holdfast.enqueue(work, null);
    await entered.passed;
    for (const { id: worker } of await kit.holdfast.workers()) await kit.holdfast.endWorker(worker);
    const other = await openTestHoldfast({
      tasks: [work],
      log: there.log,
      store: aStore(path),
      start: new Date(kit.clock.now()),
    });
    await other.drain();
    go.open();
    await kit.advance('1m');
    await other.close();

    expect(there.eventsOf(id)).toEqual(['waiting.recovery', 'started.recovery', 'ended.succeeded']);
    expect(here.eventsOf(id)).toEqual(['started.initial', 'lease_lost']);
    expect(there.lines.find(({ event }) => event === 'waiting.recovery')).toMatchObject({
      reason: 'worker.lost',
    });
  });

  test('a task that was handed back by a shutdown, and its next start', async () => {
    const path = join(folder(), 'tasks.db');
    const { log, eventsOf } = listening();
    const entered = gate();
    const work = defineTask('work', {
      async run(_: unknown, task) {
        if (task.execution > 1) return;
        entered.open();
        await new Promise((_, reject) => task.signal.addEventListener('abort', () => reject(task.signal.reason)));
      },
    });
    const kit = await open({ tasks: [work], log, store: aStore(path) });
    const { id } = await kit.holdfast.enqueue(work, null);
    await entered.passed;
    await kit.worker.stop({ grace: 0 });
    kit.holdfast.work({ leaseFor: '1d' });
    await kit.drain();
    expect(eventsOf(id)).toEqual(['started.initial', 'waiting.handed_back', 'started.again', 'ended.succeeded']);
  });

  test('steps of operators, to one of all logs, whichever process took them', async () => {
    const path = join(folder(), 'tasks.db');
    const [a, b] = [listening(), listening()];
    const work = scripted();
    const kit = await open({ tasks: [work], log: a.log, store: aStore(path) });
    const other = await openTestHoldfast({
      tasks: [work],
      log: b.log,
      store: aStore(path),
      start: new Date(kit.clock.now()),
    });
    const { id } = await kit.holdfast.enqueue(work, null, { delay: '10d' });
    await other.holdfast.hold(id, { actor: 'eva' });
    await other.holdfast.release(id);
    await other.holdfast.cancel(id);
    await Promise.all([kit.advance('1d'), other.advance('1d')]);
    await other.close();
    const all = [...a.lines, ...b.lines].filter(({ task }) => task === id).map(({ event }) => event);
    expect(all.sort()).toEqual(['ended.cancelled', 'held', 'released']);
  });

  test('tasks that were removed by retention, in one line', async () => {
    const { log, lines } = listening();
    const work = scripted();
    const kit = await open({ tasks: [work], log, worker: { retention: { succeeded: '1d' } } });
    await kit.holdfast.enqueueAll(work, [1, 2, 3]);
    await kit.advance('3d');
    expect(lines.filter(({ event }) => event === 'pruned')).toMatchObject([
      { level: 'info', removed: { succeeded: 3 } },
    ]);
  });
});

test('a log that does not take a level is spared its lines, and leaves the steps of operators to others', async () => {
  const path = join(folder(), 'tasks.db');
  const [few, all] = [listening(), listening()];
  const log: Logger = { ...few.log, isLevelEnabled: (level) => level === 'warn' || level === 'error' };
  const work = scripted();
  const kit = await open({ tasks: [work], log, store: aStore(path) });
  const { id } = await kit.holdfast.enqueue(work, null, { delay: '10d' });
  await kit.holdfast.cancel(id);
  await kit.holdfast.enqueue(work, null);
  await kit.advance('1h');
  expect(few.lines).toEqual([]);
  const other = await openTestHoldfast({
    tasks: [work],
    log: all.log,
    store: aStore(path),
    start: new Date(kit.clock.now()),
  });
  await other.drain();
  await other.close();
  expect(all.eventsOf(id)).toEqual(['ended.cancelled']);
});

test('docs/reference/logs.md shows a line as jsonLog writes it', async () => {
  const written: string[] = [];
  const mail = defineTask('mail', {
    source: 'imap:INBOX',
    retry: { maxAttempts: 3, backoff: exponential({ base: '1s', cap: '1h' }), jitter: 'none' },
    run: () => {
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read', errno: -104 });
    },
  });
  const log = jsonLog({ name: 'mailer', write: (line) => written.push(line) });
  const kit = await open({ tasks: [mail], log });
  await kit.holdfast.enqueue(mail, null);
  await kit.drain();

  const page = readFileSync(new URL('../../docs/reference/logs.md', import.meta.url), 'utf8');
  const shown = JSON.parse(/^```json\n(.*?)^```/ms.exec(page)?.[1] as string);
  const line = JSON.parse(written.find((text) => text.includes('waiting.retry')) as string);
  expect(Object.keys(line)).toEqual(Object.keys(shown));
  const differs = {
    policyVersion: '',
    time: 0,
    pid: 0,
    hostname: '',
    task: 0,
    worker: '',
    stack: '',
    fingerprint: '',
    ranForMs: 0,
  };
  expect({ ...line, ...differs }).toEqual({ ...shown, ...differs });
});

describe('jsonLog', () => {
  test('writes lines in the shape of pino', async () => {
    const written: string[] = [];
    const work = scripted();
    const log = jsonLog({
      write: (line) => written.push(line),
      level: 'debug',
      name: 'mailer',
      now: () => 1_700_000_000_000,
    });
    const kit = await open({ tasks: [work], log });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();

    expect(written.every((line) => line.endsWith('\n'))).toBe(true);
    const lines = written.map((line) => JSON.parse(line));
    expect(lines.map(({ level, event }) => [level, event])).toEqual([
      [20, 'started.initial'],
      [30, 'ended.succeeded'],
    ]);
    expect(Object.keys(lines[1]).slice(0, 5)).toEqual(['level', 'time', 'pid', 'hostname', 'name']);
    expect(lines[1]).toMatchObject({
      time: 1_700_000_000_000,
      pid: process.pid,
      hostname: expect.stringMatching(/./),
      name: 'mailer',
      task: id,
      execution: 1,
      attempt: 1,
      msg: expect.stringMatching(/./),
    });
  });

  test('takes lines from its level on, and errors with their code', () => {
    const written: string[] = [];
    const log = jsonLog({ write: (line) => written.push(line), level: 'warn' });
    log.info({}, 'no');
    log.error({ err: Object.assign(new Error('full'), { code: 'ENOSPC' }), n: 1n }, 'yes');
    expect(written).toHaveLength(1);
    expect(JSON.parse(written[0] as string)).toMatchObject({
      level: 50,
      name: 'holdfast',
      n: '1',
      msg: 'yes',
      err: { type: 'Error', message: 'full', code: 'ENOSPC', stack: expect.stringContaining('full') },
    });
    expect(log.isLevelEnabled?.('info')).toBe(false);
  });

  test.each<[object, string]>([
    [{}, 'write must be a function'],
    [{ write() {}, level: 'loud' }, 'level must be one of debug, info, warn, error'],
    [{ write() {}, levle: 'info' }, "no option 'levle'"],
  ])('refuses %j', (options, message) => {
    expect(() => jsonLog(options as never)).toThrow(message);
  });
});
