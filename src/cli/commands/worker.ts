import { statSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Command } from 'commander';
import { type DurationInput, formatDuration, type Milliseconds } from '../../duration.ts';
import { StoreError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { OWN_TYPES_TEXT } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import type { Worker, WorkerOptions } from '../../worker/worker.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { span } from '../flags/moment.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { holdsBackSignals } from '../foreground/first-process.ts';
import { HandlerStopper } from '../foreground/handler-stopper.ts';
import { WorkerReport } from '../foreground/worker-report.ts';
import { followConfig, onTerminal } from '../opening/follow-config.ts';
import { withHoldfast } from '../opening/open-holdfast.ts';
import { readConfig } from '../opening/read-config.ts';
import { OutputLog } from '../output/output-log.ts';
import { removeOutput } from '../output/output-removal.ts';
import { type Problem, problemOf, usage } from '../problem.ts';
import { type Interrupt, onInterrupt } from '../terminal/interrupts.ts';
import { taskTypes } from '../types/task-types.ts';

interface Flags {
  readonly concurrency?: string;
  readonly queues?: string;
  readonly grace?: string;
  readonly poll?: string;
  readonly lease?: string;
  readonly name?: string;
  readonly drain?: boolean;
  readonly maxTasks?: string;
  readonly metrics?: string;
}

const DEFAULT_GRACE = '30s';

/** The part of the grace after which commands that did not end are killed, so that no task is handed back beside its process. */
const KILL_AT = 0.95;

export function declare(command: Command): void {
  command
    .option('--concurrency <number>', 'how many at a time (default: 10)')
    .option('--queues <names>', 'only these queues, separated by commas')
    .option('--name <name>', 'what it is called (default: host and pid)')
    .option('--drain', 'run all due tasks, then exit')
    .option('--max-tasks <number>', 'start so many, then exit')
    .option('--grace <duration>', 'how long a stop waits for running tasks (default: 30s)')
    .option('--poll <duration>', 'how often it looks for what other processes recorded (default: 1s)')
    .option(
      '--metrics <port>',
      'serve /metrics for Prometheus, /healthz and /readyz there (on 127.0.0.1, or HOST:PORT)',
    )
    .option('--lease <duration>', 'how long others wait for it when it is silent (default: 30s)')
    .addHelpText(
      'after',
      `
It works ${OWN_TYPES_TEXT} tasks until SIGTERM or Ctrl-C. Then it takes no more, lets what runs finish for the
grace, and hands back the rest, uncounted. A second signal stops everything at once.
On a terminal it prints lines to read; else, and with --json, JSON lines.
Its configuration is followed: a changed file answers the next failure of tasks that wait already. Without a terminal SIGHUP
reads it again at once (on one, it means that the terminal was closed). One that is refused leaves the one before in force.

Exit codes
  0   stopped, drained, or done with --max-tasks
  1   it crashed
  2   unknown flag
  7   the store is lost, 9 if it may not be written
  78  bad configuration (systemd: RestartPreventExitStatus=78)`,
    );
  act<Flags>(command, (cli, _, flags) => work(cli, flags));
}

async function work(cli: Cli, flags: Flags): Promise<number> {
  const found = await readConfig(cli);
  if (found?.refused) throw problemOf(found.refused).endingWith(EXIT.badConfig);
  const options = configured(() => optionsFrom(flags, found?.registry.worker));
  const stopper = new HandlerStopper();
  const report = new WorkerReport(cli.terminal, options.name);
  const trouble = new Trouble(report);
  const output = new OutputLog(await cli.location(), trouble.log);
  const tasks = taskTypes({ environment: cli.environment, stopper, output });
  const config = found?.registry;
  return withHoldfast(cli, { create: true, tasks, log: trouble.log, config }, async (holdfast, location) => {
    const worker = configured(() =>
      holdfast.worker({
        ...options,
        onEvent: (event) => report.event(event),
        onRemoved: (removed) => removeOutput(location, removed),
      }),
    );
    let isStopping = false;
    const served =
      flags.metrics === undefined
        ? undefined
        : await (await import('../foreground/metrics-server.ts')).serveMetrics(flags.metrics, {
            metrics: () => holdfast.metrics(),
            ask: () => holdfast.workers(),
            isReady: () => !isStopping,
          });
    const stopFollowing = followConfig(found, report);
    report.up(location.name);
    if (served) report.metricsAt(`${served.url}/metrics`);
    // A file that is gone by now has no mode; the store notices that itself.
    const file =
      location.kind === 'file' && process.platform !== 'win32'
        ? statSync(location.path, { throwIfNoEntry: false })
        : undefined;
    const mode = (file?.mode ?? 0o600) & 0o777;
    if ((mode & 0o077) !== 0) {
      const text = `${location.name} can be opened by other users (mode ${mode.toString(8)}). If that is not meant: chmod 600`;
      report.trouble('warn', text, undefined);
    }
    const between = process.pid === 1 ? undefined : holdsBackSignals(process.ppid);
    if (between !== undefined) {
      report.trouble(
        'warn',
        `PID 1 is ${between}, which passes no signals on: a stop of the container kills this worker without its grace. Start it with exec, or as the command of the container (docs/operations/containers.md)`,
        undefined,
      );
    }
    try {
      const onStop = () => {
        isStopping = true;
      };
      await untilEnded(worker, { stopper, report, trouble, drain: flags.drain ?? false, grace: worker.grace, onStop });
    } finally {
      served?.close();
      stopFollowing();
    }
    report.ended();
    if (trouble.fatal) throw trouble.fatal;
    return EXIT.done;
  });
}

interface Running {
  readonly stopper: HandlerStopper;
  readonly report: WorkerReport;
  readonly trouble: Trouble;
  readonly drain: boolean;
  readonly grace: number;
  readonly onStop: () => void;
}

async function untilEnded(worker: Worker, { stopper, report, trouble, drain, grace, onStop }: Running): Promise<void> {
  let killTimer: NodeJS.Timeout | undefined;
  const stop = () => {
    onStop();
    killTimer ??= setTimeout(() => stopper.killNow(), grace * KILL_AT);
    return worker.stop();
  };
  const stopHearing = onInterrupt(
    (times: number, signal: Interrupt) => {
      report.stopping(signal, times > 1 ? 0 : grace);
      void stop();
      if (times > 1) void atOnce(worker, stopper);
    },
    onTerminal() ? undefined : ['SIGINT', 'SIGTERM'],
  );
  trouble.onFatal = () => void stop();
  // Its output has no reader any more. It stops in order, so that running tasks are not lost with it.
  const gone = () => void stop();
  process.stdout.on('error', gone);
  try {
    if (drain) await worker.drain();
    else await worker.start().finished;
  } finally {
    await stop();
    clearTimeout(killTimer);
    stopHearing();
    process.stdout.off('error', gone);
  }
}

async function atOnce(worker: Worker, stopper: HandlerStopper): Promise<void> {
  stopper.stop();
  stopper.killNow();
  await stopper.allStopped();
  await worker.stop({ grace: 0 });
}

type Options = WorkerOptions & { readonly name: string; readonly grace: DurationInput };

/** The options from the flags. The worker itself applies them over those of the configuration. */
function optionsFrom(
  { concurrency, queues, grace, poll, lease, name, maxTasks }: Flags,
  configured: WorkerOptions = {},
): Options {
  return {
    name: name ?? `${hostname()}-${process.pid}`,
    grace: grace === undefined ? (configured.grace ?? DEFAULT_GRACE) : spanOf(grace, '--grace', 0),
    ...(concurrency !== undefined && { concurrency: wholeNumberFlag(concurrency, '--concurrency', 1, 10_000) }),
    ...(queues !== undefined && { queues: queues.split(',').map((queue) => queue.trim()) }),
    ...(poll !== undefined && { pollInterval: spanOf(poll, '--poll', 1) }),
    ...(lease !== undefined && { leaseFor: spanOf(lease, '--lease', 1_000) }),
    ...(maxTasks !== undefined && { maxTasks: wholeNumberFlag(maxTasks, '--max-tasks', 1) }),
  };
}

function spanOf(text: string, flag: string, least: Milliseconds): DurationInput {
  const ms = span(text, flag);
  if (ms < least) throw usage(`${flag} must be at least ${formatDuration(least)}, got ${visible(text)}`);
  return `${ms}ms`;
}

/** Uses another exit code for an invalid configuration, so that a supervisor does not restart the worker. */
function configured<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    const problem = problemOf(error);
    throw problem.exit === EXIT.usage ? problem.endingWith(EXIT.badConfig) : problem;
  }
}

/** Reports errors of the worker itself. It survives a store that is unavailable for a while, but not one that is lost. */
class Trouble {
  readonly log: Logger;
  fatal: Problem | undefined;
  onFatal = () => {};

  constructor(report: WorkerReport) {
    const hear = (level: 'warn' | 'error') => (fields: object, message: string) => {
      // The events of the worker report what happens to tasks.
      if ('event' in fields) return;
      const { err } = fields as { err?: unknown };
      report.trouble(level, message, err);
      if (err instanceof StoreError && !err.retryable) this.#end(problemOf(err));
    };
    // Actions of operators are left to the logs of other workers.
    const isLevelEnabled = (level: string) => level === 'warn' || level === 'error';
    this.log = { debug() {}, info() {}, warn: hear('warn'), error: hear('error'), isLevelEnabled };
  }

  #end(problem: Problem): void {
    if (this.fatal) return;
    this.fatal = problem;
    this.onFatal();
  }
}
