import type { NewTask } from '../store/store.ts';
import type { WorkerEvent } from '../telemetry/events.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import { traceOf, withTrace } from './own-options.ts';

interface Sending {
  /** The same tasks, each with the trace of its enqueue. */
  readonly tasks: readonly NewTask[];
  /** As `Telemetry.sending` has it. */
  readonly ended: (error?: unknown) => void;
}

/** Begins the span of an enqueue; `schedule` names the one that enqueues. Without `telemetry` or tasks there is none. */
export function beginSending(telemetry: Telemetry | undefined, tasks: readonly NewTask[], schedule?: string): Sending {
  if (!telemetry || tasks.length === 0) return { tasks, ended() {} };
  const { headers, ended } = telemetry.sending(tasks, schedule);
  const traced = (task: NewTask): NewTask => {
    const policy = withTrace(task.policy, headers);
    return policy === undefined ? task : { ...task, policy };
  };
  return { tasks: tasks.map(traced), ended };
}

/** Records tasks by `write`, within the span of their enqueue. */
export function send<Written>(
  telemetry: Telemetry | undefined,
  planned: readonly NewTask[],
  write: (tasks: readonly NewTask[]) => Promise<Written>,
): Promise<Written> {
  if (!telemetry) return write(planned);
  const { tasks, ended } = beginSending(telemetry, planned);
  const written = write(tasks);
  written.then(() => ended(), ended);
  return written;
}

/** Tells of an event of a worker. A start is linked to the enqueue of its task. */
export function tellTelemetry(telemetry: Telemetry, event: WorkerEvent, worker: string): void {
  telemetry.event(event, worker, event.kind === 'started' ? traceOf(event.task.policy) : undefined);
}
