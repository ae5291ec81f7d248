import { isEnabled, type Logger } from '../log.ts';
import type { ActionTaken } from '../store/store.ts';
import type { WorkerEvent } from '../telemetry/events.ts';
import { type LogLine, levelOf, lineOf, lineOfAction } from '../telemetry/log-lines.ts';

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
  tellAction(step: ActionTaken): void {
    this.#write(lineOfAction(step));
  }

  #write({ level, fields, message }: LogLine): void {
    this.#log[level](fields, message);
  }
}
