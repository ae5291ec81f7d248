import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Policy } from '../failure/policy.ts';
import type { Claimed, ClaimRequest, Recovered, Takes } from '../store/store.ts';
import { Ahead } from './ahead.ts';
import type { Asking } from './asking.ts';
import type { AnyTask } from './define-task.ts';
import { Foresight } from './foresight.ts';
import type { KnownSources } from './known-sources.ts';
import type { Held, Membership } from './membership.ts';
import type { OwnHandlers } from './own-handlers.ts';
import { type Pipeline, SHUT_DOWN } from './pipeline.ts';
import { claimedUnder, storeIdempotence } from './second-run.ts';
import { AWAITS_EMPTY, type Suspects } from './suspects.ts';
import type { WorkerSettings } from './worker-options.ts';

/** Why a paused worker hands back what it claimed ahead. */
export const PAUSED = 'Its worker claims no tasks at present.';

/** So many tasks that were claimed ahead begin in one turn of the event loop, if the store works outside of this process. */
const MOST_IN_ONE_TURN = 100;

/** The result of a claim. */
export interface ClaimResult {
  /** How many slots were free when it was made. */
  readonly asked: number;
  /** The tasks that it got for these slots. */
  readonly given: readonly Claimed[];
  readonly nextDueIn?: Milliseconds;
}

export interface ClaimerOptions {
  readonly clock: Clock;
  readonly asking: Asking;
  readonly membership: Membership;
  readonly pipeline: Pipeline;
  readonly suspects: Suspects;
  readonly settings: WorkerSettings;
  readonly takes: Takes;
  /** If set, only these tasks are claimed. Tasks that have ended are removed from the set. */
  readonly only: ReadonlySet<number> | undefined;
  /** The types whose definitions say that they must not run twice, whatever their input. */
  readonly notIdempotent: readonly string[];
  readonly definitionOf: (type: string) => AnyTask | undefined;
  readonly policyFor: (claimed: Claimed) => Policy;
  readonly isStopping: () => boolean;
  readonly ownHandlers: OwnHandlers;
  readonly knownSources: KnownSources;
  /** Called with tasks of a claim whose deadline has passed. */
  readonly onExpired: (expired: readonly Recovered[]) => void;
  /**
   * Called when tasks that waited here may begin: the lease was renewed after it may have run out, or the state of a source is
   * known again.
   */
  readonly onRefreshed: () => void;
  /** Whether the store works in this process. Otherwise it works while handlers run, as soon as they let it be called. */
  readonly isLocal: boolean;
  readonly inBackground: <T>(work: Promise<T>) => Promise<T>;
}

/** Claims tasks for the free slots of a worker, and more tasks ahead if they were measured to be short. */
export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #foresight: Foresight;
  readonly #ahead: Ahead;
  #claiming: Promise<unknown> = Promise.resolve();
  /** When each claim began that has no answer yet, or whose tasks have not begun yet. */
  readonly #underWaySince: Milliseconds[] = [];
  /** How many tasks that were claimed ahead have begun in this turn of the event loop, or in a few turns. */
  #begunInTurn = 0;
  #awaitsTurn = false;

  constructor(options: ClaimerOptions) {
    const { clock, settings, pipeline } = options;
    this.#options = options;
    this.#foresight = new Foresight(settings.concurrency, (type) => this.#mayClaimAhead(type));
    this.#ahead = new Ahead({
      clock,
      handBack: (claimed, why) => void pipeline.handBack(claimed, why),
      onStuck: () => this.#foresight.doubt(),
    });
  }

  /**
   * One claim at a time: two at once would fill the same slots, and each could return a suspect. `limit` says how many tasks may
   * begin. It is called before the claim and again after it, because a task that ends meanwhile may pause the worker. Tasks are
   * claimed ahead only if it returns Infinity.
   */
  claim(limit: () => number): Promise<ClaimResult> {
    const claim = this.#claiming.then(() => {
      this.#underWaySince.push(this.#options.clock.monotonic());
      return this.#claimNow(limit);
    });
    this.#claiming = claim.catch(() => {});
    // The caller begins these tasks in the same turn of the event loop.
    const ended = () => void setImmediate(() => this.#underWaySince.shift());
    claim.then(ended, ended);
    return claim;
  }

  /**
   * How long ago the oldest claim without an answer began: since then, the store may have leased tasks to this worker that it
   * does not know yet.
   */
  get claimingFor(): Milliseconds {
    const [since] = this.#underWaySince;
    return since === undefined ? 0 : this.#options.clock.monotonic() - since;
  }

  /** Resolves when no claim is running. Never rejects. */
  async settled(): Promise<void> {
    await this.#claiming;
  }

  get freeSlots(): number {
    const { pipeline, settings } = this.#options;
    return Math.max(0, Math.min(settings.concurrency - pipeline.slotsTaken, settings.maxTasks - pipeline.begun));
  }

  /** The free slots for which no task waits here. */
  get #unfilledSlots(): number {
    return Math.max(0, this.freeSlots - this.#ahead.size);
  }

  /** Whether there is anything to claim for. */
  get hasRoom(): boolean {
    return this.#unfilledSlots > 0 || this.#foreseen() !== undefined;
  }

  /** Whether tasks that were claimed ahead begin in the next turn of the event loop. */
  get awaitsTurn(): boolean {
    return this.#awaitsTurn;
  }

  /** The tasks claimed ahead. Their leases are renewed with the worker's, like those of running tasks. */
  get held(): readonly Held[] {
    return this.#ahead.held;
  }

  /** Fills the free slots with tasks claimed ahead, unless their leases may have run out while this process was asleep. */
  beginAhead(): void {
    const { membership, pipeline, inBackground, onRefreshed } = this.#options;
    if (this.#ahead.size > 0 && membership.mayHaveLapsed) {
      void inBackground(membership.refresh()).then(onRefreshed);
      return;
    }
    while (this.#ahead.size > 0 && this.freeSlots > 0 && !this.#awaitsTurn && !this.#awaitsSource()) {
      if (!this.#options.isLocal && this.#begunInTurn >= MOST_IN_ONE_TURN) {
        void inBackground(this.#beginInNextTurn());
        return;
      }
      this.#begunInTurn += 1;
      pipeline.execute(this.#ahead.take() as Claimed);
    }
  }

  /** What has ended so far is settled meanwhile, and the next tasks are claimed, so that the database works while handlers run. */
  async #beginInNextTurn(): Promise<void> {
    this.#awaitsTurn = true;
    await new Promise((resolve) => setImmediate(resolve));
    this.#awaitsTurn = false;
    this.#begunInTurn = 0;
    this.beginAhead();
    if (this.hasRoom) this.#options.onRefreshed();
  }

  /** While a change of its source is being written, the next task waits: the change may hold the source. */
  #awaitsSource(): boolean {
    const { knownSources, onRefreshed } = this.#options;
    return knownSources.awaitsChange(this.#ahead.nextSource as string, () => queueMicrotask(onRefreshed));
  }

  /** If tasks of a type take longer than expected, those that wait here are handed back. */
  measure({ type, payload }: Claimed, elapsed: Milliseconds): void {
    this.#foresight.note(type, elapsed, payload.length);
    if (this.#ahead.size === 0 || !this.#foresight.isLong(type) || !this.#ahead.holds(type)) return;
    this.#ahead.handBackAll('It was claimed ahead, and the tasks before it take longer than expected.');
  }

  handBack(held: readonly Held[], why: string): void {
    this.#ahead.handBack(held, why);
  }

  /** The tasks of this source that wait here. */
  handBackOf(source: string, why: string): void {
    if (this.#ahead.size === 0) return;
    this.#ahead.handBack(
      this.#ahead.held.filter(({ claimed }) => claimed.source === source),
      why,
    );
  }

  handBackAll(why: string): void {
    this.#ahead.handBackAll(why);
  }

  /** Clears the timer. */
  rest(): void {
    this.#ahead.rest();
  }

  async #claimNow(limit: () => number): Promise<ClaimResult> {
    const { asking, membership, pipeline, suspects, policyFor, isStopping, onExpired } = this.#options;
    for (;;) {
      const most = limit();
      const asked = isStopping() ? 0 : Math.min(most, this.#unfilledSlots);
      const ahead = most === Number.POSITIVE_INFINITY ? this.#foreseen() : undefined;
      const { allowed } = suspects;
      if ((asked === 0 && !ahead) || !allowed) return { asked, given: [] };
      const worker = await membership.join();
      const request = this.#request(worker, asked, ahead, allowed);
      if (request.alone && asked > 0) suspects.noteAsked();
      const { known, tasks: taken, nextDueIn, expired } = await asking.ask((store) => store.claim(request));
      if (!known) membership.forget(worker);
      if (expired.length > 0) onExpired(expired);
      if (!known) continue;
      const tasks = taken.some(({ idempotenceUnsaid }) => idempotenceUnsaid) ? await this.#asDefined(taken) : taken;
      const [first] = tasks;
      if (first && !suspects.mayBegin(first, policyFor(first))) {
        void pipeline.handBack(first, AWAITS_EMPTY.message);
        return { asked, given: [] };
      }
      this.#keepAhead(tasks.slice(asked), limit() === Number.POSITIVE_INFINITY);
      return { asked, given: tasks.slice(0, asked), ...(nextDueIn !== undefined && { nextDueIn }) };
    }
  }

  /** Tasks that were claimed ahead wait here, unless the worker was paused or stopped since the claim was made. */
  #keepAhead(claims: readonly Claimed[], mayClaimAhead: boolean): void {
    const { pipeline, isStopping } = this.#options;
    const refusal = isStopping() ? SHUT_DOWN : mayClaimAhead ? undefined : PAUSED;
    if (refusal === undefined) this.#ahead.add(claims);
    else for (const claimed of claims) void pipeline.handBack(claimed, refusal);
  }

  #request(
    worker: number,
    limit: number,
    ahead: ClaimRequest['ahead'],
    allowed: Pick<ClaimRequest, 'suspects' | 'alone'>,
  ): ClaimRequest {
    const { takes, only, notIdempotent, ownHandlers } = this.#options;
    return {
      ...takes,
      ...(only && { only: [...only] }),
      ...(ahead && { ahead }),
      worker,
      limit,
      suspects: allowed.suspects,
      // Tasks claimed ahead begin first. A claim without a free slot gets no task that must run alone, and no task behind one.
      alone: allowed.alone && (limit === 0 || this.#ahead.size === 0),
      ...(notIdempotent.length > 0 && { notIdempotent }),
      except: ownHandlers.withoutLease,
    };
  }

  /** The claimed tasks, with `idempotent` as their definitions say. It is stored before any of them begins. */
  async #asDefined(taken: readonly Claimed[]): Promise<readonly Claimed[]> {
    const { asking, pipeline, definitionOf } = this.#options;
    const tasks = taken.map((claimed) => claimedUnder(definitionOf(claimed.type), claimed));
    try {
      await storeIdempotence(asking, tasks);
      return tasks;
    } catch (error) {
      const why = 'It could not be stored that it must not run twice.';
      for (const claimed of tasks) void pipeline.handBack(claimed, why);
      throw error;
    }
  }

  /** How many tasks to claim before a slot is free for them, if any. Only for workers without `only` and `maxTasks`. */
  #foreseen(): ClaimRequest['ahead'] {
    const { settings, only, pipeline, isStopping } = this.#options;
    const { claimAhead, maxTasks } = settings;
    if (!claimAhead || only || isStopping() || maxTasks !== Number.POSITIVE_INFINITY) return undefined;
    const request = this.#foresight.request(this.#ahead.size);
    // A task that waits behind a long execution would wait long.
    return request && pipeline.runsOther(request.types) ? undefined : request;
  }

  /** Whether tasks of a type may wait here with a lease. They must be tasks that may run twice, because the worker may die. */
  #mayClaimAhead(type: string): boolean {
    const { idempotent = true } = this.#options.definitionOf(type) ?? {};
    return idempotent === true;
  }
}
