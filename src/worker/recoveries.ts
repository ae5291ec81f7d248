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

/** Decides, for one worker, about tasks that others lost: when it starts, at each beat, and as soon as a lease can be taken over. */
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

  /** Whether there is a lease that has run out, and may soon be taken over. */
  get awaitsTakeover(): boolean {
    return this.#takeover.awaited;
  }

  /** Whether the death of other processes is looked for. */
  get hasNeighbours(): boolean {
    return this.#neighbours.any;
  }

  /** Looks whether another process has died, about once a second. */
  lookAtNeighbours(): void {
    if (this.#neighbours.hasLost()) this.begin();
  }

  /** Decides about tasks that others lost, and about those whose deadline passed while they waited. */
  run(): Promise<void> {
    this.#underWay ??= this.#options.inBackground(this.#run()).finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  /** The same where nobody waits for it: it may take long, and must not put off the next renewal. */
  begin(): void {
    if (!this.#options.isStopping())
      this.#logFailure(this.run(), 'What others lost could not be recovered; trying again');
  }

  /** Nobody waits for it: what has not expired is worked meanwhile. */
  endExpired(expired: readonly Recovered[]): void {
    const settled = this.#options.inBackground(settleRecovered(expired, this.#recovery));
    this.#logFailure(settled, 'Tasks whose deadline has passed could not be ended; trying again');
  }

  /** Looks for nobody's death, and leaves no timer. */
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
