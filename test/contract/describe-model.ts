import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tokensAfter } from '../../src/budget.ts';
import type { Milliseconds } from '../../src/duration.ts';
import type { Decision, Facts } from '../../src/failure/decide.ts';
import { WHEN_GROUP_ENDS } from '../../src/store/new-task.ts';
import type {
  Claimed,
  ClaimRequest,
  ImportedTask,
  Lease,
  Move,
  NewTask,
  Receipt,
  Recovered,
  Restriction,
  Settlement,
  SourceCounts,
  Store,
  TaskRecord,
} from '../../src/store/store.ts';
import { QUEUE_ORDERS, type QueueOrder, TASK_STATES } from '../../src/task.ts';
import { factsOf, hasExpired, isDue, isWaiting, Model, type ModelTask } from './model.ts';
import { PACES } from './model-sources.ts';
import {
  because,
  cancelled,
  deferredFor,
  ended,
  handedBack,
  idsOf,
  imported,
  LEASE,
  lost,
  newTask,
  retryIn,
  type StoreFactory,
  settlement,
  succeeded,
  type Verb,
} from './scene.ts';
import { asNew, from, lastStraw, retryWithToken } from './source-scene.ts';
import { type VirtualWorld, virtualWorld } from './virtual-world.ts';

export interface ModelOptions {
  /** How many histories; `MODEL_RUNS` in the environment overrides it. They are others each time. */
  readonly runs: number;
}

/**
 * Random histories, over the store and over the model: after each step both must have said the same. A failure prints the
 * seed and the shortest history that was found to show it.
 */
export function describeModel(name: string, factory: StoreFactory, { runs: usual }: ModelOptions): void {
  const runs = Number(process.env.MODEL_RUNS ?? usual);
  describe(name, () => {
    test(`means the same as the model in ${runs} random histories`, { timeout: 300_000 + 2_000 * runs }, async () => {
      await fc.assert(
        fc.asyncProperty(histories, fc.integer(), async (history, dice) => {
          const world = virtualWorld(dice);
          const model = new Model();
          const real: Real = { store: await factory.open(world), world, held: [], written: [] };
          try {
            for (const name of ['alice', 'bob']) await joinWorker(model, real, name);
            await fc.asyncModelRun(() => ({ model, real }), history);
            await compareAll(model, real);
          } finally {
            await real.store.upkeep.close();
            await factory.close();
          }
        }),
        // Looking for a shorter history must end in time for what was found to be printed.
        { numRuns: runs, unbiased: true, interruptAfterTimeLimit: 120_000 + 1_000 * runs },
      );
    });
  });
}

/** The store, and what its workers remember. */
interface Real {
  readonly store: Store;
  readonly world: VirtualWorld;
  /** Every lease that was ever given, as its worker knows it. */
  readonly held: Held[];
  /** Settlements that were sent. */
  readonly written: Settlement[];
}

interface Held {
  readonly lease: Lease;
  revision: number;
  readonly worker: number;
}

/** One step of a history. `act` does it to both sides and compares; all that is random was drawn before. */
class Act implements fc.AsyncCommand<Model, Real> {
  readonly #what: string;
  readonly #check: (model: Readonly<Model>) => boolean;
  readonly #act: (model: Model, real: Real) => Promise<void>;

  constructor(what: string, act: (model: Model, real: Real) => Promise<void>, check = (_: Readonly<Model>) => true) {
    this.#what = what;
    this.#act = act;
    this.#check = check;
  }

  check(model: Readonly<Model>): boolean {
    return this.#check(model);
  }

  run(model: Model, real: Real): Promise<void> {
    return this.#act(model, real);
  }

  toString(): string {
    return this.#what;
  }
}

/** Uneven, so that sums of them seldom meet the length of a lease or an interval exactly. */
const SPANS: readonly Milliseconds[] = [1, 703, 4_001, 10_007, 31_013, 90_017];

const spans = fc.constantFrom(...SPANS);
const numbers = fc.nat({ max: 999 });

/** Takes one of a list by a number that was drawn before the list was known. */
function pick<T>(list: readonly T[], number: number): T {
  return list[number % list.length] as T;
}

// ── Enqueue ──

const reasons = fc.constantFrom('fs.locked', 'http.503', '__proto__');

/** Present in one of so many. */
function oneIn<T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: weight - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

const plans = fc.record({
  type: fc.constantFrom('a', 'b', 'c'),
  queue: fc.constantFrom('q', 'q', 'r'),
  source: fc.constantFrom('s', 't', 'u'),
  priority: fc.nat({ max: 3 }),
  delay: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: spans }),
  idempotent: fc.boolean(),
  payload: fc.constantFrom('{}', '{"n":1}'),
  dueIn: oneIn(8, fc.constantFrom(-703, 4_001)),
  submittedAgo: oneIn(2, fc.constantFrom(0, 1, 2, 1_000)),
  deadlineIn: oneIn(5, fc.constantFrom(-1, 4_003, 60_011, 200_003)),
  category: oneIn(3, fc.constantFrom('x', 'y')),
  needs: oneIn(4, fc.constantFrom({ cpu: 2 }, { cpu: 4 }, { gpu: 'A' })),
  key: oneIn(6, fc.constantFrom('k1', 'k2', 'k3', 'k4', 'k5')),
  unique: oneIn(
    3,
    fc.record({
      key: fc.constantFrom('u1', 'u2'),
      while: fc.constantFrom('unfinished', 'waiting'),
      onConflict: fc.constantFrom('ignore', 'replace', 'replace', 'reject'),
      for: fc.constantFrom(undefined, undefined, 10_007),
    }),
  ),
  policy: oneIn(6, fc.constant('{"maxAttempts":2}')),
});
type TaskPlan = typeof plans extends fc.Arbitrary<infer Plan> ? Plan : never;

function taskFrom({ dueIn, submittedAgo, deadlineIn, ...plan }: TaskPlan, now: number): NewTask {
  const given = {
    ...plan,
    dueAt: dueIn === undefined ? undefined : now + dueIn,
    submittedAt: submittedAgo === undefined ? undefined : now - submittedAgo,
    deadline: deadlineIn === undefined ? undefined : now + deadlineIn,
  };
  const present = Object.entries(given).filter(([, value]) => value !== undefined);
  return newTask(Object.fromEntries(present) as Partial<NewTask>);
}

/** `isGroup`: the last task is the follow-up of the others. */
const enqueue = fc
  .tuple(fc.array(plans, { minLength: 1, maxLength: 5 }), fc.constantFrom(false, false, false, true))
  .map(
    ([batch, isGroup]) =>
      new Act(`enqueue(${isGroup ? 'group: ' : ''}${batch.map(short).join(', ')})`, async (model, { store }) => {
        const now = store.upkeep.now();
        const tasks = batch.map((plan) => taskFrom(plan, now));
        if (isGroup)
          tasks.push({ ...(tasks.pop() as NewTask), delay: 0, dueAt: WHEN_GROUP_ENDS, groupOf: tasks.length });
        const receipts = await store.tasks.enqueue(tasks).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'unique_conflict', task: expect.any(Number) });
          return undefined;
        });
        const expected = model.enqueue(tasks, receipts?.map(({ id }) => id) ?? [], now);
        expect(receipts).toEqual(
          expected?.map((receipt) => {
            const isDueTask = !receipt.created && isDue(model.task(receipt.id) as ModelTask, now);
            return isDueTask ? { ...receipt, state: expect.stringMatching(/^(scheduled|ready)$/) } : receipt;
          }),
        );
      }),
  );

const amend = fc.tuple(numbers, fc.constantFrom('{}', '{"n":1}'), fc.constantFrom('{}', '{"n":2}')).map(
  ([which, before, after]) =>
    new Act(
      `amend(${which}, ${before}, ${after})`,
      async (model, { store }) => {
        const task = pick(model.tasks, which);
        const mayChange = (isWaiting(task) || task.state === 'held') && task.given.payload === before;
        expect(await store.tasks.amend(task.id, before, after)).toBe(mayChange);
        if (mayChange) Object.assign(task, { given: { ...task.given, payload: after }, keyFrom: task.executions });
      },
      (model) => model.tasks.length > 0,
    ),
);

const STANDS = ['waiting', 'waiting', 'held', 'needs_manual', 'dead', 'succeeded', 'cancelled'] as const;

const arrivals = fc.record({
  plan: plans,
  stands: fc.constantFrom(...STANDS),
  charged: fc.uniqueArray(fc.record({ reason: reasons, count: fc.integer({ min: 1, max: 3 }) }), {
    selector: ({ reason }) => reason,
    maxLength: 2,
  }),
  deferrals: fc.constantFrom(0, 0, 2),
  more: fc.constantFrom(0, 0, 1),
  endedAgo: oneIn(2, fc.constantFrom(0, 90_017)),
});
type ArrivalPlan = typeof arrivals extends fc.Arbitrary<infer Plan> ? Plan : never;

function arrivalFrom({ plan, stands, charged, deferrals, more, endedAgo }: ArrivalPlan, now: number): ImportedTask {
  const { unique: _, ...task } = taskFrom(plan, now);
  const executions = charged.reduce((sum, { count }) => sum + count, deferrals + more);
  const ended = stands === 'succeeded' || stands === 'dead' || stands === 'cancelled';
  const reason = charged.at(-1)?.reason ?? (executions > 0 || stands === 'dead' ? 'brought.along' : undefined);
  return imported({
    ...task,
    stands,
    executions,
    charged: charged.map((each) => ({ ...each, kind: 'transient' })),
    deferrals,
    ...(stands === 'needs_manual' && { reason: 'asked.for' }),
    ...(reason !== undefined && stands !== 'succeeded' && { reason }),
    ...(stands === 'succeeded' && { result: '"elsewhere"' }),
    ...(ended && endedAgo !== undefined && { endedAt: now - endedAgo }),
  });
}

const importing = fc.array(arrivals, { minLength: 1, maxLength: 5 }).map(
  (batch) =>
    new Act(`import(${batch.map(short).join(', ')})`, async (model, { store }) => {
      const now = store.upkeep.now();
      const tasks = batch.map((plan) => arrivalFrom(plan, now));
      const receipts = await store.tasks.import(tasks);
      const expected = tasks.map((task, n) => model.import(task, (receipts[n] as Receipt).id, now));
      expect(receipts).toEqual(expected);
    }),
);

// ── Workers ──

const MOST_WORKERS = 4;

const join = fc.constantFrom('alice', 'bob').map(
  (name) =>
    new Act(
      `join(${name})`,
      async (model, real) => {
        await joinWorker(model, real, name);
      },
      (model) => model.workers.size < MOST_WORKERS,
    ),
);

async function joinWorker(model: Model, { store }: Real, name: string): Promise<number> {
  const worker = { name, leaseFor: LEASE, publishes: { a: `"${name}"` } };
  const now = store.upkeep.now();
  const id = await store.tasks.join(worker);
  expect([...model.workers.keys()]).not.toContain(id);
  model.join(id, worker, now);
  return id;
}

const leave = numbers.map(
  (who) =>
    new Act(
      `leave(${who})`,
      async (model, { store }) => {
        const worker = pick([...model.workers.keys()], who);
        await store.tasks.leave(worker);
        model.leave(worker);
      },
      hasWorkers,
    ),
);

const renew = fc.tuple(numbers, fc.array(numbers, { maxLength: 3 }), oneIn(4, numbers)).map(
  ([who, strange, forgotten]) =>
    new Act(
      `renew(${who}, ${strange}, ${forgotten})`,
      async (model, real) => {
        const worker = pick([...model.workers.keys()], who);
        const own = ownOf(real, worker);
        const others = real.held.length > 0 ? strange.map((n) => pick(real.held, n)) : [];
        const unknown = forgotten === undefined || own.length === 0 ? undefined : pick(own, forgotten);
        const believed = new Set([...own, ...others].filter((held) => held !== unknown));
        await renewWorker(
          model,
          real,
          worker,
          [...believed].map(({ lease }) => lease),
        );
      },
      hasWorkers,
    ),
);

async function renewWorker(model: Model, { store }: Real, worker: number, leases: readonly Lease[]): Promise<boolean> {
  const now = store.upkeep.now();
  const silentFor = now - (model.workers.get(worker)?.leaseUntil ?? now);
  const { known, lost: gone, cancelled: asked } = await store.tasks.renew(worker, leases);
  expect({ lost: gone, cancelled: asked }).toEqual(model.renew(worker, leases, now));
  if (known) return true;
  // A store may forget a worker, but not one of whom it heard lately, nor one that still holds something.
  expect(silentFor).toBeGreaterThan(0);
  expect(model.tasks.filter(({ lease }) => lease?.worker === worker)).toEqual([]);
  model.leave(worker);
  return false;
}

/** What a worker ever got, which it believes in until it is told otherwise. */
function ownOf({ held }: Real, worker: number): readonly Held[] {
  return held.filter((each) => each.worker === worker);
}

/** A worker as one would find it: known, and its lease not run out. */
async function awake(model: Model, real: Real, who: number): Promise<number> {
  const worker = pick([...model.workers.keys()], who);
  if ((model.workers.get(worker)?.leaseUntil ?? 0) > real.store.upkeep.now()) return worker;
  const own = ownOf(real, worker).map(({ lease }) => lease);
  return (await renewWorker(model, real, worker, own)) ? worker : joinWorker(model, real, 'woken');
}

function hasWorkers(model: Readonly<Model>): boolean {
  return model.workers.size > 0;
}

// ── Claim ──

const filters = fc.record(
  {
    types: fc.subarray(['a', 'b', 'c', 'never-seen']),
    queues: fc.subarray(['q', 'r']),
    categories: fc.subarray(['x', 'y']),
  },
  { requiredKeys: [] },
);

const claim = fc
  .record({
    who: numbers,
    limit: fc.constantFrom(0, 1, 2, 3, 5, 8, 20, 20),
    filter: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: filters }),
    capabilities: fc.constantFrom({}, { cpu: 3, gpu: 'A' }, { cpu: 8, gpu: 'A' }, { cpu: 8, gpu: 'A' }),
    suspects: fc.constantFrom(0, 1, 1, 3),
    alone: fc.boolean(),
    only: oneIn(8, fc.array(numbers, { maxLength: 9 })),
    except: fc.oneof(
      { weight: 4, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(numbers, { maxLength: 3 }) },
    ),
  })
  .map(
    (plan) =>
      new Act(
        `claim(${short(plan)})`,
        async (model, real) => {
          const { store } = real;
          const worker = await awake(model, real, plan.who);
          const now = store.upkeep.now();
          const ids = (picks: readonly number[]) =>
            model.tasks.length > 0 ? [...new Set(picks.map((n) => pick(model.tasks, n).id))] : [];
          const expired = model.tasks.filter((task) => isWaiting(task) && hasExpired(task, now));
          const request: ClaimRequest = {
            worker,
            limit: plan.limit,
            ...plan.filter,
            capabilities: plan.capabilities,
            suspects: plan.suspects,
            alone: plan.alone,
            ...(plan.only && { only: ids(plan.only) }),
            except: ids(plan.except),
          };

          const { known, tasks, nextDueIn, expired: late } = await store.tasks.claim(request);
          expect(known).toBe(true);
          expect(idsOf(late).toSorted((a, b) => a - b)).toEqual(expired.map(({ id }) => id));
          for (const each of late) takeOver(model, real, each, worker, now);
          expect(model.objectionsTo(idsOf(tasks), request, now)).toEqual([]);
          model.started(idsOf(tasks), now);
          for (const claimed of tasks) {
            expect(comparable(claimed)).toEqual(comparable(model.claim(claimed, worker, now)));
            hold(real, claimed, worker);
          }
          for (const { source, sourceState, drained } of tasks) {
            const left = model.tasks.some((task) => task.given.source === source && isDue(task, now));
            expect(drained ?? false, `whether ${source} is drained`).toBe(sourceState !== undefined && !left);
          }
          const { all, fitting } = model.nextDueIn(request, now);
          const { times, least } = model.openings(request, now);
          expect([all, fitting, ...times]).toContain(nextDueIn);
          if (Number.isFinite(least)) expect(nextDueIn).toBeLessThanOrEqual(least);
        },
        hasWorkers,
      ),
  );

function hold(real: Real, { lease, revision }: Claimed, worker: number): void {
  expect(real.held.some((held) => isSame(held.lease, lease))).toBe(false);
  real.held.push({ lease, revision, worker });
}

function isSame(one: Lease, other: Lease): boolean {
  return one.task === other.task && one.token === other.token;
}

/** Without what only some stores tell, or tell in an order of their own. */
function comparable({ lastFailure: _, drained: __, facts, ...claimed }: Claimed): unknown {
  return { ...claimed, facts: comparableFacts(facts) };
}

function comparableFacts({ charged, recoveriesAgoMs, untilDeadlineMs, ...facts }: Facts): unknown {
  return {
    ...facts,
    charged: charged.toSorted((a, b) => (a.reason < b.reason ? -1 : 1)),
    recoveriesAgoMs: recoveriesAgoMs.toSorted((a, b) => a - b),
    untilDeadlineMs: untilDeadlineMs === undefined ? undefined : Math.max(0, untilDeadlineMs),
  };
}

// ── Settle ──

const delays = fc.oneof(fc.constant(0), spans);
const decisions: fc.Arbitrary<Decision> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(succeeded()) },
  { weight: 3, arbitrary: fc.tuple(delays, reasons).map(([after, reason]) => retryIn(after, reason)) },
  { weight: 2, arbitrary: delays.map((after) => deferredFor(after)) },
  { weight: 1, arbitrary: fc.constant(handedBack()) },
  { weight: 2, arbitrary: delays.map((after) => retryWithToken(after)) },
  { weight: 1, arbitrary: delays.map((after) => lastStraw(after)) },
  { weight: 2, arbitrary: fc.constantFrom(lost('free'), lost('charged')) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom('dead', 'needs_manual'), reasons, fc.constantFrom('task', 'nobody', 'recoveries'))
      .map(
        ([next, reason, to]): Decision =>
          to === 'task' ? ended(next, reason) : { next, reason, charge: { to }, because: because('crash_loop') },
      ),
  },
);

// ── Sources ──

const SOURCES = ['s', 't', 'u'] as const;

const restrictions: fc.Arbitrary<Restriction | undefined> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: spans.map((shutFor): Restriction => ({ cause: 'rate_limit', shutFor })) },
  { weight: 1, arbitrary: spans.map((shutFor): Restriction => ({ cause: 'breaker', shutFor, probing: true })) },
  { weight: 1, arbitrary: fc.constant<Restriction>({ cause: 'breaker', probing: true }) },
  { weight: 1, arbitrary: fc.constant<Restriction>({ cause: 'needs_person', shutFor: 'released' }) },
  { weight: 1, arbitrary: fc.constantFrom(...PACES).map((pace): Restriction => ({ cause: 'breaker', pace })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...PACES).map((pace): Restriction => ({ cause: 'breaker', pace, ramping: true })),
  },
);

const changes = fc.record({
  asNew: fc.constantFrom(true, false, false),
  memory: fc.constantFrom('1', '{"failures":2}'),
  restriction: restrictions,
  tokens: fc.constantFrom(0, 0, 0.1, 3),
  /** Tasks, and which of their executions. */
  refunds: fc.array(fc.tuple(numbers, fc.nat({ max: 2 })), { maxLength: 3 }),
});
type ChangePlan = typeof changes extends fc.Arbitrary<infer Plan> ? Plan : never;

function changeFrom(model: Model, { asNew: isNew, refunds, ...plan }: ChangePlan, revision: number) {
  const named =
    model.tasks.length === 0 ? [] : refunds.map(([which, back]) => ({ task: pick(model.tasks, which), back }));
  const given = {
    memory: plan.memory,
    tokens: plan.tokens,
    refunds: named.map(({ task: { id, executions }, back }) => ({ task: id, execution: executions - back })),
    ...(plan.restriction && { restriction: plan.restriction }),
  };
  if (!isNew) return from(revision, given);
  return { revision, change: { ...asNew(revision, plan.tokens).change, refunds: given.refunds } } as ReturnType<
    typeof from
  >;
}

const change = fc.tuple(fc.constantFrom(...SOURCES), changes, oneIn(6, fc.constantFrom(-1, 1))).map(
  ([name, plan, off = 0]) =>
    new Act(`change(${name}, ${short(plan)}, ${off})`, async (model, { store }) => {
      const revision = model.sources.revisionOf(name);
      const sent = changeFrom(model, plan, revision + off);
      const now = store.upkeep.now();
      expect(await store.sources.change(name, sent)).toBe(off === 0);
      if (off === 0) model.changeSource(name, sent.change, now);
      await learnSources(model, store);
    }),
);

/** The store chooses the numbers of new states. */
async function learnSources(model: Model, store: Store): Promise<void> {
  for (const name of SOURCES) {
    const state = await store.sources.state(name);
    expect(model.sources.learn(name, state?.revision)).toEqual([]);
    expect(state?.memory).toBe(model.sources.of(name).state?.memory);
  }
}

const holdSource = fc.tuple(fc.constantFrom(...SOURCES), oneIn(2, spans)).map(
  ([name, forMs]) =>
    new Act(`hold(${name}, ${forMs})`, async (model, { store }) => {
      const now = store.upkeep.now();
      await store.sources.hold(name, { actor: 'maria' }, forMs);
      model.sources.hold(name, forMs, now);
    }),
);

const releaseSource = fc.constantFrom(...SOURCES).map(
  (name) =>
    new Act(`release(${name})`, async (model, { store }) => {
      await store.sources.release(name);
      model.sources.release(name);
    }),
);

const limits = fc.record(
  {
    pace: fc.constantFrom(null, ...PACES),
    concurrency: fc.constantFrom(null, 1, 3),
  },
  { requiredKeys: [] },
);

const limitSource = fc.tuple(fc.constantFrom(...SOURCES), limits, fc.constantFrom('person', 'config')).map(
  ([name, given, origin]) =>
    new Act(`limit(${name}, ${short(given)}, ${origin})`, async (model, { store }) => {
      const now = store.upkeep.now();
      await store.sources.limit(name, given, { actor: 'maria', origin });
      model.sources.limit(name, given, origin, now);
    }),
);

const settle = fc
  .array(
    fc.record({
      which: numbers,
      /** Of the leases that hold; else of all that ever were. */
      live: fc.constantFrom(true, true, true, true, false),
      forge: fc.constantFrom(true, ...Array<boolean>(19).fill(false)),
      decision: decisions,
      result: fc.constantFrom('1', '{"a":[]}'),
      says: fc.constantFrom('any', 'any', 'present', 'present', 'present', 'change', 'change', 'none', 'wrong'),
      change: changes,
    }),
    { minLength: 1, maxLength: 7 },
  )
  .map(
    (batch) =>
      new Act(
        `settle(${batch.map(({ decision, ...plan }) => short({ ...plan, ...brief(decision) })).join(', ')})`,
        async (model, real) => {
          const live = real.held.filter(({ lease }) => model.task(lease.task)?.lease?.token === lease.token);
          const revisions = new Map<string, number>();
          const told = new Set<number>();
          const settlements = batch.flatMap((plan) => {
            const from = plan.live ? live : real.held;
            if (from.length === 0) return [];
            const held = pick(from, plan.which);
            const lease = plan.forge ? { ...held.lease, token: 'forged' } : held.lease;
            const decision = fitting(model, held, plan.decision);
            const why = model.task(lease.task)?.lease?.why;
            const report = { ranFor: 5, outcome: why ?? 'interruption' };
            const more = decision.next === 'succeeded' ? { result: plan.result } : why && { report };
            const source = model.task(lease.task)?.given.source ?? '';
            // Of several words about one task only the first says something of its source.
            const says = told.has(lease.task) ? 'any' : plan.says;
            told.add(lease.task);
            const revision = revisions.get(source) ?? model.sources.revisionOf(source);
            if (says === 'change') revisions.set(source, revision + 1);
            const said = {
              any: { source: 'any' as const },
              present: { source: { revision } },
              change: { source: changeFrom(model, plan.change, revision) },
              none: {},
              wrong: { source: { revision: revision + 1 } },
            }[says];
            const countedAs = JSON.stringify(['a', source, decision.next]);
            return [settlement({ lease, revision: held.revision }, decision, { ...more, ...said, countedAs })];
          });
          await settleBoth(model, real, settlements);
        },
      ),
  );

/**
 * What `decide` would say, as far as a store relies on it: whoever knows of a cancel obeys it, what was lost is not what
 * failed, and what expired does not go on.
 */
function fitting(model: Model, { lease, revision }: Held, decision: Decision): Decision {
  const task = model.task(lease.task);
  const held = task?.lease;
  if (held?.token !== lease.token) return decision;
  if (held.cancelRequested && held.revision === revision && decision.next !== 'succeeded') return cancelled();
  if (held.why === 'loss' && (decision.next === 'scheduled' || decision.next === 'succeeded'))
    return lost(task?.lostInARow ? 'charged' : 'free', (task?.lostInARow ?? 0) + 1);
  if (held.why === 'expiry') return ended('dead', 'deadline.passed');
  return decision;
}

const repeat = fc.array(numbers, { minLength: 1, maxLength: 3 }).map(
  (which) =>
    new Act(`repeat(${which})`, async (model, real) => {
      if (real.written.length === 0) return;
      const again = which.map((n) => pick(real.written, n));
      await settleBoth(model, real, again);
    }),
);

async function settleBoth(model: Model, real: Real, settlements: readonly Settlement[]): Promise<void> {
  const now = real.store.upkeep.now();
  const answers = await real.store.tasks.settle(settlements);
  model.beginSettling();
  const seen = new Set<number>();
  const decidedAnew: (() => void)[] = [];
  const endPart = () => {
    for (const check of decidedAnew.splice(0)) check();
    seen.clear();
  };
  expect(answers).toHaveLength(settlements.length);
  for (const [n, sent] of settlements.entries()) {
    const answer = answers[n] as (typeof answers)[number];
    const task = model.task(sent.lease.task);
    if (seen.has(sent.lease.task)) {
      endPart();
      model.beginSettling();
    }
    seen.add(sent.lease.task);
    const expected = model.settle(sent, now);
    expect(expected.answers, `settlement ${n}`).toContain(answer.answer);
    if (answer.answer === 'settled') {
      expect(answer.state).toBe(expected.state);
      real.written.push(sent);
    }
    if (answer.answer === 'changed') {
      // Facts and the state of the source are those after the call.
      decidedAnew.push(() => {
        expect(comparableFacts(answer.facts)).toEqual(comparableFacts(factsOf(task as ModelTask, now)));
        expect(answer.sourceState?.memory).toBe(model.sources.of((task as ModelTask).given.source).state?.memory);
        if (task?.lease) task.lease.revision = answer.revision;
        for (const held of real.held) if (isSame(held.lease, sent.lease)) held.revision = answer.revision;
      });
    }
  }
  endPart();
  await learnSources(model, real.store);
}

// ── Checkpoints ──

const save = fc
  .tuple(
    numbers,
    fc.boolean(),
    fc.constantFrom({ checkpoint: '1' }, { progress: '2' }, { checkpoint: '3', progress: '4' }),
  )
  .map(
    ([which, live, saved]) =>
      new Act(`save(${which}, ${live ? 'live' : 'any'}, ${JSON.stringify(saved)})`, async (model, { store, held }) => {
        const from = live ? held.filter(({ lease }) => model.task(lease.task)?.lease?.token === lease.token) : held;
        if (from.length === 0) return;
        const { lease } = pick(from, which);
        expect(await store.tasks.save(lease, saved)).toBe(model.save(lease, saved));
      }),
  );

// ── Recover ──

const recover = fc
  .tuple(numbers, fc.constantFrom(1, 3, 100, 100, 100))
  .map(
    ([who, limit]) =>
      new Act(`recover(${who}, ${limit})`, (model, real) => recoverBoth(model, real, who, limit), hasWorkers),
  );

async function recoverBoth(model: Model, real: Real, who: number, limit: number): Promise<void> {
  const worker = await awake(model, real, who);
  const now = real.store.upkeep.now();
  const { tasks: recovered, nextIn } = await real.store.tasks.recover(worker, limit);
  const expected = model.recoverable(worker, now, real.world.clock.monotonic());
  expect(nextIn).toBe(model.nextTakeoverIn(worker, real.world.clock.monotonic()));

  expect(recovered).toHaveLength(Math.min(limit, expected.size));
  for (const each of recovered) {
    expect([...expected.keys()]).toContain(each.lease.task);
    const { why, lostBy } = expected.get(each.lease.task) ?? {};
    expected.delete(each.lease.task);
    expect(each.why).toBe(why);
    if (lostBy !== undefined) expect(each.lostBy).toBe(lostBy);
    takeOver(model, real, each, worker, now);
  }
}

function takeOver(model: Model, real: Real, recovered: Recovered, worker: number, now: number): void {
  const { lostBy: _, how: __, ...rest } = recovered;
  expect(comparable(rest)).toEqual(comparable(model.recover(recovered, worker, now)));
  hold(real, recovered, worker);
}

/** Everybody but one says nothing for so long that the one takes over what they held. */
const silence = fc.tuple(numbers, fc.constantFrom(3, 100)).map(
  ([who, limit]) =>
    new Act(
      `silence(${who}, ${limit})`,
      async (model, real) => {
        real.world.clock.advance(31_013);
        await recoverBoth(model, real, who, limit);
        real.world.clock.advance(10_007);
        await recoverBoth(model, real, who, limit);
      },
      hasWorkers,
    ),
);

// ── Operators ──

const verbs: fc.Arbitrary<Verb> = fc.constantFrom(
  { verb: 'cancel' },
  { verb: 'cancel' },
  { verb: 'retry' },
  { verb: 'retry' },
  { verb: 'hold' },
  { verb: 'release' },
  { verb: 'resolve', as: 'succeeded', result: '"by hand"' },
  { verb: 'resolve', as: 'dead' },
);

const move = fc.tuple(fc.array(numbers, { minLength: 1, maxLength: 4 }), verbs, fc.boolean()).map(
  ([which, verb, aimed]) =>
    new Act(
      `move(${which}, ${short(verb)}, ${aimed ? 'aimed' : 'at any'})`,
      async (model, { store }) => {
        const now = store.upkeep.now();
        const chosen: Move = { actor: 'maria', ...verb };
        const takes = (task: ModelTask) =>
          model.destination(task, chosen, now) !== undefined || (chosen.verb === 'cancel' && task.state === 'running');
        const from = aimed ? model.tasks.filter(takes) : model.tasks;
        const ids = from.length > 0 ? [...new Set(which.map((n) => pick(from, n).id))] : [];
        const answers = await store.tasks.move([...ids, 999_999], chosen);

        expect(answers.at(-1)).toEqual({ id: 999_999, moved: false, why: 'missing' });
        expect(answers.slice(0, -1).map(({ id }) => id)).toEqual(ids);
        for (const answer of answers.slice(0, -1)) {
          const task = model.task(answer.id) as ModelTask;
          const from = isDue(task, now) ? expect.stringMatching(/^(scheduled|ready)$/) : task.state;
          const to = model.destination(task, chosen, now);
          const conflict = { id: task.id, moved: false, from, why: 'conflict' };
          const occupiedBy = to === undefined || to === 'either' ? undefined : model.barrierOf(task, to, now);
          if (task.state === 'running' && chosen.verb === 'cancel') {
            expect(answer).toEqual({ ...conflict, why: 'requested' });
            model.requestCancel(task);
          } else if (occupiedBy !== undefined) {
            expect(answer).toEqual({ ...conflict, occupiedBy });
          } else if (to === undefined || (to === 'either' && !answer.moved)) {
            expect(answer).toEqual(conflict);
          } else {
            const state = to === 'either' ? 'ready' : to;
            expect(answer).toEqual({ id: task.id, moved: true, from, to: state });
            model.move(task, chosen, state, now);
          }
        }
      },
      (model) => model.tasks.length > 0,
    ),
);

/** weighted_random is drawn: its tasks are compared, the order in which they are given is not. `describeStore` has bounds. */
const setUp = fc
  .tuple(
    fc.constantFrom('q', 'r'),
    fc.record(
      {
        order: fc.constantFrom<QueueOrder>(...QUEUE_ORDERS),
        fair: fc.boolean(),
        pace: fc.constantFrom(null, null, ...PACES),
        concurrency: fc.constantFrom(null, null, 1, 4),
      },
      { requiredKeys: [] },
    ),
  )
  .map(
    ([queue, settings]) =>
      new Act(`setUp(${queue}, ${short(settings)})`, async (model, { store }) => {
        await store.sources.setUp(queue, settings);
        model.setUp(queue, settings, store.upkeep.now());
      }),
  );

// ── Time ──

const advance = spans.map(
  (by) =>
    new Act(`advance(${by})`, async (_, { store, world }) => {
      const before = store.upkeep.now();
      world.clock.advance(by);
      expect(store.upkeep.now()).toBeGreaterThanOrEqual(before);
    }),
);

const jump = fc.constantFrom(700, 3_600_000, 8 * 3_600_000, -1, -3_600_000).map(
  (by) =>
    new Act(`jumpWall(${by})`, async (_, { store, world }) => {
      const before = store.upkeep.now();
      world.clock.jumpWall(by);
      expect(store.upkeep.now()).toBeGreaterThanOrEqual(before);
    }),
);

// ── Everything at once ──

const inspect = fc.constant(new Act('inspect()', compareAll));

async function compareAll(model: Model, { store }: Real): Promise<void> {
  expect(await store.upkeep.verify()).toEqual([]);
  const now = store.upkeep.now();
  const records = await store.records.list({ limit: 10_000 });
  expect(records.map(({ id }) => id)).toEqual(model.tasks.map(({ id }) => id).toReversed());
  for (const record of records) compareRecord(model, model.task(record.id) as ModelTask, record, now);
  await compareCounts(model, store, now);
  await compareLoads(model, store, now);
  await compareWorkers(model, store);
  const { counts } = await store.records.counters(0);
  expect(new Map(counts.map(({ countedAs, count }) => [countedAs, count]))).toEqual(model.counted);
  await compareSources(model, store, now);
  for (const task of model.tasks.slice(-8)) {
    await compareHistory(store, task);
    await compareFacts(store, task, now);
  }
}

function compareRecord(model: Model, task: ModelTask, record: TaskRecord, now: number): void {
  const { given } = task;
  const due = isDue(task, now);
  const of = `task #${task.id}`;
  if (due) expect(['scheduled', 'ready'], of).toContain(record.state);
  else expect(record.state, of).toBe(task.state);
  if (task.state === 'scheduled' && !due) expect(record.dueAt ?? WHEN_GROUP_ENDS, of).toBe(task.dueAt);
  if (task.state === 'succeeded') expect(record.result, of).toBe(task.result);
  if (task.state === 'dead' || task.state === 'needs_manual') expect(record.reason, of).toBe(task.reason);
  expect(record.progress, of).toBe(task.progress);
  if (isWaiting(task) || task.state === 'running') expect(record.lostInARow, of).toBe(task.lostInARow);

  const facts = factsOf(task, now);
  expect(
    {
      ...record,
      charged: record.charged.toSorted((a, b) => (a.reason < b.reason ? -1 : 1)),
      running: record.running && { worker: record.running.worker, cancelRequested: record.running.cancelRequested },
    },
    of,
  ).toMatchObject({
    type: given.type,
    queue: given.queue,
    source: given.source,
    priority: given.priority,
    payload: given.payload,
    idempotent: given.idempotent,
    submittedAt: task.submittedAt,
    createdAt: task.createdAt,
    executions: task.executions,
    charged: facts.charged
      .map(({ reason, kind, count }) => ({ reason, kind, count }))
      .sort((a, b) => (a.reason < b.reason ? -1 : 1)),
    deferrals: task.deferrals,
    recoveries: task.recoveries.length,
  });
  const unique = given.unique && { key: given.unique.key, while: given.unique.while };
  expect(record.unique, of).toEqual(unique);
  expect([record.category, record.needs, record.key, record.policy, record.deadline, record.endedAt], of).toEqual([
    given.category,
    given.needs,
    given.key,
    given.policy,
    given.deadline,
    task.endedAt,
  ]);
  expect(record.running && [record.running.worker, record.running.cancelRequested], of).toEqual(
    task.lease && [model.nameOf(task.lease.worker), task.lease.cancelRequested],
  );
}

async function compareCounts(model: Model, store: Store, now: number): Promise<void> {
  const counts = await store.records.counts();
  const inState = (state: string) => model.tasks.filter((task) => task.state === state);
  for (const state of TASK_STATES) {
    if (state !== 'scheduled' && state !== 'ready') expect(counts.byState[state], state).toBe(inState(state).length);
  }
  expect(counts.byState.scheduled + counts.byState.ready).toBe(model.tasks.filter(isWaiting).length);
  expect(counts.due).toBe(model.tasks.filter((task) => isDue(task, now)).length);

  const scheduled = inState('scheduled');
  const later = scheduled.filter((task) => !isDue(task, now));
  const failedBefore = (task: ModelTask) => task.charged.size > 0 || task.deferrals > 0;
  expect(counts.retrying).toBeGreaterThanOrEqual(later.filter(failedBefore).length);
  expect(counts.retrying).toBeLessThanOrEqual(scheduled.filter((task) => task.executions > task.roundBase).length);
  const times = later.map(({ dueAt }) => dueAt).filter((time) => time < WHEN_GROUP_ENDS);
  const next = times.length > 0 ? Math.min(...times) : undefined;
  const overdue = scheduled.filter((task) => isDue(task, now)).map(({ dueAt }) => dueAt);
  expect([next, ...overdue]).toContain(counts.nextDueAt);

  const byReason = new Map<string, number>();
  for (const { state, reason } of [...inState('dead'), ...inState('needs_manual')]) {
    byReason.set(`${state} ${reason}`, (byReason.get(`${state} ${reason}`) ?? 0) + 1);
  }
  expect(new Map(counts.byReason.map(({ state, reason, count }) => [`${state} ${reason}`, count]))).toEqual(byReason);
}

/** A waiting task whose time has come may be counted as scheduled or as ready. */
async function compareLoads(model: Model, store: Store, now: number): Promise<void> {
  const of = (member: 'queue' | 'source', name: string) => model.tasks.filter(({ given }) => given[member] === name);
  const compare = (member: 'queue' | 'source', { name, ready, running }: SourceCounts) => {
    const tasks = of(member, name);
    expect(running, `running in ${name}`).toBe(tasks.filter(({ lease }) => lease).length);
    expect(ready, `ready in ${name}`).toBeGreaterThanOrEqual(tasks.filter(({ state }) => state === 'ready').length);
    expect(ready, `ready in ${name}`).toBeLessThanOrEqual(tasks.filter((task) => isDue(task, now)).length);
  };
  for (const counts of await store.records.countsBy('source', model.tasks.length)) compare('source', counts);
  for (const counts of await store.records.countsBy('queue', model.tasks.length)) {
    compare('queue', counts);
    const waiting = of('queue', counts.name).filter(isWaiting).length;
    expect(counts.ready + counts.scheduled, `waiting in ${counts.name}`).toBe(waiting);
  }
}

async function compareWorkers(model: Model, store: Store): Promise<void> {
  for (const { id, leaseUntil, running } of await store.records.workers()) {
    expect([...model.workers.keys()]).toContain(id);
    expect(running).toBe(model.tasks.filter(({ lease }) => lease?.worker === id).length);
    expect(leaseUntil).toBe(model.workers.get(id)?.leaseUntil);
  }
}

async function compareSources(model: Model, store: Store, now: number): Promise<void> {
  const records = new Map((await store.records.sources()).map((record) => [record.name, record]));
  for (const name of SOURCES) {
    const { hold, state, pace, concurrency, tokens } = model.sources.of(name);
    const record = records.get(name);
    const isHeld = hold !== undefined && (hold.until ?? Number.POSITIVE_INFINITY) > now;
    expect(record?.hold !== undefined, `whether ${name} is held`).toBe(isHeld);
    expect(record?.state?.revision, `the state of ${name}`).toBe(state?.revision);
    expect(record?.state?.age, `the age of the state of ${name}`).toBe(state && now - state.writtenAt);
    expect([record?.limits?.pace, record?.limits?.concurrency], `limits of ${name}`).toEqual([
      pace?.pace,
      concurrency?.most,
    ]);
    if (!tokens) expect(record?.tokens, `tokens of ${name}`).toBeUndefined();
    if (record?.tokens !== undefined && tokens) {
      expect(record.tokens).toBeCloseTo(tokensAfter(tokens.count, now - tokens.at), 6);
    }
  }
}

async function compareHistory(store: Store, task: ModelTask): Promise<void> {
  const history = await store.records.history(task.id);
  const executions = history.filter((entry) => entry.kind === 'execution');
  const told = executions.filter(({ late, outcome }) => !late && outcome !== 'success');
  expect(told, `eventful executions of #${task.id}`).toHaveLength(task.eventful);
  if (task.late > 0)
    expect(executions.filter(({ late }) => late).length, `late words on #${task.id}`).toBeGreaterThan(0);
  const acts = history.filter((entry) => entry.kind === 'action' && entry.from !== 'running');
  expect(acts, `acts on #${task.id}`).toHaveLength(task.acts);
}

/** As the end of its present execution would be decided, or of its next one. */
async function compareFacts(store: Store, task: ModelTask, now: number): Promise<void> {
  if (!isWaiting(task) && task.state !== 'running') return;
  const byReason = ({ charged, ...facts }: Facts) => ({
    ...facts,
    charged: charged.toSorted((a, b) => (a.reason < b.reason ? -1 : 1)),
  });
  const facts = factsOf(task, now);
  const next = task.state === 'running' ? facts : { ...facts, executions: facts.executions + 1 };
  expect(byReason((await store.records.facts(task.id)) as Facts), `facts of #${task.id}`).toEqual(byReason(next));
}

// ── Histories ──

function short(value: object): string {
  return JSON.stringify(value).replaceAll('"', '');
}

function brief(decision: Decision): object {
  const { because: _, ...rest } = decision;
  return rest;
}

const histories = fc.commands<Model, Real, false>(
  [
    ...[enqueue, enqueue, enqueue, importing],
    ...[claim, claim, claim, claim, claim],
    ...[settle, settle, settle, settle, settle, settle],
    ...[move, move, move, move, amend],
    ...[recover, recover, silence],
    ...[advance, advance, advance, jump],
    ...[repeat, renew, save, save, join, leave, setUp, setUp, inspect],
    ...[change, change, holdSource, releaseSource, releaseSource, limitSource],
  ],
  { maxCommands: 60, size: 'max' },
);
