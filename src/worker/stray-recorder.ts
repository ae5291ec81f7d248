import type { Clock } from '../clock.ts';
import { classify } from '../failure/classify/classify.ts';
import type { Classifier } from '../failure/classify/rules.ts';
import type { Logger } from '../log.ts';
import type { Announcer } from './announcer.ts';
import type { Asking } from './asking.ts';
import type { StrayOwner } from './execution.ts';
import { leaveToNode } from './strays.ts';
import type { UnhandledRejections } from './worker-options.ts';

/**
 * The most stray errors that are recorded for one execution: a timer that always throws must not fill the history of its task.
 */
const MOST_RECORDED = 10;

export interface StrayRecorderOptions {
  readonly asking: Asking;
  readonly clock: Clock;
  readonly log: Logger;
  readonly announcer: Announcer;
  readonly worker: string;
  readonly rule: UnhandledRejections;
  readonly classifier: () => Classifier | undefined;
}

/** Logs errors that handlers left behind, and records each one in the history of its task. */
export class StrayRecorder {
  readonly #options: StrayRecorderOptions;
  readonly #counts = new WeakMap<StrayOwner, number>();

  constructor(options: StrayRecorderOptions) {
    this.#options = options;
  }

  /** Resolves when it is recorded, or could not be recorded. Does not reject. */
  async record(owner: StrayOwner, thrown: unknown): Promise<void> {
    const { asking, clock, log, announcer, worker, rule, classifier } = this.#options;
    const count = (this.#counts.get(owner) ?? 0) + 1;
    this.#counts.set(owner, count);
    if (count <= MOST_RECORDED) {
      const { lease, type, queue, source } = owner;
      const { task, execution } = lease;
      const failure = (classifier()?.classify ?? classify)(thrown, { now: clock.now(), type });
      const isLast = count === MOST_RECORDED;
      announcer.log({ kind: 'stray', execution: { task, execution, type, queue, source }, failure, isLast });
      try {
        await asking.ask((tasks) => tasks.recordStray({ task, execution, worker, failure }));
      } catch (error) {
        log.error({ err: error, worker, task }, 'A stray error could not be recorded in the history of its task');
      }
    }
    if (rule === 'exit') leaveToNode(thrown);
  }
}
