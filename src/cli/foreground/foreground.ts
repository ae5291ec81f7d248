import { StateConflictError } from '../../errors.ts';
import type { CommandInput } from '../../handlers/command.ts';
import type { Logger } from '../../log.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import { PolicyBook } from '../../queue/policy-cache.ts';
import type { Task } from '../../queue/task-view.ts';
import { hasEnded } from '../../task.ts';
import { SHELL_COMMAND } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import type { Worker } from '../../worker/worker.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import { OutputLog } from '../output/output-log.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { taskTypes } from '../types/task-types.ts';
import { Departure } from './detacher.ts';
import { Brakes } from './handler-stopper.ts';
import { Progress } from './progress.ts';
import { Nudge } from './sleeper.ts';
import { LOOK_EVERY_MS, Watch } from './watch.ts';
import { foregroundName } from './workers-alive.ts';

/** How long a worker waits for its own handlers when it is told to stop; here the brakes decide how long that takes. */
const AS_LONG_AS_IT_TAKES = '30d';

/** Beyond the time that a command has to end by itself, for it to be reaped and its left-overs to go. */
const REAPING_MS = 5_000;

/** The note of the step that makes a task due for us. */
const TAKEN = 'to be worked in the foreground';

/** From SIGTERM to SIGKILL, for commands that do not say. */
const DEFAULT_KILL_AFTER_MS = 10_000;

/** An open store, and the means to work in the foreground. */
export interface Foreground {
  readonly holdfast: Holdfast;
  readonly brakes: Brakes;
  /** Listening begins when something was recorded; before that an interrupt ends the process as usual. */
  readonly departure: Departure;
}

/** Opens the store for a command that works tasks itself, and shows what their commands say as they say it. */
export async function withForeground<T>(
  cli: Cli,
  options: { readonly create: boolean },
  use: (foreground: Foreground) => Promise<T>,
): Promise<T> {
  const brakes = new Brakes();
  const { terminal } = cli;
  const log = troubleLog(terminal);
  const tasks = taskTypes({
    environment: cli.environment,
    brakes,
    output: new OutputLog(await cli.location(), log),
    // With --json stdout is for one document.
    write: (stream, chunk) => (stream === 'stdout' && !terminal.json ? terminal.out : terminal.err).raw(chunk),
  });
  return withStore(cli, { ...options, tasks, log, purpose: 'work' }, (holdfast) =>
    use({ holdfast, brakes, departure: new Departure(brakes, terminal) }),
  );
}

export interface WorkOptions {
  readonly concurrency?: number;
  /** How long this command waits; the tasks go on after it. */
  readonly timeoutMs?: number | undefined;
  /** Whether the last line of a task is this command's result. Default: it is progress. */
  readonly endsOnStdout?: boolean;
  /** These were recorded as due a little later, so that nobody else takes them first: they are due now. */
  readonly takeNow?: boolean;
}

export interface Worked {
  /** As they were left, in the order in which they were given. */
  readonly tasks: readonly Task[];
  /** A person, or the end of their patience, ended it. The tasks may be over all the same. */
  readonly left: boolean;
  /** Something of it goes on, or waits to. */
  readonly detached: boolean;
}

/**
 * Works tasks here and now until each has ended, needs a person or was put aside. What another worker takes is followed
 * instead. An interrupt detaches: the attempt that runs is stopped and not counted, and the tasks stay.
 */
export async function workHere(
  cli: Cli,
  foreground: Foreground,
  tasks: readonly Task[],
  options: WorkOptions = {},
): Promise<Worked> {
  const { holdfast, departure } = foreground;
  departure.listen();
  if (options.timeoutMs !== undefined) departure.leaveAfter(options.timeoutMs);
  const progress = new Progress(cli, {
    worker: foregroundName(process.pid),
    ownNote: TAKEN,
    many: tasks.length > 1,
    endsOnStdout: options.endsOnStdout ?? false,
    policies: new PolicyBook(holdfast),
  });
  try {
    const watch = await Watch.start(holdfast, tasks, isOver);
    for (const task of tasks.filter(isOver)) progress.over(task, await holdfast.history(task.id));
    await progress.start(options.takeNow ? watch.open.map(dueAtOnce) : watch.open, holdfast.store.upkeep.now());
    if (watch.open.length > 0) await work(cli, foreground, watch, progress, options);
    for (const change of await watch.look()) progress.change(change);
    if (departure.left) await progress.detached(watch.open);
    return { tasks: watch.tasks, left: departure.left, detached: departure.left && watch.open.length > 0 };
  } finally {
    departure.end();
  }
}

async function work(
  cli: Cli,
  { holdfast, brakes, departure }: Foreground,
  watch: Watch,
  progress: Progress,
  { concurrency = 1, takeNow: hurry = false }: WorkOptions,
): Promise<void> {
  const nudge = new Nudge();
  const worker = holdfast.worker({
    name: foregroundName(process.pid),
    only: watch.open.map(({ id }) => id),
    concurrency,
    grace: Math.max(...watch.open.map(killAfterOf)) + REAPING_MS,
    onEvent(event) {
      const { task } = event.task.lease;
      if (event.kind === 'settled' && event.state === 'succeeded') progress.succeeded(task, event.ranFor);
      watch.touch(task);
      nudge.call();
    },
  });
  const leaving = new Promise<void>((resolve) => {
    departure.onLeave(() => {
      nudge.call();
      resolve();
    });
  });
  try {
    worker.start();
    if (hurry) await Promise.race([takeNow(cli, holdfast, worker, watch.open), leaving]);
    while (watch.open.length > 0 && !departure.left) {
      await nudge.sleep(LOOK_EVERY_MS);
      for (const change of await watch.lookAgain()) progress.change(change);
    }
  } finally {
    brakes.stop();
    const stopped = worker.stop({ grace: AS_LONG_AS_IT_TAKES });
    await brakes.allStopped();
    await Promise.all([stopped, worker.stop({ grace: 0 })]);
  }
}

/**
 * Makes tasks due and claims them before anybody else can. Once the worker is idle, what is called in one turn of the event
 * loop shares a transaction: here the step that makes them due, and the claim to which the second drain wakes it.
 */
async function takeNow(cli: Cli, holdfast: Holdfast, worker: Worker, tasks: readonly Task[]): Promise<void> {
  await worker.drain();
  const due = tasks.map(({ id }) => holdfast.retry(id, { actor: cli.actor, note: TAKEN }));
  void worker.drain();
  for (const { reason } of (await Promise.allSettled(due)).filter((one) => one.status === 'rejected')) {
    // They fell due meanwhile, and somebody took them: then they are followed.
    if (!(reason instanceof StateConflictError)) throw reason;
  }
}

function dueAtOnce({ dueAt: _, ...task }: Task): Task {
  return task;
}

/** Exit code of what was worked or waited for: who is not finished speaks first, then who needs a person, then who failed. */
export function exitOfTasks(tasks: readonly Pick<Task, 'state'>[]): number {
  const states = new Set(tasks.map(({ state }) => state));
  if (tasks.some(({ state }) => !hasEnded(state) && state !== 'needs_manual')) return EXIT.notFinished;
  if (states.has('needs_manual')) return EXIT.needsPerson;
  return states.has('dead') || states.has('cancelled') ? EXIT.failed : EXIT.done;
}

/** Nothing more happens to it here: it ended, waits for a person, or was put aside. */
function isOver({ state }: Task): boolean {
  return hasEnded(state) || state === 'needs_manual' || state === 'held';
}

function killAfterOf({ type, input }: Task): number {
  if (type !== SHELL_COMMAND) return 0;
  const { killAfterMs } = Object(input) as Partial<CommandInput>;
  return typeof killAfterMs === 'number' ? killAfterMs : DEFAULT_KILL_AFTER_MS;
}

/**
 * What goes wrong beside the tasks is for people: a store that cannot be written just now, a lease that was lost. What becomes of
 * tasks is told by their progress.
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
