import type { Milliseconds } from '../../src/duration.ts';
import type { Decision, Facts } from '../../src/failure/decide.ts';
import type { FailureKind } from '../../src/failure/outcome.ts';
import { PROBE_HOLDS_FOR } from '../../src/starts.ts';
import { WHEN_GROUP_ENDS } from '../../src/store/new-task.ts';
import type {
  Claimed,
  ClaimRequest,
  ImportedTask,
  Lease,
  Move,
  NewTask,
  NewWorker,
  QueueSettings,
  Receipt,
  Recovered,
  Saved,
  Settled,
  Settlement,
  SourceChange,
} from '../../src/store/store.ts';
import { hasEnded, meets, type QueueOrder, type TaskState, type UniqueScope } from '../../src/task.ts';
import { type ClaimCaps, type InLine, ModelLine } from './model-line.ts';
import { ModelLimits, type ModelRoom, ModelSources } from './model-sources.ts';

/**
 * What a store means, in arrays and with no cleverness. Where a store may choose (ids, tokens, revisions, whose turn it is
 * between queues), the model is shown the choice, objects if it was not one's to make, and goes on from there.
 *
 * A scheduled task whose time has come may show as scheduled or as ready until somebody claims: the model calls both due.
 */
export class Model {
  readonly tasks: ModelTask[] = [];
  readonly workers = new Map<number, ModelWorker>();
  readonly sources = new ModelSources();
  /** How many settlements were written, by their key. */
  readonly counted = new Map<string, number>();
  /** The sources that settlements of the present call have changed or were refused for. */
  readonly #chains = new Map<string, { readonly from: number; changes: number; refused: boolean }>();
  readonly #queues = new Map<string, ModelQueue>();
  readonly #names = new Map([[NOBODY, 'a worker that left']]);
  readonly #published = new Map<string, string>();

  task(id: number): ModelTask | undefined {
    return this.tasks.find((task) => task.id === id);
  }

  // ── Enqueue ──

  /** The receipts of a call whose new tasks get these ids, in their order; undefined where all of it is rejected. */
  enqueue(tasks: readonly NewTask[], ids: readonly number[], now: number): Receipt[] | undefined {
    const before = this.tasks.map((task) => ({ ...task }));
    const receipts: Receipt[] = [];
    for (const [n, given] of tasks.entries()) {
      const receipt = this.#enqueueOne(given, ids[n] ?? Number.NaN, now);
      if (!receipt) {
        // None of a call's tasks is recorded where one is rejected.
        this.tasks.splice(0, this.tasks.length, ...before);
        return undefined;
      }
      receipts.push(receipt);
    }
    for (const [at, { groupOf }] of tasks.entries())
      if (groupOf !== undefined) this.#beginGroup(receipts.slice(at - groupOf, at + 1));
    this.endGroups(now);
    this.#seeReady();
    return receipts.map((receipt) =>
      receipt.created ? receipt : { ...receipt, state: (this.task(receipt.id) as ModelTask).state },
    );
  }

  #beginGroup(receipts: readonly Receipt[]): void {
    const [followUp, ...tasks] = receipts.toReversed();
    if (!followUp?.created) return;
    const ids = tasks.filter(({ created }) => created).map(({ id }) => id);
    (this.task(followUp.id) as ModelTask).waitsFor = new Set(ids);
  }

  /** Called after everything that may end tasks. */
  endGroups(now: number): void {
    for (const followUp of this.tasks) {
      for (const id of followUp.waitsFor ?? []) {
        if (hasEnded((this.task(id) as ModelTask).state)) followUp.waitsFor?.delete(id);
      }
      if (followUp.waitsFor?.size !== 0) continue;
      delete followUp.waitsFor;
      if (followUp.dueAt === WHEN_GROUP_ENDS) followUp.dueAt = now;
    }
  }

  #enqueueOne(given: NewTask, id: number, now: number): Receipt | undefined {
    const { key, type, unique } = given;
    const known = this.tasks.find((task) => key !== undefined && task.given.key === key && task.given.type === type);
    if (known) return { id: known.id, created: false };
    const occupant = this.#occupantOf(given, now);
    if (!occupant) {
      this.#record(given, id, now);
      return { id, created: true };
    }
    if (unique?.onConflict === 'reject') return undefined;
    if (unique?.onConflict === 'ignore' || !(isWaiting(occupant) || occupant.state === 'held')) {
      return { id: occupant.id, created: false };
    }
    const { state } = occupant;
    this.#supersede(occupant, now);
    delete occupant.hasKeyUntil;
    occupant.acts += 1;
    const task = this.#record(given, id, now);
    if (state === 'held') {
      task.state = 'held';
      task.acts += 1;
    }
    return { id, created: true, replaced: occupant.id };
  }

  #record(given: NewTask, id: number, now: number): ModelTask {
    const dueAt = given.dueAt ?? now + given.delay;
    const submittedAt = given.submittedAt ?? now;
    const state = dueAt > now ? 'scheduled' : 'ready';
    const task: ModelTask = { ...newRound(0), ...noHistory(), id, given, createdAt: now, submittedAt, dueAt, state };
    if (given.unique?.for !== undefined) task.hasKeyUntil = now + given.unique.for;
    this.tasks.push(task);
    return task;
  }

  // ── Unique keys ──

  /** The task that has the unique key of this one. */
  #occupantOf({ type, unique }: NewTask, now: number, but?: number): ModelTask | undefined {
    return this.tasks.find(({ id, given, state, hasKeyUntil = now }) => {
      if (id === but || !unique || given.type !== type || given.unique?.key !== unique.key) return false;
      return SCOPES[given.unique.while].includes(state) || hasKeyUntil > now;
    });
  }

  /** The task in whose favour this one may not come to that state. */
  barrierOf({ id, given }: ModelTask, to: TaskState, now: number): number | undefined {
    if (!given.unique || !SCOPES[given.unique.while].includes(to)) return undefined;
    return this.#occupantOf(given, now, id)?.id;
  }

  #supersede(task: ModelTask, now: number): void {
    task.state = 'cancelled';
    task.reason = 'unique.superseded';
    task.endedAt = now;
    delete task.settledBy;
  }

  import(given: ImportedTask, id: number, now: number): Receipt {
    const { stands, executions, charged, deferrals, reason, result, endedAt, by: _, error: __, ...task } = given;
    const receipt = this.#enqueueOne(task, id, now) as Receipt;
    const imported = this.task(receipt.id);
    if (!receipt.created || !imported) return receipt;
    Object.assign(imported, {
      executions,
      deferrals,
      inARow: charged.length === 0 ? deferrals : 0,
      deferredSince: now,
    });
    for (const { reason, kind, count } of charged) imported.charged.set(reason, { kind, count, delay: 0 });
    if (stands !== 'waiting') {
      imported.state = stands;
      // It may have stood in line for a moment.
      this.#queues.get(task.queue)?.line?.maySee(task.source);
    }
    if (reason !== undefined) imported.reason = reason;
    if (stands === 'succeeded') imported.result = result;
    if (hasEnded(imported.state)) imported.endedAt = endedAt ?? now;
    imported.acts = 1;
    return receipt;
  }

  // ── Workers ──

  join(id: number, { name, leaseFor, publishes }: NewWorker, now: number): void {
    this.workers.set(id, { leaseFor, leaseUntil: now + leaseFor });
    this.#names.set(id, name);
    for (const [type, published] of Object.entries(publishes)) this.#published.set(type, published);
  }

  leave(id: number): void {
    this.workers.delete(id);
  }

  nameOf(worker: number): string | undefined {
    return this.#names.get(worker);
  }

  renew(id: number, leases: readonly Lease[], now: number): { lost: Lease[]; cancelled: Lease[] } {
    const worker = this.workers.get(id);
    if (worker) worker.leaseUntil = now + worker.leaseFor;
    const isLost = (lease: Lease) => this.#held(lease)?.worker !== id;
    const named = new Set(leases.filter((lease) => !isLost(lease)).map(({ task }) => task));
    for (const task of this.tasks) {
      if (!worker || task.lease?.worker !== id || named.has(task.id)) continue;
      if (task.lease.since < now - worker.leaseFor) this.#lose(task, NOBODY, now);
    }
    return {
      lost: leases.filter(isLost),
      cancelled: leases.filter((lease) => !isLost(lease) && this.#held(lease)?.cancelRequested),
    };
  }

  /** Its lease ends without a word; the one under which it ran may still say that it succeeded. */
  #lose(task: ModelTask, to: number, now: number): void {
    const { token, worker, why = 'loss', lostBy = this.nameOf(worker) } = task.lease as ModelLease;
    if (why === 'loss' && task.lost?.execution !== task.executions) {
      task.lost = { token, execution: task.executions, isLast: false };
    }
    task.lease = { ...(task.lease as ModelLease), worker: to, why, lostBy, since: now };
  }

  // ── Claim ──

  /**
   * What was wrong with a claim. Between queues any turn is right; within one, only the exact order is, or, where it is fair,
   * only the sources' turns, which are noted.
   */
  objectionsTo(claimed: readonly number[], request: ClaimRequest, now: number): string[] {
    const open = this.tasks.filter((task) => isDue(task, now) && fits(task, request));
    const suspects = open.filter(({ lostInARow }) => lostInARow === 1);
    const apart = open.filter(({ lostInARow }) => lostInARow > 1);
    const taken = suspects.filter(({ id }) => claimed.includes(id));
    const alone = apart.some(({ id }) => claimed.includes(id));
    const beside = open.length - suspects.length - apart.length + Math.min(request.suspects, suspects.length);
    const most = alone || (beside === 0 && request.alone && apart.length > 0) ? 1 : beside;
    const objections: string[] = [];
    const rooms = new Rooms(open, claimed, (source) => this.roomOf(source, now));
    const queueRooms = new Map(open.map(({ given: { queue } }) => [queue, this.#queueRoomOf(queue, now)]));
    const isBound = rooms.areBound || [...queueRooms.values()].some(Number.isFinite);

    for (const id of claimed) if (!open.some((task) => task.id === id)) objections.push(`#${id} was not to be claimed`);
    if (taken.length > request.suspects) objections.push(`${taken.length} suspects were claimed`);
    if (alone && !request.alone) objections.push('One that must run alone was claimed');
    objections.push(...rooms.objections());
    for (const [queue, room] of queueRooms) {
      const started = open.filter(({ id, given }) => given.queue === queue && claimed.includes(id)).length;
      if (started > room) objections.push(`${started} of ${queue} were claimed, of ${room} that its limits allow`);
    }
    if (isBound && !alone && claimed.length < request.limit) {
      for (const { id, lostInARow, given, needsToken } of open) {
        const left = (queueRooms.get(given.queue) as number) - countIn(open, claimed, given.queue);
        if (lostInARow > 0 || claimed.includes(id) || left < 1 || !rooms.mustHaveRoom(given.source, needsToken))
          continue;
        objections.push(`#${id} was not claimed, and nothing holds it`);
      }
    }
    if (!isBound && claimed.length !== Math.min(request.limit, most)) {
      objections.push(`${claimed.length} were claimed, of ${most} that could be and ${request.limit} asked for`);
    }
    const due = this.tasks.filter((task) => isDue(task, now));
    const { only, except } = request;
    // Whom others may hide from the line for the length of this claim takes a place there before it or after it.
    const inReach = due.filter(({ given, needsToken }) => {
      const { starts, tokens } = this.roomOf(given.source, now);
      return starts > 0 && (!needsToken || tokens.least > 0);
    });
    this.#see(inReach.filter(({ id }) => !except.includes(id) && !only?.includes(id)));
    for (const { given } of due) this.#queues.get(given.queue)?.line?.maySee(given.source);
    // Which of several go first is free when they were named, and is nobody's turn.
    const inOrder = only ? [] : open;
    for (const queue of new Set(inOrder.map(({ given }) => given.queue))) {
      const { order, line } = this.#queue(queue);
      const compare = order === 'weighted_random' ? undefined : COMPARE[order];
      const inLine = inOrder.filter(({ given }) => given.queue === queue).sort(compare);
      const elsewhere = taken.filter(({ given }) => given.queue !== queue).length;
      const most = { suspects: request.suspects - elsewhere, alone };
      const got = claimed.filter((id) => inLine.some((task) => task.id === id));
      const caps = rooms.capsOf(inLine);
      if (line) objections.push(...line.objectionsTo(got, inLine, most, compare !== undefined, caps));
      // By chance it is no order that a model could check.
      if (line || !compare) continue;
      const first = inLine.filter(({ lostInARow }) => lostInARow === 1).slice(0, Math.max(0, most.suspects));
      // Where several queues are looked at, another one's task may have come first, and then none may come that must run alone.
      const mayBeApart = alone || (request.alone && open.every(({ given }) => given.queue === queue));
      const expected = inLine.filter(
        (task) =>
          task.lostInARow === 0 || first.includes(task) || (mayBeApart && task === inLine[0] && apart.includes(task)),
      );
      const ordered = got.filter((id) => !rooms.isRamping((this.task(id) as ModelTask).given.source));
      const right = expected
        .filter((task) => !rooms.isRamping(task.given.source) && caps.take(task))
        .slice(0, ordered.length)
        .map(({ id }) => id);
      if (ordered.join() !== right.join()) objections.push(`${queue} (${order}) gave ${ordered} instead of ${right}`);
    }
    this.#see(inReach.filter(({ id }) => !claimed.includes(id)));
    return objections;
  }

  /** What may be started of a source now. */
  roomOf(source: string, now: number): ModelRoom {
    const running = this.tasks.filter(({ given, lease }) => given.source === source && lease && lease.why !== 'expiry');
    const probes = running.filter(({ lease }) => lease?.probe && lease.startedAt + PROBE_HOLDS_FOR > now);
    return this.sources.roomOf(source, { running: running.length, probes: probes.length }, now);
  }

  #queueRoomOf(queue: string, now: number): number {
    const running = this.tasks.filter(({ given, lease }) => given.queue === queue && lease && lease.why !== 'expiry');
    return this.#queue(queue).limits.roomFor(running.length, now);
  }

  /** A claim has leased these tasks: what it counts against the limits of their sources and queues. */
  started(claimed: readonly number[], now: number): void {
    const tasks = claimed.map((id) => this.task(id) as ModelTask);
    for (const source of new Set(tasks.map(({ given }) => given.source))) {
      const own = tasks.filter(({ given }) => given.source === source);
      this.sources.started(source, own.length, own.filter(({ needsToken }) => needsToken).length, now);
    }
    for (const queue of new Set(tasks.map(({ given }) => given.queue))) {
      this.#queue(queue).limits.started(tasks.filter(({ given }) => given.queue === queue).length, now);
    }
  }

  // ── Queues ──

  setUp(queue: string, settings: Partial<QueueSettings>, now: number): void {
    const known = this.#queue(queue);
    known.order = settings.order ?? known.order;
    known.limits.set(settings);
    if (settings.fair === false) delete known.line;
    if (!settings.fair || known.line) return;
    const { line } = Object.assign(known, { line: new ModelLine() });
    // Those that have fallen due stand in line already if a claim has met them, else from the next one on.
    for (const { given } of this.tasks.filter((task) => task.given.queue === queue && isDue(task, now))) {
      line.maySee(given.source);
    }
    this.#seeReady();
  }

  #queue(name: string): ModelQueue {
    const queue = this.#queues.get(name) ?? { order: 'fifo', limits: new ModelLimits() };
    this.#queues.set(name, queue);
    return queue;
  }

  #seeReady(): void {
    const ready = this.tasks.filter(({ state }) => state === 'ready');
    const isPlain = ({ given }: ModelTask) => !this.sources.isRestricted(given.source);
    this.#see(ready.filter(isPlain));
    // One that is out of reach may stand in line only from when it is not.
    for (const { given } of ready) this.#queues.get(given.queue)?.line?.maySee(given.source);
  }

  /** A source takes its place in a fair queue's line when it first has a ready task there. */
  #see(tasks: readonly ModelTask[]): void {
    for (const { given } of tasks) this.#queues.get(given.queue)?.line?.see(given.source);
  }

  /** Takes a claim over, and answers what the worker should have been told. */
  claim({ lease, revision }: Claimed, worker: number, now: number): Claimed {
    const task = this.task(lease.task) as ModelTask;
    task.executions += 1;
    task.firstStart ??= now;
    task.state = 'running';
    delete task.settledBy;
    const state = this.sources.of(task.given.source).state;
    const probe = state?.restriction?.probing === true;
    task.lease = { token: lease.token, worker, revision, cancelRequested: false, since: now, startedAt: now, probe };
    return {
      ...this.#claimed(task, now),
      ...(state && {
        sourceState: { revision: state.revision, memory: state.memory, age: now - state.writtenAt },
      }),
      ...(probe && { probe: true as const }),
    };
  }

  /** How long until the next waiting task falls due or meets its deadline: of all, and of those that fit. */
  nextDueIn(request: ClaimRequest, now: number): { all: Milliseconds | undefined; fitting: Milliseconds | undefined } {
    const least = (tasks: ModelTask[]) => {
      const due = tasks.filter((task) => !isDue(task, now)).map(({ dueAt }) => dueAt);
      const deadlines = tasks.flatMap(({ given }) => given.deadline ?? []);
      const next = Math.min(...due, ...deadlines);
      return Number.isFinite(next) ? Math.max(0, next - now) : undefined;
    };
    const waiting = this.tasks.filter(isWaiting);
    return { all: least(waiting), fitting: least(waiting.filter((task) => fits(task, { ...request, except: [] }))) };
  }

  /**
   * The times at which sources and queues may start something that they may not start now, and how soon at the latest a worker must
   * ask again for what is held for a while and would be its.
   */
  openings(
    request: ClaimRequest,
    now: number,
  ): { readonly times: readonly Milliseconds[]; readonly least: Milliseconds } {
    const ofQueues = [...this.#queues.values()].map(({ limits }) => Math.ceil(limits.nextStart ?? 0));
    const ofProbes = this.tasks.flatMap(({ lease }) => (lease?.probe ? [lease.startedAt + PROBE_HOLDS_FOR] : []));
    const times = [...ofQueues, ...ofProbes, ...this.sources.names.flatMap((name) => this.sources.timesOf(name, now))];
    const held = this.tasks.filter(
      (task) => isDue(task, now) && fits(task, request) && this.sources.opensAt(task.given.source, now) > now,
    );
    const least = Math.min(...held.map(({ given }) => this.sources.opensAt(given.source, now)));
    return { times: times.map((time) => time - now), least: least - now };
  }

  // ── Settle ──

  /** A call of `settle` begins. */
  beginSettling(): void {
    this.#chains.clear();
  }

  settle(settlement: Settlement, now: number): ExpectedSettlement {
    const expected = this.#settle(settlement, now);
    const { countedAs } = settlement;
    if (countedAs !== undefined && expected.answers.includes('settled')) {
      this.counted.set(countedAs, (this.counted.get(countedAs) ?? 0) + 1);
    }
    return expected;
  }

  #settle(settlement: Settlement, now: number): ExpectedSettlement {
    const { lease, revision, decision, result, source = { revision: 0 } } = settlement;
    const task = this.task(lease.task);
    const held = this.#held(lease);
    if (!task || !held) {
      if (task && decision.next === 'succeeded' && mayStillSucceed(task, lease)) {
        return this.#succeedLate(task, lease, decision, result, now);
      }
      return { answers: this.#lateAnswers(lease, decision, task) };
    }
    const sourceName = task.given.source;
    if (source !== 'any' && !this.#acceptsSource(sourceName, source.revision)) {
      return { answers: ['changed'] };
    }
    if (decision.next !== 'succeeded' && held.revision !== revision) {
      return { answers: ['changed'] };
    }
    if (task.lost) task.lost.isLast = held.why === 'loss';
    this.#charge(task, decision, now);
    task.needsToken = decision.next === 'scheduled' && decision.needsToken === true;
    task.verdict = decision.next === 'scheduled' ? decision.verdict : undefined;
    task.state = decision.next === 'scheduled' && decision.after === 0 ? 'ready' : decision.next;
    task.lostInARow = decision.next === 'scheduled' ? decision.lostInARow : 0;
    if (decision.next === 'scheduled') task.dueAt = now + decision.after;
    if (held.why !== 'expiry') task.ranAt = held.startedAt;
    if (decision.next === 'succeeded') task.result = result;
    else task.reason = decision.reason;
    delete task.lease;
    if (this.barrierOf(task, task.state, now) !== undefined) this.#supersede(task, now);
    if (hasEnded(task.state)) task.endedAt = now;
    if (decision.next !== 'succeeded') task.eventful += 1;
    task.settledBy = lease.token;
    task.written.set(lease.token, JSON.stringify(decision));
    const { state } = task;
    if (source !== 'any') this.#settleSource(sourceName, source.change, decision, now);
    this.endGroups(now);
    this.#seeReady();
    return { answers: ['settled'], state };
  }

  #acceptsSource(name: string, revision: number): boolean {
    const known = this.#chains.get(name) ?? { from: this.sources.revisionOf(name), changes: 0, refused: false };
    this.#chains.set(name, known);
    if (revision !== known.from + known.changes) known.refused = true;
    return !known.refused;
  }

  #settleSource(
    name: string,
    change: NonNullable<SourceChange['change']> | undefined,
    decision: Decision,
    now: number,
  ): void {
    if (!change) {
      if (decision.next === 'succeeded') this.sources.success(name, now);
      return;
    }
    (this.#chains.get(name) as { changes: number }).changes += 1;
    this.changeSource(name, change, now);
  }

  changeSource(name: string, change: NonNullable<SourceChange['change']>, now: number): void {
    this.sources.change(name, change, now);
    for (const { task: id, execution } of change.refunds) {
      const task = this.task(id);
      const charge = task?.charges.get(execution);
      if (!task || !charge || hasEnded(task.state)) continue;
      task.charges.delete(execution);
      const { kind, count, delay } = task.charged.get(charge.reason) as ModelCharge;
      if (count > 1) task.charged.set(charge.reason, { kind, count: count - 1, delay: delay - charge.delay });
      else task.charged.delete(charge.reason);
      task.verdict = undefined;
      task.needsToken = false;
      if (task.lease) task.lease.revision = undefined;
    }
  }

  #succeedLate(
    task: ModelTask,
    { token }: Lease,
    decision: Decision,
    result: string | undefined,
    now: number,
  ): ExpectedSettlement {
    Object.assign(task, { state: 'succeeded', lostInARow: 0, result, endedAt: now, settledBy: token });
    delete task.lease;
    delete task.lost;
    task.written.set(token, JSON.stringify(decision));
    this.endGroups(now);
    return { answers: ['settled'], state: 'succeeded' };
  }

  /** The same word once more is `already`; a store may have forgotten it when the task went on since. */
  #lateAnswers(lease: Lease, decision: Decision, task: ModelTask | undefined): readonly Settled['answer'][] {
    const written = task?.written.get(lease.token);
    if (written === undefined) {
      if (task) {
        task.late += 1;
        task.spoke.add(lease.token);
      }
      return ['stale'];
    }
    const isSame = written === JSON.stringify(decision) && task?.settledBy === lease.token;
    return isSame ? ['already'] : ['already', 'stale'];
  }

  #charge(task: ModelTask, decision: Decision, now: number): void {
    const charge = 'charge' in decision ? decision.charge : { to: 'nobody' as const };
    switch (charge.to) {
      case 'task': {
        const { kind, count, delay } = task.charged.get(charge.reason) ?? { kind: charge.kind, count: 0, delay: 0 };
        const after = decision.next === 'scheduled' ? decision.after : 0;
        task.charged.set(charge.reason, { kind, count: count + 1, delay: delay + after });
        if (!task.lease?.why) task.charges.set(task.executions, { reason: charge.reason, delay: after });
        task.inARow = 0;
        return;
      }
      case 'deferrals':
        if (task.inARow === 0) task.deferredSince = now;
        task.inARow += 1;
        task.deferrals += 1;
        return;
      case 'recoveries':
        task.recoveries.push(now);
        return;
      case 'nobody':
        return;
    }
  }

  // ── Checkpoints ──

  save(lease: Lease, { checkpoint, progress }: Saved): boolean {
    const held = this.#held(lease);
    const task = this.task(lease.task);
    if (!held || held.why || !task) return false;
    if (checkpoint !== undefined) task.checkpoint = checkpoint;
    if (progress !== undefined) task.progress = progress;
    return true;
  }

  // ── Recover ──

  /** What may be taken over: of workers that left or were watched for long enough, and what expired while it waited. */
  recoverable(taker: number, now: number, monotonic: Milliseconds): Map<number, WhyRecovered> {
    for (const [id, worker] of this.workers) {
      if (id === taker) continue;
      if (worker.leaseUntil > now) delete worker.watched;
      else if (worker.watched?.leaseUntil !== worker.leaseUntil) {
        worker.watched = { leaseUntil: worker.leaseUntil, since: monotonic };
      }
    }
    const hasGone = (id: number) => {
      const worker = this.workers.get(id);
      return !worker || (worker.watched && monotonic - worker.watched.since >= worker.leaseFor / 3);
    };
    const found = new Map<number, WhyRecovered>();
    for (const task of this.tasks) {
      if (task.lease && task.lease.worker !== taker && hasGone(task.lease.worker)) {
        const lostBy = this.nameOf(task.lease.worker);
        found.set(task.id, task.lease.why ? { why: task.lease.why } : { why: 'loss', lostBy });
      } else if (isWaiting(task) && hasExpired(task, now)) {
        found.set(task.id, { why: 'expiry' });
      }
    }
    return found;
  }

  /** When the next lease that has run out may be taken over, as `recoverable` has just seen it. */
  nextTakeoverIn(taker: number, monotonic: Milliseconds): Milliseconds | undefined {
    const waits = [...this.workers]
      .filter(([id, { watched }]) => id !== taker && watched && this.tasks.some(({ lease }) => lease?.worker === id))
      .map(([, { watched, leaseFor }]) => leaseFor / 3 - (monotonic - (watched?.since ?? monotonic)))
      .filter((wait) => wait > 0);
    return waits.length > 0 ? Math.min(...waits) : undefined;
  }

  recover({ lease, revision, why }: Recovered, taker: number, now: number): Omit<Recovered, 'lostBy' | 'how'> {
    const task = this.task(lease.task) as ModelTask;
    const { cancelRequested = false, startedAt = now, probe = false } = task.lease ?? {};
    if (task.lease) this.#lose(task, taker, now);
    const lostBy = task.lease?.lostBy;
    task.state = 'running';
    delete task.settledBy;
    const since = now;
    task.lease = { token: lease.token, worker: taker, revision, cancelRequested, why, lostBy, since, startedAt, probe };
    const published = this.#published.get(task.given.type);
    return { ...this.#claimed(task, now), why, ...(published !== undefined && { published }) };
  }

  // ── Move ──

  /** Where a step leads; undefined where it is refused. `either` where that depends on whether a due task was promoted. */
  destination(task: ModelTask, move: Move, now: number): TaskState | 'either' | undefined {
    const { state } = task;
    switch (move.verb) {
      case 'cancel':
        return hasEnded(state) || state === 'running' ? undefined : 'cancelled';
      case 'retry':
        if (state === 'scheduled') return task.dueAt > now ? 'ready' : 'either';
        return state === 'needs_manual' || hasEnded(state) ? 'ready' : undefined;
      case 'hold':
        return isWaiting(task) ? 'held' : undefined;
      case 'release':
        if (state !== 'held') return undefined;
        return task.dueAt > now ? 'scheduled' : 'ready';
      case 'resolve':
        if (state !== 'needs_manual') return undefined;
        return move.as === 'retry' ? 'ready' : move.as;
    }
  }

  move(task: ModelTask, move: Move, to: TaskState, now: number): void {
    const again = move.verb === 'retry' || (move.verb === 'resolve' && move.as === 'retry');
    if (again && !isWaiting(task)) {
      Object.assign(task, newRound(task.executions));
      const { deadline, ...rest } = task.given;
      if (deadline !== undefined && deadline <= now) task.given = rest;
    }
    if (again) task.dueAt = now;
    if (move.verb === 'resolve') task.result = move.result;
    task.state = to;
    task.acts += 1;
    delete task.settledBy;
    if (hasEnded(to)) task.endedAt = now;
    else delete task.endedAt;
    this.endGroups(now);
    this.#seeReady();
  }

  /** A cancel of a running task: it changes the facts, once. */
  requestCancel(task: ModelTask): void {
    if (!task.lease || task.lease.cancelRequested) return;
    task.lease.cancelRequested = true;
    task.lease.revision = undefined;
  }

  #held({ task: id, execution, token }: Lease): ModelLease | undefined {
    const task = this.task(id);
    return task?.lease?.token === token && task.executions === execution ? task.lease : undefined;
  }

  #claimed(task: ModelTask, now: number): Claimed {
    const { type, queue, source, priority, category, key, payload, policy, deadline } = task.given;
    const lease = task.lease as ModelLease;
    return {
      lease: { task: task.id, execution: task.executions, token: lease.token },
      revision: lease.revision as number,
      type,
      queue,
      source,
      priority,
      payload,
      submittedAt: task.submittedAt,
      facts: factsOf(task, now),
      ...(category !== undefined && { category }),
      ...(key !== undefined && { key }),
      ...(policy !== undefined && { policy }),
      ...(deadline !== undefined && { deadline }),
      ...(task.checkpoint !== undefined && { checkpoint: task.checkpoint }),
      ...(task.keyFrom > 0 && { keyFrom: task.keyFrom }),
    };
  }
}

export interface ModelTask extends ReturnType<typeof newRound>, ReturnType<typeof noHistory> {
  readonly id: number;
  /** As it was enqueued; a new round drops a deadline that has passed. */
  given: NewTask;
  readonly createdAt: number;
  readonly submittedAt: number;
  state: TaskState;
  dueAt: number;
  endedAt?: number;
  /** Of the follow-up of a group: its tasks that have not ended yet. */
  waitsFor?: Set<number>;
  /** Until when it has its unique key whatever its state is. */
  hasKeyUntil?: number;
  reason?: string;
  result?: string | undefined;
  checkpoint?: string;
  progress?: string;
  lease?: ModelLease;
  /** The lease that was lost last, and whether nothing else was decided about the task since. */
  lost?: { readonly token: string; readonly execution: number; isLast: boolean };
  /** The token of the last settlement, until anything else happens to the task. */
  settledBy?: string;
}

interface ModelQueue {
  order: QueueOrder;
  readonly limits: ModelLimits;
  /** Only where it is fair. */
  line?: ModelLine;
}

interface ModelLease {
  readonly token: string;
  readonly worker: number;
  readonly why?: Recovered['why'] | undefined;
  /** Who lost it first. */
  readonly lostBy?: string | undefined;
  /** Since when this worker has it. */
  readonly since: number;
  /** When its execution began, whoever has it now. */
  readonly startedAt: number;
  /** Unknown from a change of the facts until the store tells it. */
  revision: number | undefined;
  cancelRequested: boolean;
  /** It is the probe of its source. */
  readonly probe: boolean;
}

interface ModelWorker {
  readonly leaseFor: Milliseconds;
  leaseUntil: number;
  watched?: { readonly leaseUntil: number; readonly since: Milliseconds };
}

export interface ExpectedSettlement {
  readonly answers: readonly Settled['answer'][];
  readonly state?: TaskState;
}

/** `lostBy` is left open for what was lost more than once: by whom, nobody promised. */
interface WhyRecovered {
  readonly why: Recovered['why'];
  readonly lostBy?: string | undefined;
}

/** The worker of what was given up. */
const NOBODY = 0;

/** Whether nobody contradicts a success whose lease was lost: nobody began it since, and no person put it elsewhere. */
function mayStillSucceed(task: ModelTask, { token, execution }: Lease): boolean {
  const { lost, state, lease, executions, roundBase, spoke, written } = task;
  // Of several reports of an execution the first one counts.
  if (spoke.has(token) || written.has(token)) return false;
  if (lost?.token !== token || lost.execution !== execution || executions !== execution) return false;
  if (state === 'running') return lease?.why === 'loss';
  return lost.isLast && roundBase < execution && !hasEnded(state);
}

/** Charges of one reason, and the sum of the waits after them. */
interface ModelCharge {
  readonly kind: FailureKind;
  readonly count: number;
  readonly delay: number;
}

/** What is counted in one round. */
function newRound(executionsBefore: number) {
  return {
    executions: executionsBefore,
    roundBase: executionsBefore,
    firstStart: undefined as number | undefined,
    charged: new Map<string, ModelCharge>(),
    deferrals: 0,
    inARow: 0,
    deferredSince: undefined as number | undefined,
    recoveries: [] as number[],
    lostInARow: 0,
    ranAt: undefined as number | undefined,
    /** The reasons that executions were charged under, and the waits after them, unless they were refunded. */
    charges: new Map<number, { readonly reason: string; readonly delay: number }>(),
    needsToken: false,
    verdict: undefined as string | undefined,
    /** Its executions when it got a new idempotency key. */
    keyFrom: 0,
  };
}

/**
 * What is kept over all rounds: the settlements that were written, by token, the tokens that spoke too late, and how many rows
 * of history there must be.
 */
function noHistory() {
  return { written: new Map<string, string>(), spoke: new Set<string>(), eventful: 0, late: 0, acts: 0 };
}

export function factsOf(task: ModelTask, now: number): Facts {
  const { deadline, idempotent = true } = task.given;
  return {
    executions: task.executions - task.roundBase,
    charged: [...task.charged].map(([reason, { kind, count, delay }]) => ({
      reason,
      kind,
      count,
      ...(delay > 0 && { delayMs: delay }),
    })),
    deferralsInARow: task.inARow,
    deferredForMs: task.inARow > 0 ? now - (task.deferredSince as number) : 0,
    recoveriesAgoMs: task.recoveries.map((at) => now - at),
    lostInARow: task.lostInARow,
    idempotent,
    cancelRequested: task.lease?.cancelRequested ?? false,
    sinceFirstStartMs: task.firstStart === undefined ? 0 : now - task.firstStart,
    ...(deadline !== undefined && { untilDeadlineMs: deadline - now }),
    ...(task.verdict !== undefined && { verdict: task.verdict }),
  };
}

function countIn(open: readonly ModelTask[], claimed: readonly number[], queue: string): number {
  return open.filter(({ id, given }) => given.queue === queue && claimed.includes(id)).length;
}

/** What the sources of a claim let start, and what of that it has taken. */
class Rooms {
  readonly #open: readonly ModelTask[];
  readonly #claimed: readonly number[];
  readonly #rooms: ReadonlyMap<string, ModelRoom>;

  constructor(open: readonly ModelTask[], claimed: readonly number[], roomOf: (source: string) => ModelRoom) {
    this.#open = open;
    this.#claimed = claimed;
    this.#rooms = new Map(open.map(({ given: { source } }) => [source, roomOf(source)]));
  }

  /** Whether any source may let fewer start than there are. */
  get areBound(): boolean {
    return [...this.#rooms].some(([source, { starts, tokens }]) => {
      const needing = this.#open.filter(({ given, needsToken }) => given.source === source && needsToken);
      return Number.isFinite(starts) || tokens.least < needing.length;
    });
  }

  isRamping(source: string): boolean {
    return this.#rooms.get(source)?.ramping === true;
  }

  objections(): string[] {
    return [...this.#rooms].flatMap(([source, { starts, tokens }]) => {
      const { all, needing } = this.#taken(source);
      return [
        ...(all > starts ? [`${all} of ${source} were claimed, which lets ${starts} start`] : []),
        ...(needing > tokens.most ? [`${needing} of ${source} took a token, of ${tokens.most}`] : []),
      ];
    });
  }

  /** Whether one more task of a source could surely have been taken. */
  mustHaveRoom(source: string, needsToken: boolean): boolean {
    const { starts, tokens } = this.#rooms.get(source) as ModelRoom;
    const { all, needing } = this.#taken(source);
    return all < starts && (!needsToken || needing < tokens.least);
  }

  /** What may be taken of the tasks of one queue. Of what is used up, other queues had the rest. */
  capsOf(line: readonly ModelTask[]): ClaimCaps {
    const left = new Map(
      [...this.#rooms].map(([source, { starts, tokens }]) => {
        const { all, needing } = this.#taken(source);
        const here = line.filter(({ id, given }) => given.source === source && this.#claimed.includes(id));
        const hereNeeding = here.filter(({ needsToken }) => needsToken).length;
        return [
          source,
          {
            starts: all >= starts ? here.length : starts,
            tokens: needing >= tokens.least ? hereNeeding : tokens.least,
          },
        ];
      }),
    );
    const leftOf = (task: InLine) => left.get(task.given.source) as { starts: number; tokens: number };
    const mayTake = (task: InLine) => leftOf(task).starts > 0 && (!task.needsToken || leftOf(task).tokens > 0);
    return {
      mayTake,
      take(task) {
        if (!mayTake(task)) return false;
        leftOf(task).starts -= 1;
        if (task.needsToken) leftOf(task).tokens -= 1;
        return true;
      },
      isRamping: (source) => this.isRamping(source),
    };
  }

  #taken(source: string): { readonly all: number; readonly needing: number } {
    const taken = this.#open.filter(({ id, given }) => given.source === source && this.#claimed.includes(id));
    return { all: taken.length, needing: taken.filter(({ needsToken }) => needsToken).length };
  }
}

/** The states in which a task has its unique key to itself. */
const SCOPES: Readonly<Record<UniqueScope, readonly TaskState[]>> = {
  unfinished: ['scheduled', 'ready', 'held', 'running', 'needs_manual'],
  waiting: ['scheduled', 'ready', 'held'],
};

const COMPARE: Record<Exclude<QueueOrder, 'weighted_random'>, (a: ModelTask, b: ModelTask) => number> = {
  fifo: (a, b) => placeOf(a) - placeOf(b) || a.id - b.id,
  lifo: (a, b) =>
    a.ranAt === undefined && b.ranAt === undefined
      ? b.submittedAt - a.submittedAt || b.id - a.id
      : (a.ranAt ?? 0) - (b.ranAt ?? 0) || b.id - a.id,
  priority: (a, b) => b.given.priority - a.given.priority || COMPARE.fifo(a, b),
};

/** One that has run stands behind all that was submitted up to its last start. */
function placeOf({ submittedAt, ranAt = Number.NEGATIVE_INFINITY }: ModelTask): number {
  return Math.max(submittedAt, ranAt + 0.5);
}

function fits({ id, given }: ModelTask, request: ClaimRequest): boolean {
  const { types, queues, categories, capabilities, only, except } = request;
  return (
    (!types || types.includes(given.type)) &&
    (!queues || queues.includes(given.queue)) &&
    (!categories || (given.category !== undefined && categories.includes(given.category))) &&
    meets(capabilities, given.needs ?? {}) &&
    (!only || only.includes(id)) &&
    !except.includes(id)
  );
}

export function isWaiting({ state }: ModelTask): boolean {
  return state === 'scheduled' || state === 'ready';
}

export function isDue(task: ModelTask, now: number): boolean {
  return isWaiting(task) && (task.state === 'ready' || task.dueAt <= now);
}

export function hasExpired({ given }: ModelTask, now: number): boolean {
  return given.deadline !== undefined && given.deadline <= now;
}
