import { constants } from 'node:os';
import type { Task } from '../../queue/task-view.ts';
import type { HistoryEntry } from '../../store/store.ts';
import { EXIT } from '../exit-codes.ts';

/** The exit code of `timeout` from the coreutils. */
const TIMED_OUT = 124;

/** Exit codes for failures without an exit code of the command, by reason. */
const BY_REASON: Readonly<Record<string, number>> = {
  'process.not_found': 127,
  'process.not_executable': 126,
  timeout: TIMED_OUT,
};

/**
 * 0 for a task that succeeded, whichever exit codes `--success-on` names; else the last exit code of its command, as a shell would show
 * it, and never 0. 125 if there is none.
 */
export function commandStatus(task: Pick<Task, 'state'>, history: readonly HistoryEntry[]): number {
  if (task.state === 'succeeded') return EXIT.done;
  const last = history
    .flatMap((entry) => (entry.kind === 'execution' && !entry.late && entry.failure ? [entry.failure] : []))
    .at(-1);
  if (!last) return EXIT.runFailed;
  const status = statusOfCode(last.code) ?? BY_REASON[last.reason] ?? EXIT.runFailed;
  return status === 0 ? EXIT.failed : status;
}

function statusOfCode(code: string | undefined): number | undefined {
  if (code === undefined) return undefined;
  if (/^\d{1,3}$/.test(code)) return Number(code);
  const signals: Readonly<Record<string, number>> = constants.signals;
  return Object.hasOwn(signals, code) ? 128 + (signals[code] as number) : undefined;
}
