import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { Recovered } from '../store/store.ts';
import { cleanUp } from './clean-up.ts';
import { Neighbours } from './neighbours.ts';
import type { Pulse } from './pulse.ts';
import { type RecoveryOptions, recover, settleRecovered } from './recovery.ts';
import { Takeover } from './takeover.ts';

export interface RecoveriesOptions extends Omit<RecoveryOptions, 'onEnded' | 'isOver'> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly worker: string;
  /** The worker's id in the store, if it has one now. */
  readonly id: () => number | undefined;
  readonly pulse: Pulse;
  readonly isStopping: () => boolean;
  /** Whether the worker waits for more work. */
  readonly isLooping: () => boolean;
  readonly inBackground: <T>(work: Promise<T>) => Promise<T>;
}

/**
 * Recovers, for one worker, tasks that other workers lost: at its start, at each beat, and as soon as a lease can be taken over.
 */
export class Recoveries {
  readonly #options: RecoveriesOptions;
  readonly #recovery: Required<RecoveryOptions>;
  readonly #takeover: Takeover;
  readonly #neighbours = new Neighbours();
  #underWay: Promise<void> | undefined;

  constructor(options: RecoveriesOptions) {
    const { clock, log, isStopping, inBackground } = options;
    this.#options = options;
    this.#takeover = new Takeover(clock, () => this.begin());
    this.#recovery = {
      ...options,
      onEnded: (definition, lost) => void inBackground(cleanUp(definition, lost, log)),
      isOver: isStopping,
    };
  }

  /** Whether a lease has run out and may soon be taken over. */
  get awaitsTakeover(): boolean {
    return this.#takeover.awaited;
  }

  /** Whether it checks if other processes have died. */
  get hasNeighbours(): boolean {
    return this.#neighbours.any;
  }

  /** Checks about once a second whether another process has died. */
  lookAtNeighbours(): void {
    if (this.#neighbours.hasLost()) this.begin();
  }

  /** Recovers tasks that other workers lost, and ends those whose deadline passed while they waited. */
  run(): Promise<void> {
    this.#underWay ??= this.#options.inBackground(this.#run()).finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  /** The same, without waiting: it may take long, and must not delay the next renewal. */
  begin(): void {
    if (!this.#options.isStopping()) this.#logFailure(this.run(), 'Lost tasks could not be recovered; trying again');
  }

  /** Nothing waits for this: other tasks run meanwhile. */
  endExpired(expired: readonly Recovered[]): void {
    const settled = this.#options.inBackground(settleRecovered(expired, this.#recovery));
    this.#logFailure(settled, 'Tasks whose deadline has passed could not be ended; trying again');
  }

  /** Stops checking other processes, and clears the timer. */
  rest(): void {
    this.#neighbours.set([]);
    this.#takeover.expectIn(undefined);
  }

  async #run(): Promise<void> {
    const { id, pulse, isStopping, isLooping } = this.#options;
    const worker = id();
    if (worker === undefined) return;
    const { nextIn, neighbours } = await recover(worker, this.#recovery);
    if (isStopping() || !isLooping()) return;
    this.#takeover.expectIn(nextIn);
    this.#neighbours.set(neighbours);
    if (this.#neighbours.any) pulse.begin();
  }

  #logFailure(work: Promise<void>, text: string): void {
    const { log, worker } = this.#options;
    work.catch((error: unknown) => log.error({ err: error, worker }, text));
  }
}
