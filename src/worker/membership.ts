import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Logger } from '../log.ts';
import { PROGRAM } from '../program.ts';
import { RENEWALS_PER_LEASE } from '../store/leases.ts';
import type { Claimed, Lease, Needed, NewWorker, Takes, Trouble } from '../store/store.ts';
import type { Asking } from './asking.ts';
import type { AbortCause } from './execution.ts';
import { Heartbeat } from './heartbeat.ts';
import { LeaseEnd } from './lease-end.ts';

/** A claim whose lease is stored in the worker's row. */
export interface Held {
  readonly claimed: Claimed;
  abort(cause: AbortCause): void;
}

export interface MembershipOptions {
  readonly asking: Asking;
  readonly clock: Clock;
  readonly log: Logger;
  readonly name: string;
  readonly leaseFor: Milliseconds;
  /** What the worker may claim. */
  readonly takes: Takes;
  /** How long a handler may go on after the last renewal. */
  readonly mayRunFor: () => NonNullable<NewWorker['mayRunFor']>;
  /** What another process needs to know about the worker's types to recover their tasks. */
  readonly publishes: () => Readonly<Record<string, string>>;
  /** The claims whose leases this worker has, as far as it knows. */
  readonly held: () => readonly Held[];
  /** For how long the store may have given it leases that are not in this list yet. */
  readonly claimingFor: () => Milliseconds;
  /** Runs a beat so that a stop or drain can wait for it. */
  readonly inBackground: (beat: Promise<void>) => Promise<void>;
  /** Whether other workers may take over its tasks while this process cannot reach the store. */
  readonly mayBeCutOff: boolean;
  /** Whether it holds nothing, and has been given nothing for a while. */
  readonly isIdle: () => boolean;
  /** Called when the worker got a row, also after it has lost one. */
  readonly onJoined: () => void;
  /** Called after each renewal, whether it succeeded or not, with what the store says is to be done. */
  readonly afterBeat: (needed: Partial<Needed>) => void;
}

/**
 * A worker's row in the store, which has the lease of all its tasks. It is made when it is first needed, renewed three times per
 * lease length while the worker works or holds tasks, made again if the store has removed it, and removed at the end.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #interval: Milliseconds;
  readonly #heartbeat: Heartbeat;
  #id: number | undefined;
  /** The id of the row that is being removed. */
  #leaving: number | undefined;
  /** The store removes the row as soon as it can be reached. */
  #ended = false;
  #joining: Promise<number> | undefined;
  #refreshing: Promise<void> | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** How long the lease was then. */
  #leaseFor: Milliseconds;
  #needsNoPolls = false;
  readonly #end: LeaseEnd | undefined;
  /**
   * When the first renewal after the last successful one was requested; undefined if there is none without an answer or failed.
   */
  #failingSince: Milliseconds | undefined;
  #trouble: Trouble | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#interval = options.leaseFor / RENEWALS_PER_LEASE;
    const { clock } = options;
    this.#leaseFor = options.leaseFor;
    this.#end = options.mayBeCutOff
      ? new LeaseEnd({
          clock,
          lastRenewalTimeout: this.#interval,
          failingSince: () => this.#failingSince,
          renew: () => this.refresh(),
          onEnd: () => this.#giveUp(),
        })
      : undefined;
    this.#heartbeat = new Heartbeat(options.clock, this.#interval, () => options.inBackground(this.#beat()));
  }

  /** The worker's id, if it has one now. */
  get id(): number | undefined {
    return this.#id;
  }

  /** Renews at every interval from now on. */
  keep(): void {
    this.#heartbeat.start();
  }

  /** Stops renewing, and clears the timer. */
  rest(): void {
    this.#heartbeat.stop();
    this.#end?.stop();
  }

  /** The worker's id, with a lease that is fresh. */
  async join(): Promise<number> {
    const sinceRenewal = this.#options.clock.monotonic() - this.#renewedAt;
    if (this.#id !== undefined && !this.#heartbeat.going && sinceRenewal >= this.#interval) await this.#renew();
    if (this.#id !== undefined) return this.#id;
    this.#joining ??= this.#announce().finally(() => {
      this.#joining = undefined;
    });
    return this.#joining;
  }

  /** Whether the lease may have run out since it was last renewed: after a sleep, or while the store cannot be reached. */
  get mayHaveLapsed(): boolean {
    return this.#options.clock.monotonic() - this.#renewedAt >= this.#leaseFor;
  }

  /** Whether the next renewal, or the store before it, tells of work: then nobody polls. */
  get needsNoPolls(): boolean {
    return this.#needsNoPolls;
  }

  /** A claim that was made at this moment gave tasks: it is idle no more, and its lease counts from then. */
  noteClaim(askedAt: Milliseconds): void {
    if (!this.#needsNoPolls) return;
    this.#needsNoPolls = false;
    this.#noteRenewal(askedAt);
    this.#heartbeat.moveNext();
  }

  /** Renews now, and aborts the handlers of lost leases. Does not reject: a failed renewal is tried again at the next beat. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#beat().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** The store does not know this id any more. The worker may have joined anew meanwhile. */
  forget(id: number): void {
    if (this.#id === id) this.#id = undefined;
  }

  /** Stores why the worker claims nothing, or that it claims again. Does not reject: only people read this. */
  async reportTrouble(trouble: Trouble | undefined): Promise<void> {
    this.#trouble = trouble;
    if (this.#id !== undefined) await this.#sayTrouble(this.#id);
  }

  async leave(): Promise<void> {
    const id = this.#id;
    if (id === undefined || this.#ended) return;
    this.#id = undefined;
    this.#leaving = id;
    try {
      await this.#options.asking.ask((tasks) => tasks.leave(id));
      this.#leaving = undefined;
    } catch (error) {
      this.leaveLater();
      const text = 'The worker could not sign off; trying again for as long as its process lives';
      this.#options.log.warn({ err: error, worker: this.#options.name }, text);
    }
  }

  /** Lets the store remove a remaining row as soon as it can be reached, without waiting for this. */
  leaveLater(): void {
    const id = this.#id ?? this.#leaving;
    if (id !== undefined && !this.#ended) this.#options.asking.tasks.leaveLater(id);
    this.#ended = true;
  }

  async #announce(): Promise<number> {
    const { asking, clock, name, leaseFor, mayRunFor, takes, publishes } = this.#options;
    const program = PROGRAM === undefined ? {} : { program: PROGRAM };
    const worker = { name, leaseFor, mayRunFor: mayRunFor(), takes, publishes: publishes(), ...program };
    const askedAt = clock.monotonic();
    this.#id = await asking.ask((tasks) => tasks.join(worker));
    if (this.#ended) {
      asking.tasks.leaveLater(this.#id);
      return this.#id;
    }
    this.#noteRenewal(askedAt);
    this.#options.onJoined();
    if (this.#trouble) await this.#sayTrouble(this.#id);
    // Leases of an earlier row are lost. Their tasks must not be claimed again while their handlers still run here.
    if (this.#options.held().length > 0) await this.#renew();
    return this.#id ?? this.#announce();
  }

  async #sayTrouble(id: number): Promise<void> {
    const { asking, log, name } = this.#options;
    try {
      await asking.ask((tasks) => tasks.reportTrouble(id, this.#trouble));
    } catch (error) {
      log.warn({ err: error, worker: name }, 'The store could not record whether the worker claims tasks');
    }
  }

  async #beat(): Promise<void> {
    const { log, name, afterBeat } = this.#options;
    // What failed leaves the worker without a word of what it slept through.
    let needed: Partial<Needed> = { work: true };
    try {
      needed = await this.#renew();
      // Renewing under the new id shows which leases of the old id are gone.
      if (this.#id === undefined && !this.#ended) await this.join();
    } catch (error) {
      this.#needsNoPolls = false;
      log.error({ err: error, worker: name }, 'The lease could not be renewed; trying again');
    }
    afterBeat(needed);
  }

  /** The lease counts from the moment when the renewal was requested, because the store may have written it at once. */
  #noteRenewal(askedAt: Milliseconds, leaseFor = this.#options.leaseFor): void {
    this.#renewedAt = askedAt;
    this.#leaseFor = leaseFor;
    this.#failingSince = undefined;
    if (this.#heartbeat.going) this.#end?.noteRenewal(askedAt, leaseFor);
  }

  /** The lease has ended, and the store cannot be reached. Other workers may have the tasks by now. */
  #giveUp(): void {
    const { log, name, held } = this.#options;
    const claims = held();
    if (claims.length === 0) return;
    const text =
      'The lease has ended without a renewal, so other workers may take over its tasks; its handlers are aborted';
    log.error({ worker: name, tasks: claims.length }, text);
    for (const claim of claims) claim.abort('lost');
  }

  async #renew(): Promise<Partial<Needed>> {
    const { asking, clock, held, claimingFor, isIdle } = this.#options;
    const id = this.#id;
    if (id === undefined) return {};
    const claims = held();
    const leases = claims.map(({ claimed }) => claimed.lease);
    const askedAt = clock.monotonic();
    this.#failingSince ??= askedAt;
    const renewal = await asking.ask((tasks) => tasks.renew(id, leases, claimingFor(), isIdle()));
    const { known, lost, cancelled, needed = {}, idle } = renewal;
    // A claim may have given tasks meanwhile.
    this.#needsNoPolls = idle !== undefined && isIdle();
    if (known) this.#noteRenewal(askedAt, this.#needsNoPolls ? idle?.leaseFor : undefined);
    else this.forget(id);
    if (this.#needsNoPolls) this.#heartbeat.moveNext(idle?.renewIn);
    for (const claim of among(claims, lost)) claim.abort('lost');
    for (const claim of among(claims, cancelled)) claim.abort('cancel');
    return needed;
  }
}

/** The claims of these leases. The id of the task is not enough: it may have been claimed again since. */
export function among(claims: readonly Held[], leases: readonly Lease[]): readonly Held[] {
  const named = new Set(leases.map(textOf));
  return claims.filter(({ claimed }) => named.has(textOf(claimed.lease)));
}

function textOf({ task, execution, token }: Lease): string {
  return `${task} ${execution} ${token}`;
}
