/**
 * A storm over one database: everything that a store can do, at once, over connections of many stores, drawn at random. Then the
 * wind drops, everything is worked off, and what went wrong is told: tasks that two held, tasks that nobody could claim, words
 * about leases that were not true, calls that failed, invariants that broke.
 */
const TYPES = ['mail', 'scan'];
const QUEUES = ['plain', 'fair', 'changing'];
const ORDERS = ['fifo', 'lifo', 'priority', 'weighted_random'];
const SOURCES = ['a', 'b', 'c', 'd', 'e', 'f'];
const LEASE_MS = 600_000;
const BECAUSE = { step: 'retry', rule: 'policy', policyVersion: 'storm', text: 'The dice fell so.' };
const BY = { actor: 'storm' };
const RETENTION = { succeeded: { default: 50 }, dead: { default: 50 }, cancelled: { default: 50 }, needs_manual: {} };
/** Passes in which nothing is claimed although tasks wait, after which they count as stuck. */
const IDLE_PASSES = 500;

/**
 * Lets `rounds` acts of each actor pass, one actor for each of `stores` (at least 8), and answers what went wrong: nothing, as sentences.
 * `random` draws what is done; what meets what is the database's affair.
 */
export async function storm({ stores, rounds, random, reorders }) {
  const watch = new Watch();
  watch.reorders = reorders;
  const actors = stores.map((store, i) => ACTORS[i % ACTORS.length](store, random, watch));
  await Promise.all(
    actors.map(async (act) => {
      for (let round = 0; round < rounds; round++) await watch.guarded(act);
    }),
  );
  await watch.guarded(() => calm(stores[0]));
  await watch.guarded(() => workOff(stores, watch));
  for (const broken of await stores[0].upkeep.verify()) watch.wrong.push(broken);
  return { wrong: watch.wrong, claimed: watch.claimed, enqueued: watch.enqueued };
}

/** What everybody knows of who holds what, as far as the database has answered. */
class Watch {
  wrong = [];
  claimed = 0;
  enqueued = 0;
  ids = [];
  reorders = false;
  #held = new Map();

  took({ lease }) {
    this.claimed += 1;
    const before = this.#held.get(lease.task);
    if (before !== undefined)
      this.wrong.push(`Task #${lease.task} was leased as ${lease.execution} while ${before} was.`);
    this.#held.set(lease.task, lease.execution);
  }

  /** Called before it is asked for: its answer may come after that of whoever takes it next. */
  letsGo({ lease }) {
    this.#held.delete(lease.task);
  }

  async guarded(act) {
    try {
      await act();
    } catch (error) {
      if (error.code !== 'unique_conflict')
        this.wrong.push(`${error.code}: ${error.message} ${error.cause?.message ?? ''}`);
    }
  }
}

const pick = (random, from) => from[Math.floor(random() * from.length)];

function draw(random) {
  const task = {
    type: pick(random, TYPES),
    queue: pick(random, QUEUES),
    source: pick(random, SOURCES),
    priority: Math.floor(random() * 10),
    payload: '{}',
    idempotent: true,
    delay: random() < 0.3 ? Math.floor(random() * 30) : 0,
  };
  if (random() < 0.3) task.key = `k${Math.floor(random() * 300)}`;
  if (random() < 0.3) {
    task.unique = {
      key: `u${Math.floor(random() * 8)}`,
      while: pick(random, ['unfinished', 'waiting']),
      onConflict: pick(random, ['ignore', 'replace', 'replace', 'reject']),
    };
  }
  return task;
}

function producer(store, random, watch) {
  return async () => {
    const tasks = Array.from({ length: 1 + Math.floor(random() * 6) }, () => draw(random));
    for (const { id, created } of await store.tasks.enqueue(tasks)) {
      if (!created) continue;
      watch.enqueued += 1;
      watch.ids.push(id);
    }
  };
}

/** Enqueues and claims in one turn, as an idle worker of the same process does: both are one transaction. */
function host(store, random, watch) {
  let id;
  return async () => {
    id ??= await store.tasks.join({ name: 'host', leaseFor: LEASE_MS, publishes: {} });
    const fresh = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
      const { key, unique, ...task } = draw(random);
      return task;
    });
    const enqueueing = store.tasks.enqueue(fresh);
    const { tasks } = await store.tasks.claim(requestOf(id, 3));
    for (const task of tasks) watch.took(task);
    watch.ids.push(...(await enqueueing).map((receipt) => receipt.id));
    watch.enqueued += fresh.length;
    await settle(store, tasks, () => decided(random), watch, random);
  };
}

function requestOf(worker, limit) {
  return { worker, limit, capabilities: {}, suspects: 1, alone: true, except: [] };
}

function decided(random) {
  const roll = random();
  const failed = {
    reason: 'fs.locked',
    because: BECAUSE,
    charge: { to: 'task', reason: 'fs.locked', kind: 'transient' },
  };
  if (roll < 0.55) return { next: 'succeeded', because: BECAUSE };
  if (roll < 0.6)
    return { next: 'scheduled', after: Math.floor(random() * 20), lostInARow: 0, needsToken: true, ...failed };
  if (roll < 0.7) return { next: 'scheduled', after: Math.floor(random() * 20), lostInARow: 0, ...failed };
  if (roll < 0.8) return { next: 'scheduled', after: 0, lostInARow: 1, ...failed, charge: { to: 'nobody' } };
  if (roll < 0.9) return { next: 'needs_manual', ...failed };
  return { next: 'dead', ...failed };
}

const SUCCESS = { next: 'succeeded', because: BECAUSE };
const FAILURE = {
  ...{ kind: 'transient', reason: 'fs.locked', fault: 'source', ambiguous: false, name: 'Error', message: 'No.' },
  evidence: { rule: 'code', field: 'code' },
};

/** A change of a source, and charges of these tasks to take back. */
function changed(random, refunded = []) {
  const roll = random();
  const refunds = refunded.map(({ lease: { task, execution } }) => ({ task, execution: Math.max(1, execution - 1) }));
  const change = { tokens: random(), refunds };
  if (roll < 0.3) return change;
  const memory = '{}';
  if (roll < 0.4) return { ...change, memory };
  const restriction = pick(random, [
    { cause: 'breaker', shutFor: Math.floor(random() * 50) },
    { cause: 'breaker', probing: true },
    { cause: 'breaker', ramping: true, pace: { perSecond: 200, burst: 3 } },
    { cause: 'rate_limit', pace: { perSecond: 100, burst: 1 } },
  ]);
  return { ...change, memory, restriction };
}

async function settle(store, claimed, decide, watch, random) {
  for (const one of claimed) watch.letsGo(one);
  const chained = new Map();
  const settlements = claimed.map(({ lease, revision, source, sourceState }) => {
    const decision = decide();
    const report =
      decision.next === 'succeeded'
        ? { ranFor: 1, outcome: 'success' }
        : { ranFor: 1, outcome: 'failure', failure: FAILURE };
    const from = chained.get(source) ?? sourceState?.revision ?? 0;
    const change = random?.() < 0.2 ? changed(random, claimed.slice(0, 3)) : undefined;
    chained.set(source, from + (change ? 1 : 0));
    return { lease, revision, decision, report, source: { revision: from, change } };
  });
  const answers = await store.tasks.settle(settlements);
  const again = claimed.flatMap((one, i) =>
    answers[i].answer === 'changed'
      ? [{ ...one, revision: answers[i].revision, sourceState: answers[i].sourceState }]
      : [],
  );
  answers.forEach(({ answer }, i) => {
    if (answer === 'stale' || answer === 'already') watch.wrong.push(`Task #${claimed[i].lease.task} was ${answer}.`);
  });
  if (again.length > 0) await settle(store, again, () => SUCCESS, watch);
}

function worker(store, random, watch) {
  let id;
  return async () => {
    id ??= await store.tasks.join({ name: 'worker', leaseFor: LEASE_MS, publishes: {} });
    const { tasks } = await store.tasks.claim(requestOf(id, 1 + Math.floor(random() * 12)));
    for (const task of tasks) watch.took(task);
    if (random() < 0.1)
      await store.tasks.renew(
        id,
        tasks.map(({ lease }) => lease),
      );
    // Settling and claiming anew meet in one statement.
    const settling = settle(store, tasks, () => decided(random), watch, random);
    const more = random() < 0.5 ? await store.tasks.claim(requestOf(id, 3)) : { tasks: [] };
    for (const task of more.tasks) watch.took(task);
    await settling;
    await settle(store, more.tasks, () => decided(random), watch, random);
  };
}

/** Claims and leaves without a word; and takes over what others of its kind left. */
function quitter(store, random, watch) {
  return async () => {
    const id = await store.tasks.join({ name: 'quitter', leaseFor: LEASE_MS, publishes: {} });
    const { tasks } = await store.tasks.claim(requestOf(id, 4));
    for (const task of tasks) watch.took(task);
    const { tasks: lost } = await store.tasks.recover(id, 10);
    for (const task of lost) watch.took(task);
    await settle(store, lost, () => decided(random), watch, random);
    for (const task of tasks) watch.letsGo(task);
    await store.tasks.leave(id);
  };
}

function operator(store, random, watch) {
  return async () => {
    const ids = Array.from({ length: 1 + Math.floor(random() * 20) }, () => pick(random, watch.ids)).filter(Boolean);
    const roll = random();
    const verb = pick(random, ['hold', 'release', 'release', 'retry', 'cancel']);
    if (roll < 0.1) await store.tasks.move([...new Set(ids)], { verb: 'resolve', as: 'retry', ...BY });
    else if (roll < 0.7) await store.tasks.move([...new Set(ids)], { verb, ...BY });
    else if (roll < 0.85) await store.sources.hold(pick(random, SOURCES), BY);
    else for (const source of SOURCES) await store.sources.release(source);
  };
}

function keeper(store, random, { reorders }) {
  return async () => {
    const roll = random();
    if (roll < 0.25 && reorders)
      await store.sources.setUp('changing', { order: pick(random, ORDERS), fair: random() < 0.5 });
    else if (roll < 0.35) await store.sources.setUp('fair', { fair: true });
    else if (roll < 0.45) await store.sources.pause(pick(random, QUEUES), BY);
    else if (roll < 0.65) for (const queue of QUEUES) await store.sources.resume(queue);
    else if (roll < 0.8) await store.upkeep.prune(RETENTION);
    else if (roll < 0.9) await store.upkeep.takeActions(20);
    else await store.upkeep.tidy();
  };
}

/** Changes states and limits of sources, and limits of queues. */
function engine(store, random) {
  return async () => {
    const source = pick(random, SOURCES);
    const roll = random();
    const pace = random() < 0.5 ? null : { perSecond: 200, burst: 2 };
    const concurrency = random() < 0.5 ? null : 1 + Math.floor(random() * 3);
    if (roll < 0.5) {
      const state = await store.sources.state(source);
      await store.sources.change(source, { revision: state?.revision ?? 0, change: changed(random) });
    } else if (roll < 0.7) await store.sources.limit(source, { pace, concurrency }, { ...BY, origin: 'person' });
    else if (roll < 0.8) await store.sources.hold(source, BY, Math.floor(random() * 20));
    else if (roll < 0.9) await store.sources.setUp(pick(random, QUEUES), { pace, concurrency });
    else await store.records.sources();
  };
}

const ACTORS = [worker, producer, operator, engine, keeper, quitter, worker, host];

/** Nothing is held, paused or limited any more. */
async function calm(store) {
  for (const source of SOURCES) {
    await store.sources.release(source);
    await store.sources.limit(source, { pace: null, concurrency: null }, { ...BY, origin: 'person' });
    const state = await store.sources.state(source);
    await store.sources.change(source, { revision: state?.revision ?? 0, change: { tokens: 20, refunds: [] } });
  }
  for (const queue of QUEUES) {
    await store.sources.resume(queue);
    await store.sources.setUp(queue, { pace: null, concurrency: null });
  }
  const held = await store.records.list({ states: ['held'], limit: 10_000 });
  await store.tasks.move(
    held.map(({ id }) => id),
    { verb: 'release', ...BY },
  );
}

/** Claims and settles from all stores until nothing waits. */
async function workOff(stores, watch) {
  const ids = await Promise.all(
    stores.map((store) => store.tasks.join({ name: 'last', leaseFor: LEASE_MS, publishes: {} })),
  );
  for (let idle = 0; ; idle++) {
    const some = await Promise.all(
      stores.map(async (store, i) => {
        const { tasks: lost } = await store.tasks.recover(ids[i], 100);
        const { tasks } = await store.tasks.claim(requestOf(ids[i], 50));
        for (const task of [...lost, ...tasks]) watch.took(task);
        await settle(store, [...lost, ...tasks], () => SUCCESS, watch);
        return lost.length + tasks.length;
      }),
    );
    if (some.some((count) => count > 0)) idle = 0;
    const { ready, scheduled, running } = (await stores[0].records.counts()).byState;
    if (ready + scheduled + running === 0) return;
    if (idle === IDLE_PASSES) {
      watch.wrong.push(
        `${ready} ready, ${scheduled} scheduled and ${running} running tasks are left that nobody can claim.`,
      );
      return;
    }
  }
}
