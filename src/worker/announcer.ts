import type { Logger } from '../log.ts';
import type { EngineEvent, WorkerEvent } from '../telemetry/events.ts';
import { logEvent } from '../telemetry/log-lines.ts';

/** Hands events to the log, and those of executions to `onEvent`. An error of either has no effect on tasks. */
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

  /** For events that `onEvent` does not get. */
  log(event: EngineEvent): void {
    logEvent(this.#log, event, this.#worker);
  }

  tell(event: WorkerEvent): void {
    this.log(event);
    if (!this.#onEvent) return;
    const report = (error: unknown) => this.#log.error({ err: error, worker: this.#worker }, 'onEvent threw');
    try {
      // An async function fits its type too. Without this, its rejection would end the process.
      const answer = this.#onEvent(event);
      if (answer instanceof Promise) answer.catch(report);
    } catch (error) {
      report(error);
    }
  }
}
