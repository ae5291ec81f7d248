import type { Milliseconds } from '../duration.ts';
import type { Decision } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { isEnabled, type Logger, type LogLine } from '../log.ts';
import type { Claimed, StepTaken } from '../store/store.ts';
import type { TaskState } from '../task.ts';
import { levelOf, lineOf, lineOfStep } from './log-lines.ts';

/**
 * What a worker tells of: each execution's start, then its settlement. What it decides about tasks that others lost, and
 * about those whose deadline passed, is settled without a start.
 */
export type WorkerEvent =
  | { readonly kind: 'started'; readonly task: Claimed; readonly policy: Policy }
  | {
      readonly kind: 'settled';
      readonly task: Claimed;
      readonly outcome: Outcome;
      readonly decision: Decision;
      readonly state: TaskState;
      readonly ranFor: Milliseconds;
    }
  /** The lease had ended: what was reported is kept as evidence, and changed nothing. */
  | { readonly kind: 'stale'; readonly task: Claimed; readonly outcome: Outcome };

/** What one execution came to. */
export type Finished = Extract<WorkerEvent, { kind: 'settled' | 'stale' }>;

/** Tells of events: to the log, and to whoever asked. Neither can do harm. */
export class Announcer {
  readonly #worker: string;
  readonly #log: Logger;
  readonly #onEvent: ((event: WorkerEvent) => unknown) | undefined;

  /** `log` does not throw. */
  constructor(worker: string, log: Logger, onEvent: ((event: WorkerEvent) => unknown) | undefined) {
    this.#worker = worker;
    this.#log = log;
    this.#onEvent = onEvent;
  }

  tell(event: WorkerEvent): void {
    if (isEnabled(this.#log, levelOf(event))) this.#write(lineOf(event, this.#worker));
    const report = (error: unknown) => this.#log.error({ err: error, worker: this.#worker }, 'onEvent threw');
    try {
      // Its type says that it answers nothing, which an async function satisfies; its rejection would end the process.
      const answer = this.#onEvent?.(event);
      if (answer instanceof Promise) answer.catch(report);
    } catch (error) {
      report(error);
    }
  }

  /** A step that somebody took, in whatever process. */
  tellStep(step: StepTaken): void {
    this.#write(lineOfStep(step));
  }

  #write({ level, fields, message }: LogLine): void {
    this.#log[level](fields, message);
  }
}
