import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { formatDuration } from '../../../src/duration.ts';
import type { Decision } from '../../../src/failure/decide.ts';
import type { TaskFilter } from '../../../src/filter.ts';
import type { EventSpan, ListFilter, NewTask, Slice } from '../../../src/store/store.ts';
import { TASK_STATES } from '../../../src/task.ts';
import {
  because,
  deferredFor,
  ended,
  failure,
  LEASE,
  newTask,
  retryIn,
  type Scene,
  type StoreFactory,
  succeeded,
  useScene,
} from '../scene.ts';

export function promisesOfRecords(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('tells since when the oldest ready task of each fifo queue waits', async () => {
    await scene.store.sources.setUp('last', { order: 'lifo' });
    const at = scene.now();
    await scene.enqueue({ submittedAt: at - 5_000, source: 'a' }, { submittedAt: at - 9_000, source: 'b' });
    await scene.enqueue({ queue: 'other' }, { queue: 'last' }, { queue: 'later', delay: 1_000 });
    await scene.claim(await scene.join(), { queues: ['default'], limit: 1 });
    expect(await scene.store.records.oldestReady()).toEqual([
      { queue: 'default', since: at - 5_000 },
      { queue: 'other', since: at },
    ]);
    scene.advance(1_000);
    await scene.claim(await scene.join(), { queues: ['default', 'last'] });
    expect(await scene.store.records.oldestRunning()).toEqual([
      { queue: 'default', since: at },
      { queue: 'last', since: at + 1_000 },
    ]);
  });

  test('tells since when the oldest ready task waits, whether its source is held, was held, or its queue is fair', async () => {
    const { sources, records } = scene.store;
    const by = { actor: 'eva', origin: 'person' } as const;
    await sources.setUp('fair', { fair: true });
    const at = scene.now();
    const ages = [3_000, 9_000, 1_000, 5_000];
    const tasks = ages.map((age, i) => ({ submittedAt: at - age, source: `s${i}` }));
    await scene.enqueue(...tasks, ...tasks.map((task) => ({ ...task, queue: 'fair' })));
    const oldest = (age: number) => ['default', 'fair'].map((queue) => ({ queue, since: at - age }));
    expect(await records.oldestReady()).toEqual(oldest(9_000));

    const worker = await scene.join();
    await sources.hold('s1', by);
    for (const queue of ['default', 'fair']) await scene.claim(worker, { queues: [queue], limit: 1 });
    expect(await records.oldestReady()).toEqual(oldest(9_000));
    await sources.release('s1', by);
    for (const queue of ['default', 'fair']) await scene.claim(worker, { queues: [queue], limit: 3 });
    expect(await records.oldestReady()).toEqual([]);
  });

  test('returns what was last published about a type, and nothing if nothing was', async () => {
    const { records } = scene.store;
    await scene.join('alice', { publishes: { mail: '{"maxAttempts":2}', sms: '{}' } });
    expect(await records.published('mail')).toBe('{"maxAttempts":2}');
    await scene.join('bob', { publishes: { mail: '{"maxAttempts":3}' } });
    expect(await records.published('mail')).toBe('{"maxAttempts":3}');
    await scene.store.tasks.publish({ mail: '{"maxAttempts":4}' }, []);
    expect(await records.published('mail')).toBe('{"maxAttempts":4}');
    expect(await records.published('sms')).toBe('{}');
    expect(await records.published('Mail')).toBeUndefined();
  });

  test('returns which versions of policies a worker published, and since when', async () => {
    const { records, tasks, upkeep } = scene.store;
    const publishes = { mail: '{"version":"a"}', odd: '4' };
    const [alice] = [await scene.join('alice', { publishes }), await scene.join('bob')];
    const since = upkeep.now();
    const policies = async () => (await records.workers()).map((worker) => worker.policies);
    expect(await policies()).toEqual([{ since, of: { mail: 'a' } }, undefined]);
    scene.advance(60_000);
    await tasks.publish({ mail: '{"version":"b"}' }, [alice]);
    expect(await policies()).toEqual([{ since: since + 60_000, of: { mail: 'b' } }, undefined]);
  });

  test('returns which worker took a type last, also after it has gone', async () => {
    const { records, tasks } = scene.store;
    const worker = (types: readonly string[], program: string) => ({
      takes: { types, capabilities: {} },
      publishes: Object.fromEntries(types.map((type) => [type, '{}'])),
      program,
    });
    const alice = await scene.join('alice', worker(['mail', 'sms'], '/srv/a.js'));
    await scene.join('none', worker([], '/srv/none.js'));
    const ofAlice = { worker: 'alice', host: hostname(), program: '/srv/a.js' };
    expect((await records.workers()).map(({ program }) => program)).toEqual(['/srv/a.js', '/srv/none.js']);
    expect(await records.lastTakers(['sms', 'fax', 'mail'])).toEqual([
      { type: 'sms', ...ofAlice, at: scene.now() },
      { type: 'mail', ...ofAlice, at: scene.now() },
    ]);

    const left = scene.now();
    await tasks.leave(alice);
    scene.advance(LEASE * 10);
    expect(await records.lastTakers(['mail'])).toEqual([{ type: 'mail', ...ofAlice, at: left }]);
    const bob = await scene.join('bob', { takes: { types: ['mail'], capabilities: {} } });
    const joined = scene.now();
    scene.advance(LEASE * 10);
    expect(await records.lastTakers(['mail', 'sms'])).toMatchObject([
      { type: 'mail', worker: 'bob', at: joined + LEASE },
      { type: 'sms', worker: 'alice', at: left },
    ]);
    await tasks.leave(bob);
    expect(await records.lastTakers(['mail'])).toEqual([
      { type: 'mail', worker: 'bob', host: hostname(), at: joined + LEASE },
    ]);
  });

  test('returns what happened to all tasks in a span of time, in either order', async () => {
    const worker = await scene.join();
    const start = scene.now();
    const [a, b] = (await scene.enqueue({ type: 'mail', source: 's', queue: 'q' }, {})) as [number, number];
    await scene.settle(await scene.claimTask(worker, a), retryIn(0, 'net.timeout'));
    scene.advance(1_000);
    await scene.move(b, { verb: 'hold' });
    scene.advance(1_000);
    await scene.settle(await scene.claimTask(worker, a), ended('dead', 'net.timeout'));
    await scene.settle(await scene.start(worker), succeeded());

    const read = async (span: Partial<EventSpan>) => {
      const all = { from: 0, before: Number.MAX_SAFE_INTEGER, limit: 10, newestFirst: false, ...span };
      return scene.store.records.events(all);
    };
    const all = await read({});
    expect(all).toMatchObject([
      { at: start, task: a, type: 'mail', source: 's', queue: 'q', entry: { kind: 'execution', next: 'scheduled' } },
      { at: start + 1_000, task: b, entry: { kind: 'action', verb: 'hold', to: 'held' } },
      { at: start + 2_000, task: a, entry: { kind: 'execution', next: 'dead' } },
    ]);
    expect(new Set(all.map(({ id }) => id)).size).toBe(3);
    expect(all[0]?.entry).toEqual((await scene.store.records.history(a))[0]);
    expect(await read({ newestFirst: true })).toEqual(all.toReversed());
    expect(await read({ newestFirst: true, limit: 2 })).toEqual(all.toReversed().slice(0, 2));
    expect(await read({ limit: 2 })).toEqual(all.slice(0, 2));
    expect(await read({ from: start + 1_000, before: start + 2_000 })).toEqual(all.slice(1, 2));
    expect(await read({ from: start + 2_001 })).toEqual([]);
    expect(await read({ before: start, newestFirst: true })).toEqual([]);
  });

  describe('lists', () => promisesOfLists(scene));
  describe('counts', () => promisesOfCounts(scene));
  describe('values', () => promisesOfValues(scene));

  test('finds a task by its id, and nothing where there is none', async () => {
    const id = await scene.enqueueOne();
    expect(await scene.store.records.find(id)).toMatchObject({ id });
    expect(await scene.store.records.find(999_999)).toBeUndefined();
    expect(await scene.store.records.history(999_999)).toEqual([]);
  });

  test('has the facts of a waiting task as its next claim hands them out, and of a running one as it was claimed', async () => {
    const worker = await scene.join();
    const [imported] = await scene.import({ deferrals: 99, executions: 120 });
    const deadline = scene.now() + 3_600_000;
    const [failed, deferred, again, fresh] = (await scene.enqueue(
      { deadline },
      {},
      { idempotent: false },
      {},
    )) as number[];
    await scene.settle(await scene.claimTask(worker, failed as number), retryIn(1_000));
    await scene.settle(await scene.claimTask(worker, deferred as number), deferredFor(1_000));
    await scene.settle(await scene.claimTask(worker, again as number), ended('dead'));
    scene.advance(1_000);
    await scene.move(again as number, { verb: 'retry' });
    scene.advance(500);

    const { records } = scene.store;
    for (const id of [imported, failed, deferred, again, fresh] as number[]) {
      const before = await records.facts(id);
      const { facts } = await scene.claimTask(worker, id);
      expect(before, `facts of #${id}`).toEqual(facts);
      expect(await records.facts(id)).toEqual(facts);
    }
    expect(await records.facts(imported as number)).toMatchObject({ deferralsInARow: 99 });
    expect(await records.facts(999_999)).toBeUndefined();
  });

  test('finds a task by its key: of the type that was named, else the newest', async () => {
    const [a, b] = await scene.enqueue({ type: 'a', key: 'k' }, { type: 'b', key: 'k' });
    await scene.enqueue({ type: 'c', key: 'other' });

    expect((await scene.store.records.find({ key: 'k', type: 'a' }))?.id).toBe(a);
    expect((await scene.store.records.find({ key: 'k' }))?.id).toBe(b);
    expect(await scene.store.records.find({ key: 'k', type: 'c' })).toBeUndefined();
    expect(await scene.store.records.find({ key: 'K' })).toBeUndefined();
  });

  test('finds a task by its key after it has ended', async () => {
    const claimed = await scene.start(await scene.join(), { key: 'k' });
    await scene.settle(claimed, succeeded());
    expect(await scene.store.records.find({ key: 'k' })).toMatchObject({ id: claimed.lease.task, state: 'succeeded' });
  });

  test('tells when an execution began, whose it is, and that a task waits for its time', async () => {
    const worker = await scene.join('alice');
    scene.advance(1_000);
    const claimed = await scene.start(worker);
    const since = scene.now();
    scene.advance(5_000);
    expect((await scene.find(claimed.lease.task)).running).toEqual({ worker: 'alice', since, cancelRequested: false });

    await scene.settle(claimed, deferredFor(60_000));
    const record = await scene.find(claimed.lease.task);
    expect(record).toMatchObject({ state: 'scheduled', dueAt: scene.now() + 60_000, deferrals: 1 });
    expect(record.running).toBeUndefined();
  });

  test('knows the workers: their names, where they run, their leases, what they take, and how much they run', async () => {
    const joinedAt = scene.now();
    const alice = await scene.join('alice');
    scene.advance(1_000);
    const takes = { types: ['mail'], queues: ['a', 'b'], capabilities: { gpu: true } };
    const bob = await scene.join('bob', { leaseFor: 60_000, takes });
    await scene.start(alice);
    const done = await scene.start(alice);
    await scene.settle(done, succeeded());
    await scene.start(alice);

    const workers = await scene.store.records.workers();
    expect(workers.toSorted((a, b) => a.id - b.id)).toEqual([
      {
        id: alice,
        name: 'alice',
        host: expect.any(String),
        pid: process.pid,
        joinedAt,
        leaseUntil: joinedAt + LEASE,
        keepsTasks: true,
        running: 2,
        takes: { capabilities: {} },
      },
      {
        id: bob,
        name: 'bob',
        host: expect.any(String),
        pid: process.pid,
        joinedAt: joinedAt + 1_000,
        leaseUntil: joinedAt + 61_000,
        keepsTasks: true,
        running: 0,
        takes,
      },
    ]);
  });

  test('says whether the tasks of a worker are still its own', async () => {
    const ids = [
      await scene.join('renews no more'),
      await scene.join('may go on', { mayRunFor: 600_000 }),
      await scene.join('may go on for ever', { mayRunFor: 'none' }),
    ];
    const kept = async () => {
      const workers = await scene.store.records.workers();
      return ids.map((id) => workers.find((worker) => worker.id === id)?.keepsTasks);
    };

    expect(await kept()).toEqual([true, true, true]);
    scene.advance(LEASE + 1);
    expect(await kept()).toEqual([false, true, true]);
  });

  test('keeps history in the order in which it happened, acts and executions together', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    const happen = async (step: () => Promise<unknown>) => {
      await step();
      scene.advance(1_000);
    };
    await happen(() => scene.move(id, { verb: 'hold' }));
    await happen(() => scene.move(id, { verb: 'release' }));
    await happen(async () => scene.settle(await scene.claimTask(worker, id), retryIn(0)));
    await happen(async () => scene.settle(await scene.claimTask(worker, id), ended('dead')));
    await happen(() => scene.move(id, { verb: 'retry' }));
    await happen(async () => scene.settle(await scene.claimTask(worker, id), retryIn(0)));

    const history = await scene.store.records.history(id);
    expect(
      history.map((entry) => (entry.kind === 'execution' ? entry.next : entry.kind === 'action' && entry.verb)),
    ).toEqual(['hold', 'release', 'scheduled', 'dead', 'retry', 'scheduled']);
    const times = history.map((entry) => (entry.kind === 'execution' ? entry.endedAt : entry.at));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  test('keeps what each of many equal failures said, its wait and its random number', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    const waits = [61_000, 62_000, 63_000, 64_000];
    const given = waits.map((after, i) => {
      const text = `net.reset: attempt 1 of 5 failed; next attempt in ${formatDuration(after)} (exponential).`;
      const jitter = { low: 60_000, high: 70_000, roll: i / 10, density: 0.0001 };
      return {
        failure: { ...failure('net.reset'), message: `socket ${i % 2} hung up` },
        because: { ...because('retry', { jitter }), text },
      };
    });
    for (const [i, { failure, because }] of given.entries()) {
      const decision: Decision = { ...retryIn(waits[i] as number, 'net.reset'), because };
      const report = { ranFor: 5, outcome: 'failure', failure };
      await scene.settle(await scene.claimTask(worker, id), decision, { report });
      await scene.move(id, { verb: 'retry' });
    }
    const history = await scene.store.records.history(id);
    expect(
      history.flatMap((entry) =>
        entry.kind === 'execution' ? [{ failure: entry.failure, because: entry.because }] : [],
      ),
    ).toEqual(given);
  });

  test('keeps stray errors of an execution, of running and of ended tasks; they are not handed out as actions', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const id = claimed.lease.task;
    const stray = { task: id, execution: 1, worker: 'alice', failure: failure() };

    await scene.store.tasks.recordStray(stray);
    await scene.settle(claimed, succeeded());
    scene.advance(1_000);
    await scene.store.tasks.recordStray(stray);
    await scene.store.tasks.recordStray({ ...stray, task: id + 1_000 });

    const at = scene.now();
    const entry = { kind: 'stray', execution: 1, worker: 'alice', failure: failure() };
    expect(await scene.store.records.history(id)).toEqual([
      { ...entry, at: at - 1_000 },
      { ...entry, at },
    ]);
    expect(await scene.store.records.history(id + 1_000)).toEqual([]);
    expect(await scene.store.upkeep.takeActions(100)).toEqual([]);
    expect(await scene.stateOf(id)).toBe('succeeded');
  });

  test('keeps history in order when all of it happened in one moment', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    await scene.move(id, { verb: 'hold' });
    await scene.move(id, { verb: 'release' });
    await scene.settle(await scene.claimTask(worker, id), ended('dead'));
    await scene.move(id, { verb: 'retry' });
    await scene.settle(await scene.claimTask(worker, id), retryIn(0));

    const history = await scene.store.records.history(id);
    expect(
      history.map((entry) => (entry.kind === 'execution' ? entry.next : entry.kind === 'action' && entry.verb)),
    ).toEqual(['hold', 'release', 'dead', 'retry', 'scheduled']);
  });
}

function promisesOfLists(scene: Scene): void {
  async function list(filter: Partial<ListFilter>): Promise<number[]> {
    return (await scene.store.records.list({ limit: 100, ...filter })).map(({ id }) => id);
  }

  test('show the newest first, a page at a time', async () => {
    const ids = await scene.enqueue(...Array.from({ length: 25 }, () => ({})));
    const newest = ids.toReversed();

    expect(await list({})).toEqual(newest);
    const pages: number[][] = [];
    for (let before: number | undefined; pages.length < 4; before = pages.at(-1)?.at(-1)) {
      pages.push(await list({ limit: 10, ...(before !== undefined && { before }) }));
      if (pages.at(-1)?.length === 0) break;
    }
    expect(pages.flat()).toEqual(newest);
    expect(pages.map(({ length }) => length)).toEqual([10, 10, 5, 0]);
    expect(await list({ limit: 0 })).toEqual([]);
    expect(await list({ before: ids[0] as number })).toEqual([]);
  });

  test('show whole records', async () => {
    const id = await scene.enqueueOne({ category: 'c', needs: { cpu: 1 }, key: 'k', policy: '{}' });
    expect(await scene.store.records.list({ limit: 10 })).toEqual([await scene.find(id)]);
  });

  test.each(TASK_STATES)('filter by the state %s', async (state) => {
    const ids = new Map<string, number>();
    for (const each of TASK_STATES) ids.set(each, await scene.taskIn(each));

    expect(await list({ states: [state] })).toEqual([ids.get(state)]);
  });

  test('filter by several states at once, page by page', async () => {
    const ids: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (const state of ['ready', 'dead', 'running', 'held'] as const) ids.push(await scene.taskIn(state));
    }
    const wanted = ids.filter((_, n) => n % 4 !== 1).toReversed();

    expect(await list({ states: ['ready', 'running', 'held'] })).toEqual(wanted);
    expect(await list({ states: ['ready', 'running', 'held'], limit: 4 })).toEqual(wanted.slice(0, 4));
    expect(await list({ states: ['ready', 'running', 'held'], before: wanted[3] as number })).toEqual(wanted.slice(4));
    expect(await list({ states: [] })).toEqual([]);
    expect(await list({ states: [...TASK_STATES] })).toEqual(ids.toReversed());
  });

  test.each([
    ['types', 'type'],
    ['queues', 'queue'],
    ['sources', 'source'],
  ] as const)('filter by %s', async (filter, field) => {
    const tasks: Partial<NewTask>[] = ['a', 'b', 'a', 'c', "it's"].map((value) => ({ [field]: value }));
    const ids = (await scene.enqueue(...tasks)) as [number, number, number, number, number];

    expect(await list({ [filter]: ['a'] })).toEqual([ids[2], ids[0]]);
    expect(await list({ [filter]: ['c', 'b', "it's"] })).toEqual([ids[4], ids[3], ids[1]]);
    expect(await list({ [filter]: ['never-seen'] })).toEqual([]);
    expect(await list({ [filter]: [] })).toEqual([]);
  });

  test('filter by the reason of the last decision', async () => {
    const worker = await scene.join();
    const settle = async (reason: string) => {
      const claimed = await scene.start(worker);
      await scene.settle(claimed, reason === 'http.503' ? retryIn(5_000, reason) : ended('dead', reason));
      return claimed.lease.task;
    };
    const [a, b, c] = [await settle('fs.locked'), await settle('http.503'), await settle('fs.locked')];
    await scene.enqueueOne();

    expect(await list({ reasons: ['fs.locked'] })).toEqual([c, a]);
    expect(await list({ reasons: ['http.503', 'fs.locked'] })).toEqual([c, b, a]);
    expect(await list({ reasons: ['never-seen'] })).toEqual([]);
  });

  describe('filter', () => {
    /** Three that ended at one time each, one that is held, one that waits. */
    async function tasks() {
      const worker = await scene.join('stager');
      const ids: number[] = [];
      const end = async (reason: string, error: string, fingerprint: string, task: Partial<NewTask>) => {
        const claimed = await scene.start(worker, task);
        const failed = { ...failure(reason), fingerprint, message: error };
        await scene.settle(claimed, ended('dead', reason), {
          report: { ranFor: 5, outcome: 'failure', failure: failed },
        });
        ids.push(claimed.lease.task);
        scene.advance(1_000);
      };
      await end('http.503', 'The call TIMED OUT', 'f:1', { type: 'sync', source: 'imap:a' });
      await end('http', 'refused 100%', 'f:2', { type: 'sync_all', source: 'imap:b', queue: 'night' });
      await end('fs.locked', 'EBUSY: timed out', 'f:1', { type: 's*', source: 'imapx', priority: 7 });
      const [held, waits] = (await scene.enqueue(
        { type: 'sync', source: 'x', priority: 5 },
        { source: 'im[a]p_c' },
      )) as [number, number];
      await scene.move(held, { verb: 'hold' });
      return [...ids, held, waits];
    }

    const cases: readonly [string, Partial<ListFilter>, number[]][] = [
      ['a family', { reasons: [], families: ['http'] }, [1, 0]],
      ['a family or a reason', { reasons: ['fs.locked'], families: ['http'] }, [2, 1, 0]],
      ['a pattern', { sources: [], like: { sources: ['imap:*'] } }, [1, 0]],
      ['a pattern with characters that SQL knows', { sources: [], like: { sources: ['im[a]p_*'] } }, [4]],
      ['a pattern or a name', { types: ['s*'], like: { types: ['*_all'] } }, [2, 1]],
      ['patterns of several columns', { types: [], queues: [], like: { types: ['sync*'], queues: ['n*t'] } }, [1]],
      ['a text in the error', { errors: ['timed out'] }, [2, 0]],
      ['one of several texts', { errors: ['100%', 'ebusy'] }, [2, 1]],
      ['a fingerprint', { fingerprints: ['f:1'] }, [2, 0]],
      ['what it is not', { not: { types: ['sync'] } }, [4, 2, 1]],
      ['reasons that it has not', { not: { reasons: ['fs.locked'], families: ['http'] } }, [4, 3]],
      ['errors and fingerprints that it has not', { not: { errors: ['refused'], fingerprints: ['f:1'] } }, [4, 3]],
      ['nothing that it must not be', { states: ['dead'], not: { types: [] } }, [2, 1, 0]],
      ['how many attempts it had', { attempts: [{ from: 1 }] }, [2, 1, 0]],
      ['no attempts', { attempts: [{ to: 0 }] }, [4, 3]],
      ['its executions', { executions: [{ from: 1, to: 1 }] }, [2, 1, 0]],
      ['one of several ranges of its priority', { priority: [{ from: 5, to: 5 }, { from: 7 }] }, [3, 2]],
      ['a priority that it has not', { not: { priority: [{ from: 5 }] } }, [4, 1, 0]],
      ['no range at all', { priority: [] }, []],
      ['when it ended', { endedFrom: 1_000 }, [3, 2, 1]],
      ['before when it ended', { endedBefore: 1_000 }, [0]],
      [
        'all at once',
        {
          states: ['dead'],
          types: [],
          like: { types: ['s*'] },
          not: { queues: ['night'] },
          errors: ['out'],
          endedFrom: 0,
        },
        [2, 0],
      ],
    ];

    test('by what a filter can say', async () => {
      const start = scene.now();
      const ids = await tasks();
      for (const [by, { endedFrom, endedBefore, ...traits }, wanted] of cases) {
        const filter = {
          ...traits,
          ...(endedFrom !== undefined && { endedFrom: start + endedFrom }),
          ...(endedBefore !== undefined && { endedBefore: start + endedBefore }),
        };
        const found = wanted.map((n) => ids[n] as number);
        expect([by, await list(filter)]).toEqual([by, found]);
        expect([by, await scene.store.records.select(filter)]).toEqual([by, { ids: found }]);
      }
    });

    test('in slices that together have each task once', async () => {
      await scene.enqueue(...Array.from({ length: 25 }, (_, n) => ({ type: n % 2 ? 'a' : 'b' })));
      const ids: number[] = [];
      for (let before: number | undefined; ; ) {
        const filter = { types: [], like: { types: ['*a'] } };
        const slice = await scene.store.records.select(filter, { size: 4, ...(before !== undefined && { before }) });
        ids.push(...slice.ids);
        if (slice.next === undefined) break;
        before = slice.next;
      }
      expect(ids).toHaveLength(12);
      expect(ids).toEqual([...new Set(ids)].sort((a, b) => b - a));
    });

    test('with few tasks at a time, and says where to go on', async () => {
      const ids = await scene.enqueue(...Array.from({ length: 9 }, (_, n) => ({ priority: n % 3 })));
      const [one, two, five] = [ids[0], ids[1], ids[4]] as [number, number, number];
      const select = (filter: TaskFilter, slice: Slice) => scene.store.records.select(filter, slice);
      const of = { priority: [{ from: 1, to: 1 }] };

      expect(await select(of, { compared: 4 })).toEqual({ ids: [ids[7]], next: ids[5] });
      expect(await select(of, { compared: 4, before: ids[5] as number })).toEqual({ ids: [five, two], next: two });
      expect(await select(of, { compared: 4, before: two })).toEqual({ ids: [] });
      expect(await select(of, { compared: 8, size: 1 })).toEqual({ ids: [ids[7]], next: ids[7] });
      expect(await select({ ...of, states: ['ready'] }, { compared: 9 })).toEqual({
        ids: [ids[7], five, two],
        next: one,
      });
      expect(await select({ ...of, states: ['dead'] }, { compared: 9 })).toEqual({ ids: [] });
      await scene.move(ids[8] as number, { verb: 'hold' });
      await scene.move(ids[7] as number, { verb: 'hold' });
      expect(await select(of, { compared: 3 })).toEqual({ ids: [ids[7]], next: ids[6] });
      expect(await select({ ...of, states: ['ready', 'held'] }, { compared: 3 })).toEqual({
        ids: [ids[7]],
        next: ids[6],
      });
      await scene.move(ids[8] as number, { verb: 'release' });
      await scene.move(ids[7] as number, { verb: 'release' });
      // Without more than states nothing is compared.
      expect(await select({ states: ['ready'] }, { compared: 2, size: 3 })).toEqual({
        ids: ids.toReversed().slice(0, 3),
        next: ids[6],
      });
      expect(await select({ types: ['unknown'] }, { compared: 2 })).toEqual({ ids: [] });
      expect(await scene.store.records.records([two, 4_711, five])).toEqual([
        await scene.find(five),
        await scene.find(two),
      ]);
      expect(await scene.store.records.records([])).toEqual([]);
    });

    test('and tell the last executions of several tasks', async () => {
      const worker = await scene.join();
      const [fresh] = (await scene.enqueue({ delay: 60_000 })) as [number];
      const failed = await scene.start(worker);
      await scene.settle(failed, retryIn(0, 'net.reset'), {
        report: { ranFor: 5, outcome: 'failure', failure: failure('net.reset') },
      });
      const again = await scene.claimTask(worker, failed.lease.task);
      await scene.settle(again, retryIn(5_000, 'explicit.later'), {
        report: { ranFor: 5, outcome: 'deferral', message: 'Later.' },
      });
      const task = failed.lease.task;

      const { lastExecutions, history } = scene.store.records;
      const [first, last] = await history.call(scene.store.records, task);
      const ask = (which: 'any' | 'failed') => lastExecutions.call(scene.store.records, [fresh, task, 4_711], which);
      expect(await ask('any')).toEqual(new Map([[task, last]]));
      expect(await ask('failed')).toEqual(new Map([[task, first]]));
    });
  });

  test('apply all filters together', async () => {
    const worker = await scene.join();
    const whole = { type: 'a', queue: 'q', source: 's' };
    const ids = (await scene.enqueue(
      whole,
      { ...whole, type: 'b' },
      { ...whole, queue: 'r' },
      { ...whole, source: 't' },
      whole,
    )) as [number, number, number, number, number];
    for (const claimed of await scene.claim(worker)) await scene.settle(claimed, ended('dead', 'x.y'));
    const [other] = await scene.enqueue(whole);

    const filter = { types: ['a'], queues: ['q'], sources: ['s'], reasons: ['x.y'], states: ['dead'] } as const;
    expect(await list(filter)).toEqual([ids[4], ids[0]]);
    expect(await list({ ...filter, before: ids[4] })).toEqual([ids[0]]);
    expect(await list({ types: ['a'], queues: ['q'], sources: ['s'] })).toEqual([other, ids[4], ids[0]]);
  });
}

function promisesOfCounts(scene: Scene): void {
  const none = Object.fromEntries(TASK_STATES.map((state) => [state, 0]));

  test('are zero in an empty store', async () => {
    expect(await scene.store.records.counts()).toEqual({ byState: none, retrying: 0, due: 0, byReason: [] });
  });

  test('name every state', async () => {
    for (const state of TASK_STATES) await scene.taskIn(state);
    await scene.taskIn('ready');

    const { byState } = await scene.store.records.counts();
    expect(byState).toEqual({ ...Object.fromEntries(TASK_STATES.map((state) => [state, 1])), ready: 2 });
  });

  test('tell what is due, what retries, and when the next task falls due', async () => {
    const worker = await scene.join();
    await scene.enqueue({}, {}, { delay: 60_000 });
    const [failed, deferred] = [await scene.start(worker), await scene.start(worker)];
    await scene.settle(failed, retryIn(9_000));
    await scene.settle(deferred, deferredFor(7_000));
    await scene.taskIn('held');

    expect(await scene.store.records.counts()).toMatchObject({
      byState: { scheduled: 3, ready: 2, held: 1 },
      due: 2,
      retrying: 2,
      nextDueAt: scene.now() + 7_000,
    });
  });

  test('count a scheduled task whose time has come as due, whether it was made ready or not', async () => {
    await scene.enqueue({ delay: 1_000 }, { delay: 5_000 });
    scene.advance(1_000);
    expect((await scene.store.records.counts()).due).toBe(1);
    await scene.claim(await scene.join(), { types: ['nothing-of-ours'] });
    expect(await scene.store.records.counts()).toMatchObject({ due: 1, nextDueAt: scene.now() + 4_000 });
  });

  test('tell what needs a person or died, by reason', async () => {
    const worker = await scene.join();
    for (const [state, reason] of [
      ['dead', 'fs.locked'],
      ['dead', 'fs.locked'],
      ['needs_manual', 'fs.locked'],
      ['dead', 'http.404'],
      ['cancelled', 'cancelled'],
    ] as const) {
      await scene.settle(await scene.start(worker), ended(state, reason));
    }
    await scene.settle(await scene.start(worker), retryIn(5_000, 'http.503'));
    await scene.settle(await scene.start(worker), succeeded());

    const { byReason } = await scene.store.records.counts();
    expect(byReason).toHaveLength(3);
    expect(byReason).toEqual(
      expect.arrayContaining([
        { state: 'dead', reason: 'fs.locked', count: 2 },
        { state: 'needs_manual', reason: 'fs.locked', count: 1 },
        { state: 'dead', reason: 'http.404', count: 1 },
      ]),
    );
  });

  test('follow a task out of an end again', async () => {
    const id = await scene.taskIn('dead');
    await scene.move(id, { verb: 'retry' });
    expect(await scene.store.records.counts()).toEqual({
      byState: { ...none, ready: 1 },
      retrying: 0,
      due: 1,
      byReason: [],
    });
  });
}

function promisesOfValues(scene: Scene): void {
  const texts: Record<string, string> = {
    emoji: '{"say":"👩‍👩‍👧‍👦 🙂 é é ﷽"}',
    'hostile keys': '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"toString":1}',
    'spaces and order': '{ "b" : 1.0,\n\t"a":1e2, "a" : [ ] }',
    quotes: `{"sql":"'; DROP TABLE tasks; --","like":"%_\\\\"}`,
    'an escaped NUL': '{"nul":"a\\u0000b"}',
    'long numbers': '[9007199254740993, 0.1000000000000000055511151231257827, -0]',
    'a bare null': 'null',
  };

  test.each(Object.entries(texts))('survive byte for byte as payload, result and policy: %s', async (_, text) => {
    const worker = await scene.join();
    const claimed = await scene.start(worker, { payload: text, policy: text });
    expect([claimed.payload, claimed.policy]).toEqual([text, text]);
    await scene.settle(claimed, succeeded(), { result: text });

    const record = await scene.find(claimed.lease.task);
    expect([record.payload, record.policy, record.result]).toEqual([text, text, text]);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test('survive at a size of 1 MiB', async () => {
    const text = JSON.stringify('🙂é'.repeat(2 ** 20 / 6 - 1));
    expect(Buffer.byteLength(text)).toBeGreaterThan(2 ** 20 - 16);
    const claimed = await scene.start(await scene.join(), { payload: text });
    await scene.settle(claimed, succeeded(), { result: text });

    const record = await scene.find(claimed.lease.task);
    expect(claimed.payload === text && record.payload === text && record.result === text).toBe(true);
  });

  test.each(['imap:INBOX/Sent “x”', "it's; -- \\ % _", '__proto__', 'a b\tc', '🙂', ' ', '', '0'])(
    'survive as names: %j',
    async (name) => {
      const worker = await scene.join(name);
      const given = newTask({
        type: name,
        queue: name,
        source: name,
        key: name,
        ...(name !== '' && { category: name }),
      });
      const [receipt, again] = await scene.store.tasks.enqueue([given, given]);
      expect(again).toMatchObject({ id: receipt?.id, created: false });

      const [claimed, ...others] = await scene.claim(worker, { types: [name], queues: [name] });
      expect(others).toEqual([]);
      expect(claimed).toMatchObject({ type: name, queue: name, source: name, key: name });
      expect((await scene.store.records.find({ key: name, type: name }))?.id).toBe(receipt?.id);
      const record = await scene.find(receipt?.id as number);
      expect(record).toMatchObject({ type: name, queue: name, source: name, running: { worker: name } });
    },
  );

  test('tell names apart that differ only a little', async () => {
    const names = ['Mail', 'mail', 'mail ', 'mäil', 'mäil'.normalize('NFD'), 'mail%', 'm_il'];
    const ids = await scene.enqueue(...names.map((type) => ({ type, key: 'k' })));
    expect(new Set(ids).size).toBe(names.length);
    const worker = await scene.join();
    for (const [n, type] of names.entries()) {
      const claimed = await scene.claim(worker, { types: [type] });
      expect(claimed.map(({ lease }) => lease.task)).toEqual([ids[n]]);
    }
  });

  test('keep reasons with hostile names apart', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    for (const reason of ['__proto__', 'constructor', '__proto__', 'toString']) {
      await scene.settle(await scene.claimTask(worker, id), retryIn(0, reason));
    }
    const { charged } = (await scene.claimTask(worker, id)).facts;
    expect(new Map(charged.map(({ reason, count }) => [reason, count]))).toEqual(
      new Map([
        ['__proto__', 2],
        ['constructor', 1],
        ['toString', 1],
      ]),
    );
  });
}
