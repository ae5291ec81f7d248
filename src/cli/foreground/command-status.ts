import { constants } from 'node:os';
import type { Task } from '../../queue/task-view.ts';
import type { HistoryEntry } from '../../store/store.ts';
import { EXIT } from '../exit-codes.ts';

/** What `timeout` of the coreutils ends with. */
const TIMED_OUT = 124;

/** Exit codes for failures without an exit code of the command, by reason. */
const BY_REASON: Readonly<Record<string, number>> = {
  'process.not_found': 127,
  'process.not_executable': 126,
  timeout: TIMED_OUT,
};

/**
 * The exit code that the command of a task ended with last, as a shell would show it; 125 where it never got so far. A task
 * that did not succeed never gives 0: 0 may have been no success by `--success-on`, or be from before a person gave it up.
 */
export function commandStatus(task: Pick<Task, 'state' | 'result'>, history: readonly HistoryEntry[]): number {
  if (task.state === 'succeeded') return statusOfResult(task.result);
  const last = history
    .flatMap((entry) => (entry.kind === 'execution' && !entry.late && entry.failure ? [entry.failure] : []))
    .at(-1);
  if (!last) return EXIT.runFailed;
  const status = statusOfCode(last.code) ?? BY_REASON[last.reason] ?? EXIT.runFailed;
  return status === 0 ? EXIT.failed : status;
}

/** A person who resolved it may have left another result, or none. */
function statusOfResult(result: unknown): number {
  const { exit } = Object(result) as { exit?: unknown };
  return typeof exit === 'number' && Number.isInteger(exit) && exit >= 0 && exit <= 255 ? exit : EXIT.done;
}

function statusOfCode(code: string | undefined): number | undefined {
  if (code === undefined) return undefined;
  if (/^\d{1,3}$/.test(code)) return Number(code);
  const signals: Readonly<Record<string, number>> = constants.signals;
  return Object.hasOwn(signals, code) ? 128 + (signals[code] as number) : undefined;
}
