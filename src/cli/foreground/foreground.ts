import { foregroundName, lostWorkers } from '../../documents/workers-alive.ts';
import { StateConflictError } from '../../errors.ts';
import type { CommandInput } from '../../handlers/command.ts';
import type { Logger } from '../../log.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import { PolicyCache } from '../../queue/policy-cache.ts';
import type { Task } from '../../queue/task-view.ts';
import { SHELL_COMMAND } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Cli } from '../cli.ts';
import { withHoldfast } from '../opening/open-holdfast.ts';
import { OutputLog } from '../output/output-log.ts';
import type { WholeAnswer } from '../output/whole-answer.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { taskTypes } from '../types/task-types.ts';
import { Detacher } from './detacher.ts';
import { HandlerStopper } from './handler-stopper.ts';
import { isLeftToPeople, Progress } from './progress.ts';
import { Sleeper } from './sleeper.ts';
import { LOOK_EVERY_MS, Watch } from './watch.ts';

/** The grace of the worker while `HandlerStopper` stops the handlers: that decides how long it takes. */
const UNTIL_ALL_STOPPED = '30d';

/** Added to the time that a command has to end by itself, so that the process and its children can end. */
const REAPING_MS = 5_000;

/** The note of the retry that makes a task due for this process. */
const TAKEN = 'to be worked in the foreground';

/** The time from SIGTERM to SIGKILL, for commands that set none. */
const DEFAULT_KILL_AFTER_MS = 10_000;

/** An open store, and what is needed to run tasks in the foreground. */
export interface Foreground {
  readonly holdfast: Holdfast;
  readonly stopper: HandlerStopper;
  /** It listens as soon as something is recorded. Before that, an interrupt ends the process as usual. */
  readonly detacher: Detacher;
}

/** Opens the store for a command that runs tasks itself, and shows the output of their commands while they run. */
export async function withForeground<T>(
  cli: Cli,
  options: { readonly create: boolean; readonly answer?: WholeAnswer },
  use: (foreground: Foreground) => Promise<T>,
): Promise<T> {
  const stopper = new HandlerStopper();
  const { terminal } = cli;
  const log = troubleLog(terminal);
  const { answer, ...opening } = options;
  const tasks = taskTypes({
    environment: cli.environment,
    stopper,
    output: new OutputLog(await cli.location(), log),
    // With --json, stdout contains only one document.
    write: (stream, chunk) => (stream === 'stdout' && !terminal.json ? terminal.out : terminal.err).raw(chunk),
    ...(answer && { answer }),
  });
  return withHoldfast(cli, { ...opening, tasks, log }, async (holdfast) => {
    const detacher = new Detacher(stopper, terminal);
    try {
      return await use({ holdfast, stopper, detacher });
    } finally {
      // A person who interrupts does not wait for a store that is locked or unavailable.
      if (detacher.detached) await holdfast.close({ grace: 0 });
    }
  });
}

export interface WorkOptions {
  readonly concurrency?: number;
  /** How long this command waits; the tasks go on after it. */
  readonly timeoutMs?: number | undefined;
  /** Whether the last line of a task is this command's result. Default: it is progress. */
  readonly endsOnStdout?: boolean;
  /** The tasks were recorded as due a little later, so that no other worker claims them first. Make them due now. */
  readonly takeNow?: boolean;
}

export interface Worked {
  /** The tasks at the end, in the order in which they were given. */
  readonly tasks: readonly Task[];
  /** An interrupt or `--timeout` ended the work. All tasks may still be over. */
  readonly interrupted: boolean;
  /** It was interrupted, and some tasks are not over. */
  readonly detached: boolean;
}

/**
 * Runs tasks in this process until each has ended, needs a person or is held. A task that another worker claims is watched
 * instead. An interrupt detaches: the running attempt is stopped and not counted, and the tasks stay.
 */
export async function workHere(
  cli: Cli,
  foreground: Foreground,
  tasks: readonly Task[],
  options: WorkOptions = {},
): Promise<Worked> {
  const { holdfast, detacher } = foreground;
  detacher.listen();
  if (options.timeoutMs !== undefined) detacher.detachAfter(options.timeoutMs);
  const progress = new Progress(cli, {
    worker: foregroundName(process.pid),
    ownNote: TAKEN,
    many: tasks.length > 1,
    endsOnStdout: options.endsOnStdout ?? false,
    policies: new PolicyCache(holdfast),
    lostWorkers: await lostWorkers(holdfast),
  });
  try {
    const watch = await Watch.start(holdfast, tasks, isLeftToPeople);
    for (const task of tasks.filter(isLeftToPeople)) progress.over(task, await holdfast.history(task.id));
    await progress.start(options.takeNow ? watch.open.map(dueAtOnce) : watch.open, holdfast.now());
    if (watch.open.length > 0) await work(cli, foreground, watch, progress, options);
    for (const change of await watch.look()) progress.change(change);
    if (detacher.detached) await progress.detached(watch.open);
    return { tasks: watch.tasks, interrupted: detacher.detached, detached: detacher.detached && watch.open.length > 0 };
  } finally {
    detacher.end();
  }
}

async function work(
  cli: Cli,
  { holdfast, stopper, detacher }: Foreground,
  watch: Watch,
  progress: Progress,
  { concurrency = 1, takeNow: hurry = false }: WorkOptions,
): Promise<void> {
  const sleeper = new Sleeper();
  if (!detacher.detached) stopper.reset();
  const worker = holdfast.worker({
    name: foregroundName(process.pid),
    only: watch.open.map(({ id }) => id),
    concurrency,
    grace: `${Math.max(...watch.open.map(killAfterOf)) + REAPING_MS}ms`,
    onEvent(event) {
      const { task } = event.task.lease;
      if (event.kind === 'settled' && event.state === 'succeeded') progress.succeeded(task, event.ranFor);
      watch.touch(task);
      sleeper.wake();
    },
  });
  const leaving = new Promise<void>((resolve) => {
    detacher.onDetach(() => {
      sleeper.wake();
      resolve();
    });
  });
  try {
    worker.start();
    if (hurry) await Promise.race([takeNow(cli, holdfast, worker, watch.open), leaving]);
    while (watch.open.length > 0 && !detacher.detached) {
      await sleeper.sleep(LOOK_EVERY_MS);
      for (const change of await watch.lookAgain()) progress.change(change);
    }
  } finally {
    stopper.stop();
    const stopped = worker.stop({ grace: UNTIL_ALL_STOPPED });
    await stopper.allStopped();
    await Promise.all([stopped, worker.stop({ grace: 0 })]);
  }
}

/**
 * Makes tasks due and claims them before another worker can. Once the worker is idle, calls in one turn of the event loop share
 * a transaction: here the retry that makes them due, and the claim of the second drain.
 */
async function takeNow(cli: Cli, holdfast: Holdfast, worker: Worker, tasks: readonly Task[]): Promise<void> {
  await worker.drain();
  const due = tasks.map(({ id }) => holdfast.retry(id, { actor: cli.actor, note: TAKEN }));
  void worker.drain();
  for (const { reason } of (await Promise.allSettled(due)).filter((one) => one.status === 'rejected')) {
    // They fell due meanwhile, and another worker claimed them. So they are watched.
    if (!(reason instanceof StateConflictError)) throw reason;
  }
}

function dueAtOnce({ dueAt: _, ...task }: Task): Task {
  return task;
}

function killAfterOf({ type, input }: Task): number {
  if (type !== SHELL_COMMAND) return 0;
  const { killAfterMs } = Object(input) as Partial<CommandInput>;
  return typeof killAfterMs === 'number' ? killAfterMs : DEFAULT_KILL_AFTER_MS;
}

/**
 * Shows errors that are not about one task, such as a store that cannot be written or a lost lease. `Progress` shows what happens to
 * the tasks.
 */
function troubleLog(terminal: Terminal): Logger {
  const say = (fields: object, message: string) => {
    const { err } = fields as { err?: unknown };
    terminal.warn(visible(err instanceof Error ? `${message}: ${err.message}` : message));
  };
  const whisper = (fields: object, message: string) => {
    if (terminal.verbose > 1) say(fields, message);
  };
  const tell = (fields: object, message: string) => {
    const { event = 'lease_lost' } = fields as { event?: unknown };
    if (event === 'lease_lost') say(fields, message);
    else whisper(fields, message);
  };
  return { debug: whisper, info: whisper, warn: tell, error: tell };
}
