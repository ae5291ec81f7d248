import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Failure, Outcome } from '../failure/outcome.ts';
import type { Logger } from '../log.ts';
import type { Trouble } from '../store/store.ts';

/** So many failures at the worker's fault, and nothing else between them, are taken for the state of the worker. */
const ENOUGH = 2;

/** At the worker's fault too, but of one task's own program or folder: they say nothing of the other tasks. */
const OF_ONE_TASK: readonly string[] = ['process.not_found', 'process.cwd_missing'];

/** The worker claims nothing for 1 s, doubling up to this, each time that a probe fails. */
const SHORTEST: Milliseconds = 1_000;
const LONGEST: Milliseconds = 60_000;

export interface ClaimPauseOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly worker: string;
  /** Tells the store. */
  readonly report: (trouble: Trouble | undefined) => void;
}

/**
 * Whether a worker claims, by what became of its own executions. What it lacks itself, such as room on its disk, would fail one
 * task after the other; so it waits, tries one, and goes on as soon as anything ends without such a failure.
 *
 * ```
 * working ──(2 failures in a row at its fault)──► waiting ──(1 s, doubling ≤ 60 s)──► probing, with one task
 *    ▲                                               ▲  │                             │  │
 *    │                                               └──────────(fails likewise)───────┘  │
 *    └──────────────────────(anything ends without such a failure)─────┴──────────────────┘
 * ```
 */
export class ClaimPause {
  readonly #options: ClaimPauseOptions;
  #inARow = 0;
  /** Undefined while it works. */
  #wait: Milliseconds | undefined;
  #waitsUntil: Milliseconds = 0;
  /** A task was begun as a probe and has not ended. */
  #probes = false;

  constructor(options: ClaimPauseOptions) {
    this.#options = options;
  }

  /** How many more tasks may be claimed now. */
  get limit(): number {
    if (this.#wait === undefined) return Number.POSITIVE_INFINITY;
    return this.waitsFor > 0 || this.#probes ? 0 : 1;
  }

  /** How long until it probes; 0 where it works or probes. */
  get waitsFor(): Milliseconds {
    return this.#wait === undefined ? 0 : Math.max(0, this.#waitsUntil - this.#options.clock.monotonic());
  }

  /** An execution begins. */
  begun(): void {
    if (this.#wait !== undefined) this.#probes = true;
  }

  /** An execution has ended. */
  ended(outcome: Outcome): void {
    if (provesNothing(outcome)) this.#probes = false;
    else if (outcome.kind === 'failure' && outcome.failure.fault === 'worker') this.#failed(outcome.failure);
    else this.#goOn();
  }

  #failed({ reason, message }: Failure): void {
    this.#inARow += 1;
    if (this.#wait === undefined) {
      if (this.#inARow < ENOUGH) return;
      this.#wait = SHORTEST;
      const { log, worker, report } = this.#options;
      const fields = { event: 'worker.paused', worker, reason, error: message };
      log.error(fields, `${reason}: the worker claims nothing but one task now and then, until one ends without it`);
      report({ reason, message });
    } else if (this.waitsFor === 0) this.#wait = Math.min(this.#wait * 2, LONGEST);
    // It was begun before the pause.
    else return;
    this.#probes = false;
    this.#waitsUntil = this.#options.clock.monotonic() + this.#wait;
  }

  #goOn(): void {
    this.#inARow = 0;
    if (this.#wait === undefined) return;
    this.#wait = undefined;
    this.#probes = false;
    const { log, worker, report } = this.#options;
    log.info({ event: 'worker.resumed', worker }, 'A task ended without trouble: the worker claims tasks again');
    report(undefined);
  }
}

/** What was cut off or handed back, or found no program to start. */
function provesNothing(outcome: Outcome): boolean {
  if (outcome.kind !== 'failure') return outcome.kind === 'interruption';
  return outcome.failure.fault === 'worker' && OF_ONE_TASK.includes(outcome.failure.reason);
}
