import { randomUUID } from 'node:crypto';
import type { Milliseconds } from '../../duration.ts';
import { HoldfastError, InvalidInputError, StoreError, UniqueConflictError } from '../../errors.ts';
import type { Loss } from '../../failure/outcome.ts';
import { PRUNE_EVERY } from '../../retention.ts';
import { hasEnded, isWaiting, type TaskState } from '../../task.ts';
import { STRAY_VERB } from '../history-row.ts';
import { RENEWALS_PER_LEASE } from '../leases.ts';
import { ownIdentity } from '../liveness.ts';
import type { PendingLeaves } from '../pending-leaves.ts';
import { SUCCEEDED } from '../settlement.ts';
import type {
  Claim,
  Claimed,
  ClaimRequest,
  ImportedTask,
  Lease,
  Move,
  Moved,
  Needed,
  News,
  NewTask,
  NewWorker,
  Recalls,
  Receipt,
  Recovered,
  Recovery,
  Renewal,
  Saved,
  Settled,
  Settlement,
  Stray,
  TaskStore,
  Trouble,
} from '../store.ts';
import { policyVersions } from '../worker-row.ts';
import type { Batch } from './blocked-calls.ts';
import {
  type ClaimedRow,
  claimedFrom,
  type HandedRow,
  type StateRow,
  type StatesOfSources,
  sourceState,
  withSources,
} from './claim.ts';
import type { Classes } from './classes.ts';
import type { Time } from './clock.ts';
import type { Counting } from './counters.ts';
import type { Database } from './database.ts';
import { enqueued, imported, kindOf, newToken, saidJson, tokenOf, withPayloadsApart } from './encoding.ts';
import { codeOf, isBlocked, UNIQUE_CONFLICT } from './failures.ts';
import type { Look, LostLeases } from './recover.ts';
import { isRetry, stateAfterRetry } from './retries.ts';
import { type Numbered, type Round, roundOf, roundOfNumbered, settleValues } from './settle.ts';
import type { Wake } from './wake.ts';
import { Gathering, list } from './writer.ts';

/** The most tasks whose deadline has passed that one claim returns. */
const MOST_EXPIRED = 50;

/** The lease of an idle worker that listens is this many times as long as others. As in `renew` of recover.sql. */
const LONG_LEASE = 3;

/** How long a statement for several calls waits for a lock of a user's open transaction, unless `answerWithin` is short. */
const GROUP_PATIENCE_MS: Milliseconds = 500;

/** The same where a queue or type may be new, so that a transaction that makes it too may be open for long. */
const NEW_KIND_PATIENCE_MS: Milliseconds = 50;

/** More than anybody has. Beyond that they are taken for new once more. */
const MOST_KNOWN_KINDS = 10_000;

/** More tasks are enqueued by a statement of their own, which tells workers afterwards. */
const MOST_WITH_CLAIM = 100;

const MEBIBYTE = 1_048_576;

/** Of payloads. No text is longer than 512 MiB in Node, and JSON may need two characters for one. */
const MOST_IN_ONE_CALL = 192 * MEBIBYTE;

interface Parts {
  readonly database: Database;
  readonly classes: Classes;
  readonly time: Time;
  readonly lostLeases: LostLeases;
  readonly pendingLeaves: PendingLeaves;
  /** Notifies workers of this process and of others. */
  readonly notify: (news: News, isUrgent?: boolean) => void;
  /** Notifies workers of this process only. */
  readonly notifyOwn: (news: News) => void;
  /** Notifies workers of other processes only. */
  readonly notifyOthers: (news: News) => void;
  readonly counting: Counting;
  readonly listening: Pick<Wake, 'isListening' | 'dueTest' | 'testSent'>;
}

interface ClaimAnswer {
  readonly known: boolean;
  readonly now: number;
  readonly expired: boolean;
  readonly unfinished?: boolean;
  readonly tasks?: readonly ClaimedRow[] | null;
  readonly sources?: StatesOfSources | null;
  readonly next?: number | null;
}

interface AnsweredClaim extends Omit<Claim, 'expired'> {
  /** Whether there are expired tasks, which are to be recovered first. */
  readonly expired: boolean;
  /** Whether the claim ended early, without tasks. */
  readonly unfinished?: true;
}

interface SettleAnswer {
  readonly now: number;
  readonly answers:
    | readonly [id: number, answer: Settled['answer'], more?: TaskState | HandedRow, state?: StateRow | null][]
    | null;
  /** Whether tasks of a source may start now, and whether a source was held. */
  readonly opens?: boolean;
  readonly shuts?: boolean;
  /** Whether tasks of groups ended. */
  readonly endsGroups?: boolean;
}

interface RenewAnswer {
  readonly known: boolean;
  readonly now: number;
  readonly lost: number[] | null;
  readonly cancelled: number[] | null;
  readonly leaseFor: Milliseconds;
  /** Whether the lease is `LONG_LEASE` times as long. */
  readonly isLong: boolean;
  readonly needed: Needed;
  /** Changes when workers come. */
  readonly workers: string;
}

/** The functions that are called with a claim, and their answers. */
interface Beside {
  readonly settle: SettleAnswer;
  readonly enqueue_and_claim: EnqueueAnswer;
}

export type ReceiptRow = [id: number, created: boolean, replaced?: number | null, state?: TaskState | null];

export interface EnqueueAnswer {
  readonly receipts: readonly ReceiptRow[];
  /** Whether a lane was at rest before, so that workers may be idle. */
  readonly woke: boolean;
}

/** The operations on tasks: each is a call of one function in the database. */
export class PostgresTasks implements TaskStore {
  readonly #parts: Parts;
  readonly #enqueues: Gathering<NewTask, Receipt>;
  readonly #settles: Gathering<Settlement, Settled>;
  /** The tokens of claims and recoveries whose answers were lost. Repeated with the same token, they return the same tasks. */
  readonly #unanswered = new Map<string, string>();
  /** By id: the token by which a worker joined, and which workers there were at its last renewal. */
  readonly #workers = new Map<number, { readonly token: string; seen?: string }>();
  /** The queues, types, categories and needs that the database knows: once it does, it does for good. */
  readonly #knownKinds = new Set<string>();
  /** The workers whose last claim got as many tasks as they asked for. More tasks than they ask for may be ready. */
  readonly #full = new Set<number>();
  readonly #groupPatience: Milliseconds;
  #rotation = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { database } = parts;
    this.#groupPatience = Math.ceil(Math.min(GROUP_PATIENCE_MS, database.answerWithin / 4));
    const blocked = {
      groupPatience: this.#groupPatience,
      patience: database.answerWithin,
      explain: (error: unknown) => database.explainBlocked(error),
    };
    this.#enqueues = new Gathering({
      ...blocked,
      write: (tasks, patience) => this.#enqueue(tasks, patience),
      sizeOf: ({ payload }) => payload.length,
      locksOf: (task) => this.#locksOf(task),
      mayBeBlocked: (task) => this.#locksOf(task).length > 0,
      areIndependent: false,
    });
    this.#settles = new Gathering({
      ...blocked,
      write: (settlements, patience) => this.#settle(settlements, patience),
      sizeOf: ({ result }) => result?.length ?? 0,
      // Only the database knows the unique key of a task that will wait again.
      locksOf: () => [],
      mayBeBlocked: ({ decision }) => decision.next === 'scheduled',
      areIndependent: true,
    });
  }

  async enqueue(tasks: readonly NewTask[]): Promise<readonly Receipt[]> {
    this.#parts.database.refuseClosed();
    if (tasks.length === 0) return [];
    const receipts = this.#enqueues.call(tasks);
    // A worker that is idle claims with the same statement.
    if (tasks.length <= MOST_WITH_CLAIM && tasks.some(({ delay }) => delay === 0)) this.#parts.notifyOwn('work');
    return receipts;
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly Settled[]> {
    this.#parts.database.refuseClosed();
    for (const { lease, progress } of settlements) if (progress !== undefined) await this.save(lease, { progress });
    return settlements.length === 0 ? [] : this.#settles.call(settlements);
  }

  /** Resolves when all calls so far are answered. */
  async drained(): Promise<void> {
    await Promise.all([this.#enqueues.drained(), this.#settles.drained()]);
  }

  async import(tasks: readonly ImportedTask[]): Promise<readonly Receipt[]> {
    if (tasks.length === 0) return [];
    const { groups, tasks: rows } = enqueued(tasks);
    const answer = await this.#parts.database.call<readonly ReceiptRow[]>('import_tasks', [
      randomUUID(),
      groups,
      rows,
      saidJson(tasks.map(imported)),
    ]);
    this.#parts.notify('work');
    return answer.map(receipt);
  }

  async join({ name, leaseFor, mayRunFor = 0, takes, program, publishes }: NewWorker): Promise<number> {
    const { database } = this.#parts;
    const { host, pid, pid_started: pidStarted, boot, pid_space: pidSpace } = ownIdentity();
    await this.publish(publishes, []);
    const worker = {
      name,
      leaseFor,
      mayRunFor: mayRunFor === 'none' ? null : Math.ceil(mayRunFor),
      takes: JSON.stringify(takes ?? { capabilities: {} }),
      host,
      pid,
      pidStarted,
      boot,
      pidSpace,
      policies: policyVersions(publishes),
      program,
    };
    for (;;) {
      const token = randomUUID();
      const id = await database.call<number>('join_worker', [token, JSON.stringify(worker)]);
      if (!this.#workers.has(id)) {
        this.#workers.set(id, { token });
        this.#parts.notifyOthers('workers');
        return id;
      }
      // A failover lost the row of another worker of this process, which has this id still.
      await database.call('leave', [id]);
    }
  }

  async publish(types: NewWorker['publishes'], workers: readonly number[]): Promise<void> {
    if (Object.keys(types).length === 0) return;
    const policies = policyVersions(types);
    const values = [JSON.stringify(types), list(workers), policies ? JSON.stringify(policies) : null];
    await this.#parts.database.call('publish', values);
  }

  /** Settlements of this turn go along: settling and claiming are one statement and one commit. */
  async claim(request: ClaimRequest): Promise<Claim> {
    this.#parts.database.refuseClosed();
    const asked = this.#asked(request);
    const claim =
      (await this.#enqueueAndClaim(request.worker, asked)) ?? (await this.#claimPastEmptyLanes(request, asked));
    if (claim.tasks.length < request.limit) this.#full.delete(request.worker);
    else this.#full.add(request.worker);
    if (!claim.expired) return { ...claim, expired: [] };
    const expired = await this.#takeOver(request.worker, undefined, MOST_EXPIRED);
    return { ...(await this.#claimPastEmptyLanes(request, { ...asked, late: true })), expired };
  }

  /** A claim that reads many empty lanes ends early, so that no transaction gets long. The next claim continues after them. */
  async #claimPastEmptyLanes(request: ClaimRequest, asked: object): Promise<AnsweredClaim> {
    await new Promise((resolve) => setImmediate(resolve));
    let claim = await this.#claimOnce(request, asked);
    while (claim.unfinished) claim = await this.#claimOnce(request, asked);
    return claim;
  }

  async #claimOnce(request: ClaimRequest, asked: object): Promise<AnsweredClaim> {
    const batches = this.#settles.takeWaiting();
    if (batches.length > 0) {
      const { round, later } = roundOf(batches.flatMap(({ items }) => items));
      if (later.length === 0) {
        const claim = await this.#settleAndClaim(batches, round, request.worker, asked);
        if (claim) return claim;
      } else await this.#settles.answer(batches);
    }
    const answer = await this.#leasing<ClaimAnswer>(`claim ${request.worker}`, (token, again, onAgain) =>
      this.#parts.database.call('claim', [JSON.stringify({ ...asked, again }), token], {
        again: [JSON.stringify({ ...asked, again: true }), token],
        onAgain,
      }),
    );
    return this.#claimFrom(answer.token, answer.value);
  }

  /** Undefined if it could not be done together: then the settlements were written separately. */
  async #settleAndClaim(
    batches: readonly Batch<Settlement, Settled>[],
    round: Round,
    worker: number,
    asked: object,
  ): Promise<AnsweredClaim | undefined> {
    const values = [...settleValues(round), this.#groupPatience];
    const answered = await this.#withClaim('settle', values, this.#settles, batches, worker, asked);
    if (!answered) return undefined;
    await this.#settles.answer(batches, (some) => this.#answersOf(round, answered.first, some.length));
    return this.#claimFrom(answered.token, answered.claim);
  }

  /**
   * The same for the tasks that are enqueued in this turn, so that an idle worker of this process has them after one commit instead
   * of two. Undefined if there are none.
   */
  #enqueueAndClaim(worker: number, asked: object): Promise<AnsweredClaim | undefined> | undefined {
    return this.#enqueues.shared(async (batches) => {
      const given = withPayloadsApart(batches.flatMap(({ items }) => items));
      const values = enqueueValues(given, this.#groupPatience);
      const answered = await this.#withClaim('enqueue_and_claim', values, this.#enqueues, batches, worker, asked);
      if (!answered) return undefined;
      const claim = await this.#claimFrom(answered.token, answered.claim);
      const { receipts, woke } = answered.first;
      const mine = new Set(claim.tasks.map(({ lease }) => lease.task));
      if (!receipts.every(([id]) => mine.has(id))) this.#parts.notify('work', woke);
      await this.#enqueues.answer(batches, async () => receipts.map(receipt));
      // A claim that ended early is repeated.
      return claim.unfinished ? undefined : claim;
    });
  }

  /** Makes a call and a claim with one statement. Undefined if that failed: then the calls were answered by statements of their own. */
  async #withClaim<Name extends keyof Beside, Item, Answer>(
    name: Name,
    values: readonly unknown[],
    gathering: Gathering<Item, Answer>,
    batches: readonly Batch<Item, Answer>[],
    worker: number,
    asked: object,
  ): Promise<{ readonly token: string; readonly first: Beside[Name]; readonly claim: ClaimAnswer } | undefined> {
    const { functions } = this.#parts.database;
    const places = values.map((_, i) => `$${i + 1}`);
    const request = [`$${values.length + 1}`, `$${values.length + 2}`];
    const both =
      name === 'settle'
        ? `json_build_array(${functions}.settle(${places}),${functions}.claim(${request}))`
        : `${functions}.${name}(${[...places, ...request]})`;
    const text = `SELECT ${both}::text AS answer`;
    try {
      const { token, value } = await this.#leasing(`claim ${worker}`, (own, again, onAgain) =>
        this.#parts.database.ask<[Beside[Name], ClaimAnswer]>(
          text,
          [...values, JSON.stringify({ ...asked, again }), own],
          {
            again: [...values, JSON.stringify({ ...asked, again: true }), own],
            onAgain,
            failsBlocked: true,
          },
        ),
      );
      return { token, first: value[0], claim: value[1] };
    } catch (error) {
      if (isBlocked(error)) {
        await gathering.answerBlocked(batches, error);
        return undefined;
      }
      // If one of the two was refused, each is made separately. If the database is away, both fail.
      if (!(error instanceof StoreError && error.retryable)) {
        await gathering.answer(batches);
        return undefined;
      }
      for (const { reject } of batches) reject(error);
      throw error;
    }
  }

  #asked({ ahead, ...request }: ClaimRequest): object {
    const few = !this.#full.has(request.worker) && !request.only && request.except.length === 0 && request.limit > 0;
    return { ...request, few, ahead: ahead?.limit, aheadTypes: ahead?.types, rotation: this.#rotation++ % 1_000_000 };
  }

  async renew(
    worker: number,
    leases: readonly Lease[],
    claimingFor: Milliseconds = 0,
    isIdle = false,
  ): Promise<Renewal> {
    const { database, listening, time } = this.#parts;
    const testMessage = listening.dueTest();
    const self = this.#workers.get(worker);
    const values = [
      worker,
      ...leaseLists(leases),
      Math.floor(time.now() - claimingFor),
      isIdle,
      listening.isListening,
      testMessage,
      PRUNE_EVERY,
      self?.token,
    ];
    const { known, now, lost, cancelled, leaseFor, isLong, needed, workers } = await database.call<RenewAnswer>(
      'renew',
      values,
    );
    if (testMessage !== undefined) listening.testSent();
    time.learn(now);
    const these = (places: readonly number[] | null) => (places ?? []).map((place) => leases[place] as Lease);
    const renewal = { known, lost: these(lost), cancelled: these(cancelled) };
    if (!known) {
      this.#workers.delete(worker);
      return renewal;
    }
    const haveChanged = self?.seen !== workers;
    if (self) self.seen = workers;
    return {
      ...renewal,
      needed: { ...needed, recovery: needed.recovery || haveChanged },
      ...(isIdle && {
        idle: isLong
          ? { renewIn: leaseFor, leaseFor: LONG_LEASE * leaseFor }
          : { renewIn: leaseFor / RENEWALS_PER_LEASE, leaseFor },
      }),
    };
  }

  save(lease: Lease, { checkpoint, progress }: Saved): Promise<boolean> {
    const { task, execution } = lease;
    return this.#parts.database.call('save_values', [
      task,
      execution,
      tokenOf(lease),
      checkpoint ?? null,
      progress ?? null,
    ]);
  }

  async recalls(worker: number, waiting: readonly Lease[]): Promise<Recalls> {
    const { cancelled, held } = await this.#parts.database.call<{ cancelled: Lease[] | null; held: number[] | null }>(
      'recalls',
      [worker, list(waiting.map(({ task }) => task))],
    );
    return { cancelled: cancelled ?? [], held: waiting.filter(({ task }) => held?.includes(task)) };
  }

  async recover(worker: number, limit: number): Promise<Recovery> {
    const look = await this.#parts.lostLeases.lookFor(worker);
    if (look === undefined) return { tasks: [], neighbours: [] };
    const { nextIn, neighbours } = look;
    const tasks = await this.#takeOver(worker, look, limit);
    return { tasks, neighbours, ...(nextIn !== undefined && { nextIn }) };
  }

  /** Takes over tasks whose deadline has passed, and, if the other workers were checked, the leases of lost workers. */
  async #takeOver(
    worker: number,
    look: Pick<Look, 'gone' | 'watches'> | undefined,
    limit: number,
  ): Promise<readonly Recovered[]> {
    const { database } = this.#parts;
    const { token, value: rows } = await this.#leasing<
      readonly [
        handed: HandedRow,
        why: 'loss' | 'expiry' | null,
        lostBy: string | null,
        published: string | null,
        how: Loss | null,
      ][]
    >(`recover ${worker}`, (own) =>
      database.call('take_over', [
        worker,
        look ? JSON.stringify(look.gone) : null,
        look ? JSON.stringify(look.watches) : null,
        limit,
        own,
      ]),
    );
    const claimed = await claimedFrom(
      this.#parts.classes,
      token,
      rows.map(([handed]) => handed),
      this.#parts.time.now(),
    );
    return rows.map(([, why, lostBy, published, how], i) => ({
      ...(claimed[i] as Claimed),
      why: why ?? 'loss',
      ...(lostBy !== null && { lostBy }),
      ...(why === 'loss' && { how: how ?? 'beside_others' }),
      ...(published !== null && { published }),
    }));
  }

  async reportTrouble(worker: number, trouble: Trouble | undefined): Promise<void> {
    await this.#parts.database.call('report_trouble', [worker, trouble === undefined ? null : JSON.stringify(trouble)]);
  }

  async stopping(worker: number): Promise<void> {
    await this.#parts.database.call('note_stopping', [worker]);
  }

  async forbidSecondRun(leases: readonly Lease[]): Promise<void> {
    await this.#parts.database.call('forbid_second_run', leaseLists(leases));
  }

  async recordStray({ task, worker, execution, failure }: Stray): Promise<void> {
    const note = saidJson({ execution, failure });
    await this.#parts.database.call('record_stray', [randomUUID(), task, worker, STRAY_VERB, note]);
  }

  async leave(worker: number): Promise<void> {
    await this.#parts.database.call('leave', [worker]);
    this.#workers.delete(worker);
    this.#full.delete(worker);
    this.#parts.pendingLeaves.delete(worker);
    this.#parts.notify('work');
    this.#parts.notifyOthers('workers');
  }

  leaveLater(worker: number): void {
    this.#parts.pendingLeaves.add(worker);
  }

  async move(ids: readonly number[], move: Move): Promise<readonly Moved[]> {
    const moved = await this.#parts.database.call<readonly Moved[]>('move_tasks', [
      randomUUID(),
      list(ids),
      JSON.stringify(move),
    ]);
    if (moved.some((one) => one.moved && isWaiting(one.to))) this.#parts.notify('work');
    if (moved.some((one) => !one.moved && one.why === 'requested')) this.#parts.notify('recall');
    const ended = moved.flatMap((one) => (one.moved && hasEnded(one.to) ? [one.id] : []));
    if (ended.length > 0) await this.#endGroups(ended);
    return moved;
  }

  async amend(id: number, before: string, after: string): Promise<boolean> {
    return this.#parts.database.call<boolean>('amend_task', [randomUUID(), id, before, after]);
  }

  /** Makes the follow-ups due whose groups these tasks ended. If that fails, the next renewal of any worker does it. */
  async #endGroups(tasks: readonly number[]): Promise<void> {
    try {
      if (await this.#parts.database.call<boolean>('end_groups', [list(tasks)])) this.#parts.notify('work');
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
    }
  }

  async #enqueue(tasks: readonly NewTask[], patience: Milliseconds): Promise<readonly Receipt[]> {
    refuseTooLarge(tasks);
    const given = withPayloadsApart(tasks);
    const areKnown = given.kinds.every((kind) => this.#knownKinds.has(kind));
    const least = areKnown ? patience : Math.min(patience, NEW_KIND_PATIENCE_MS);
    try {
      const { receipts, woke } = await this.#parts.database.call<EnqueueAnswer>(
        'enqueue_tasks',
        enqueueValues(given, least),
        { failsBlocked: true },
      );
      if (!areKnown) this.#noteKnown(given.kinds);
      this.#parts.notify('work', woke);
      const replaced = receipts.flatMap(([, , id]) => id ?? []);
      if (replaced.length > 0) await this.#endGroups(replaced);
      return receipts.map(receipt);
    } catch (error) {
      throw uniqueConflict(error) ?? error;
    }
  }

  #noteKnown(kinds: readonly string[]): void {
    if (this.#knownKinds.size > MOST_KNOWN_KINDS) this.#knownKinds.clear();
    for (const kind of kinds) this.#knownKinds.add(kind);
  }

  /** What an enqueue of this task locks: its keys, and its queue and type where they may be new. */
  #locksOf(task: NewTask): readonly string[] {
    const { type, key, unique } = task;
    const kind = kindOf(task);
    return [
      ...(key === undefined ? [] : [`key ${type} ${key}`]),
      ...(unique ? [`unique ${type} ${unique.key}`] : []),
      ...(this.#knownKinds.has(kind) ? [] : [`kind ${kind}`]),
    ];
  }

  async #settle(settlements: readonly Settlement[], patience: Milliseconds): Promise<readonly Settled[]> {
    const answers = new Array<Settled>(settlements.length);
    let left: readonly Numbered[] = settlements.map((settlement, i) => ({ settlement, i }));
    while (left.length > 0) {
      const { round, later } = roundOfNumbered(left);
      const answer = await this.#parts.database.call<SettleAnswer>('settle', [...settleValues(round), patience], {
        failsBlocked: true,
      });
      const some = await this.#answersOf(round, answer, settlements.length);
      for (const { i } of round.values()) answers[i] = some[i] as Settled;
      left = later;
    }
    return answers;
  }

  async #answersOf(
    round: Round,
    { now, answers: given, opens, shuts, endsGroups }: SettleAnswer,
    count: number,
  ): Promise<readonly Settled[]> {
    this.#parts.time.learn(now);
    this.#parts.counting.isPending = true;
    const answers = new Array<Settled>(count);
    let isWaitingAgain = given?.some(([, answer, state]) => answer === 'settled' && isWaiting(state as TaskState));
    for (const { i, settlement } of round.values()) {
      answers[i] = SUCCEEDED;
      if (isRetry(settlement)) {
        answers[i] = { answer: 'settled', state: stateAfterRetry(settlement) };
        isWaitingAgain = true;
      }
      if (settlement.sighting) this.#parts.counting.hasSeen = true;
    }
    if (opens || isWaitingAgain) this.#parts.notify('work');
    if (shuts) this.#parts.notify('recall');
    if (endsGroups) await this.#endGroups([...round.keys()]);
    for (const [id, answer, more, state] of given ?? []) {
      const { i, settlement } = round.get(id) as Numbered;
      if (answer === 'settled') answers[i] = { answer, state: more as TaskState };
      else if (answer === 'changed') {
        const [claimed] = await claimedFrom(this.#parts.classes, settlement.lease.token, [more as HandedRow], now);
        const { revision, facts } = claimed as Claimed;
        answers[i] = { answer, revision, facts, ...(state && { sourceState: sourceState(state) }) };
      } else answers[i] = { answer };
    }
    return answers;
  }

  /**
   * Asks for leases with a new token. If no answer comes, the next call repeats this one with the same token, so that no task
   * stays leased to a worker that does not know of it.
   */
  async #leasing<T>(
    what: string,
    ask: (token: string, again: boolean, onAgain: () => void) => Promise<T>,
  ): Promise<{ readonly token: string; readonly value: T }> {
    const before = this.#unanswered.get(what);
    const token = before ?? newToken();
    this.#unanswered.delete(what);
    try {
      const value = await ask(token, before !== undefined, () => this.#unanswered.set(what, token));
      this.#unanswered.delete(what);
      return { token, value };
    } catch (error) {
      this.#unanswered.set(what, token);
      throw error;
    }
  }

  async #claimFrom(
    token: string,
    { known, now, expired, unfinished = false, tasks, sources, next }: ClaimAnswer,
  ): Promise<AnsweredClaim> {
    this.#parts.time.learn(now);
    const claimed = withSources(await claimedFrom(this.#parts.classes, token, tasks ?? [], now), sources);
    const answer: AnsweredClaim = { known, tasks: claimed, expired, ...(unfinished && { unfinished: true }) };
    return typeof next === 'number' ? { ...answer, nextDueIn: Math.max(0, next - now) } : answer;
  }
}

/** The arguments of the function `enqueue_tasks`. */
function enqueueValues(tasks: ReturnType<typeof withPayloadsApart>, patience: Milliseconds): readonly unknown[] {
  const { groups, tasks: rows, keyed, followUps, payloads } = tasks;
  return [randomUUID(), groups, rows, keyed, true, patience, followUps ? JSON.stringify(followUps) : null, payloads];
}

/** Leases as functions take them: their tasks, executions and tokens. */
function leaseLists(leases: readonly Lease[]): readonly unknown[] {
  return [
    list(leases.map(({ task }) => task)),
    list(leases.map(({ execution }) => execution)),
    list(leases.map(tokenOf)),
  ];
}

/** @throws InvalidInputError for tasks that no message to the server could hold. */
function refuseTooLarge(tasks: readonly NewTask[]): void {
  let size = 0;
  for (const { payload } of tasks) size += payload.length;
  if (size <= MOST_IN_ONE_CALL) return;
  throw new InvalidInputError(
    `The payloads of these ${tasks.length} tasks have ${Math.ceil(size / MEBIBYTE)} MiB together, and one call takes ${MOST_IN_ONE_CALL / MEBIBYTE} MiB. Enqueue fewer tasks at once.`,
  );
}

export function receipt([id, created, replaced, state]: ReceiptRow): Receipt {
  return { id, created, ...(replaced && { replaced }), ...(state && { state }) };
}

/** What an enqueue with `reject` meets. */
function uniqueConflict(error: unknown): UniqueConflictError | undefined {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (codeOf(cause) !== UNIQUE_CONFLICT) return undefined;
  const { detail } = cause as { detail: string };
  const { occupant, type, key } = JSON.parse(detail) as { occupant: number; type: string; key: string };
  return new UniqueConflictError(occupant, type, key);
}
