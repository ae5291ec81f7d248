import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Failure, Outcome } from '../failure/outcome.ts';
import type { Trouble } from '../store/store.ts';
import type { Announcer } from './announcer.ts';

/** After this many failures in a row at the worker's fault, the worker itself is taken to be at fault. */
const ENOUGH = 2;

/** These are also at the worker's fault, but concern one task's own program, module or folder. They say nothing about other tasks. */
const OF_ONE_TASK: readonly string[] = ['process.not_found', 'process.cwd_missing', 'process.not_loaded'];

/** The worker claims nothing for 1 s. This doubles up to this limit, each time that a trial task fails. */
const SHORTEST: Milliseconds = 1_000;
const LONGEST: Milliseconds = 60_000;

export interface ClaimPauseOptions {
  readonly clock: Clock;
  readonly announcer: Announcer;
  /** Tells the store. */
  readonly report: (trouble: Trouble | undefined) => void;
}

/**
 * Decides whether a worker claims tasks, by the outcomes of its executions. If the worker lacks something, such as free disk
 * space, every task would fail. So it waits, tries one task, and continues as soon as a task ends without such a failure.
 *
 * ```
 * working ──(2 failures in a row at its fault)──► waiting ──(1 s, doubling ≤ 60 s)──► probing, with one task
 *    ▲                                               ▲  │                             │  │  ▲ │ one more each time
 *    │                                               └──────────(fails likewise)───────┘  │  └─┘ that it waited as long
 *    └──────────────────────(anything ends without such a failure)─────┴──────────────────┘
 * ```
 */
export class ClaimPause {
  readonly #options: ClaimPauseOptions;
  #inARow = 0;
  /** Undefined while it claims as usual. */
  #wait: Milliseconds | undefined;
  #waitsUntil: Milliseconds = 0;
  /** The trial executions since the last failure. */
  readonly #probes = new Set<object>();

  constructor(options: ClaimPauseOptions) {
    this.#options = options;
  }

  /** How many more tasks may be claimed now. */
  get limit(): number {
    if (this.#wait === undefined) return Number.POSITIVE_INFINITY;
    return this.waitsFor > 0 ? 0 : 1;
  }

  /** How long until the next trial task may start; 0 while it claims as usual. */
  get waitsFor(): Milliseconds {
    return this.#wait === undefined ? 0 : Math.max(0, this.#waitsUntil - this.#now);
  }

  /** An execution begins. During a pause this is one that was claimed before the pause. */
  begun(execution: object): void {
    if (this.#wait === undefined || this.waitsFor > 0) return;
    this.#probes.add(execution);
    this.#waitsUntil = this.#now + this.#wait;
  }

  /** An execution has ended. */
  ended(execution: object, outcome: Outcome): void {
    if (provesNothing(outcome)) this.#forget(execution);
    else if (outcome.kind === 'failure' && outcome.failure.fault === 'worker') this.#failed(execution, outcome.failure);
    else this.#goOn();
  }

  get #now(): Milliseconds {
    return this.#options.clock.monotonic();
  }

  /** If no other trial runs, the next one may start at once. */
  #forget(execution: object): void {
    if (this.#probes.delete(execution) && this.#probes.size === 0) this.#waitsUntil = this.#now;
  }

  #failed(execution: object, { reason, message }: Failure): void {
    this.#inARow += 1;
    if (this.#wait === undefined) {
      if (this.#inARow < ENOUGH) return;
      this.#wait = SHORTEST;
      const { announcer, report } = this.#options;
      announcer.log({ kind: 'worker_paused', reason, message });
      report({ reason, message });
    } else if (this.#probes.has(execution)) this.#wait = Math.min(this.#wait * 2, LONGEST);
    // It began before the pause, or before another trial failed.
    else return;
    this.#probes.clear();
    this.#waitsUntil = this.#now + this.#wait;
  }

  #goOn(): void {
    this.#inARow = 0;
    if (this.#wait === undefined) return;
    this.#wait = undefined;
    this.#probes.clear();
    const { announcer, report } = this.#options;
    announcer.log({ kind: 'worker_resumed' });
    report(undefined);
  }
}

/** Executions that were cut off or handed back, or whose program was not found. */
function provesNothing(outcome: Outcome): boolean {
  if (outcome.kind !== 'failure') return outcome.kind === 'interruption';
  return outcome.failure.fault === 'worker' && OF_ONE_TASK.includes(outcome.failure.reason);
}
