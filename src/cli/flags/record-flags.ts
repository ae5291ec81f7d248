import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import { endLine } from '../../documents/next-steps.ts';
import { missingWorkers } from '../../documents/workers-alive.ts';
import type { Policy } from '../../failure/policy.ts';
import { presetFor } from '../../failure/presets.ts';
import type { EnqueueOptions } from '../../queue/enqueue.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { HIGHEST_PRIORITY, isOver, isWaiting } from '../../task.ts';
import type { TaskKind } from '../../views/lack.ts';
import { capital, plural } from '../../views/plural.ts';
import { isOwnType, summaryOf } from '../../views/task-text.ts';
import { until } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { usage } from '../problem.ts';
import { parseMoment, span } from './moment.ts';
import { type PolicyFlags, policyLayer, wholeNumberFlag } from './policy-flags.ts';

/** The flags of commands that record tasks. */
export interface RecordFlags extends PolicyFlags {
  readonly detach?: boolean;
  readonly key?: string;
  readonly unique?: string;
  readonly queue?: string;
  readonly priority?: string;
  readonly within?: string;
  readonly at?: string;
  readonly timeout?: string;
}

const ATTEMPT_TIMEOUT = 'stop an attempt that is silent for so long (default: 1h), or none';

export const KEY = ['--key <key>', 'a second call with the same key records nothing new'] as const;

export const UNIQUE = [
  '--unique <key>',
  'nothing new is recorded while another task with this unique key has not ended',
] as const;

export function addRecordFlags(command: Command, attemptTimeout = ATTEMPT_TIMEOUT): void {
  command
    .optionsGroup('What is recorded')
    .option('-b, --detach', 'only record it, for a worker or `holdfast resume`')
    .option(...KEY)
    .option(...UNIQUE)
    .option('--queue <name>', 'the queue (default: default)')
    .option('--priority <number>', '0 (default) to 4095; higher goes first in queues that are ordered so')
    .option('--at <time>', 'not before this time')
    .optionsGroup('How failures are answered')
    .option('--policy <preset>', 'another preset, such as standard or http_delivery')
    .option('--attempts <number>', 'at most so many attempts, the first included')
    .option('--backoff <form>', 'exp:60s:x2:max=1h, linear:30s, fixed:5m, schedule:5m,15m,60m or none')
    .option('--within <duration>', 'end the task if it has not succeeded by then')
    .option('--attempt-timeout <duration>', attemptTimeout)
    .optionsGroup('How this command ends')
    .option('--timeout <duration>', 'wait so long, then detach; the task stays');
}

/**
 * The options of a task of this type, from the flags.
 * @throws Problem naming the flag and its value.
 */
export function enqueueOptions(
  flags: RecordFlags,
  type: string,
  now: number,
  { chosen, ofType = presetFor(type) }: { readonly chosen?: Policy | undefined; readonly ofType?: Policy } = {},
): EnqueueOptions {
  const layer = policyLayer(flags, ofType, chosen);
  return {
    ...(flags.key !== undefined && { key: nameFlag(flags.key, '--key') }),
    ...(flags.unique !== undefined && { unique: { key: nameFlag(flags.unique, '--unique') } }),
    ...(flags.queue !== undefined && { queue: nameFlag(flags.queue, '--queue') }),
    ...(flags.priority !== undefined && {
      priority: wholeNumberFlag(flags.priority, '--priority', 0, HIGHEST_PRIORITY),
    }),
    ...(flags.at !== undefined && { at: parseMoment(flags.at, new Date(now), '--at') }),
    ...(flags.within !== undefined && { deadline: new Date(now + span(flags.within, '--within')) }),
    ...(layer && { retry: layer }),
  };
}

/** The name that a flag gives. @throws Problem naming the flag. */
export function nameFlag(text: string, flag: string): string {
  if (text !== '' && text.length <= 255 && visible(text) === text) return text;
  throw usage(`${flag} must be a text of 1 to 255 characters without control characters, got "${visible(text)}"`);
}

/** Says that a task with this key or unique key exists, and shows its input if it differs. */
export function foundByKey(
  cli: Cli,
  task: Task,
  input: unknown,
  { key, unique }: Pick<RecordFlags, 'key' | 'unique'>,
): void {
  const { terminal } = cli;
  // `key` is checked first.
  const has = key !== undefined && key === task.key ? `key ${visible(key)}` : `unique key ${visible(unique ?? '')}`;
  terminal.note(`#${task.id} has the ${has} already, so nothing new was recorded.`);
  if (!isDeepStrictEqual(task.input, JSON.parse(JSON.stringify(input)))) {
    terminal.note(`  its input is different: ${summaryOf(task)}`);
  }
}

/** `○ #42 queued (cmd:rsync)`, or with --quiet the number alone, for scripts. */
export async function recordedLine(cli: Cli, holdfast: Operations, task: Task): Promise<string> {
  const { terminal } = cli;
  if (terminal.quiet) return String(task.id);
  const glyph = terminal.out.glyph(task);
  if (isOver(task.state)) {
    return `${glyph} #${task.id} ${endLine(task, await holdfast.history(task.id))}`;
  }
  const now = holdfast.now();
  const due = task.dueAt === undefined ? '' : `, due ${until(task.dueAt.getTime(), now)}`;
  const word = isWaiting(task.state) ? 'queued' : task.state;
  return `${glyph} #${task.id} ${word} (${visible(task.source)}${due})`;
}

/** How many kinds of tasks that no worker takes are named. */
const MOST_LACKS = 3;

/** Says what to start if no running worker takes such tasks. */
export async function hintAtWorkers(
  cli: Cli,
  holdfast: Operations,
  resume: string,
  kinds: readonly TaskKind[],
): Promise<void> {
  const { noneRuns, types: missing, lacks, toStart } = await missingWorkers(holdfast, kinds);
  const { terminal } = cli;
  const own = missing.filter(isOwnType);
  if (own.length > 0) {
    const what = noneRuns ? 'No worker is running' : `No running worker takes ${own.join(', ')}`;
    terminal.note(`${what}: start ${cli.command('worker')}, or use ${cli.command(resume)}`);
  }
  for (const type of missing.filter((each) => !isOwnType(each))) {
    terminal.note(`No running worker takes the type ${visible(type)}: ${toStart(type)}`);
  }
  for (const { words, offered, start = '' } of lacks.slice(0, MOST_LACKS)) {
    terminal.note(`No running worker takes ${visible(words)}: ${visible(offered)}. ${capital(start)}`);
  }
  const more = lacks.length - MOST_LACKS;
  if (more > 0) terminal.note(`Nor ${plural(more, 'other kind', 'other kinds')} of task: ${cli.command('status')}`);
}

/** As `hintAtWorkers`, for the tasks that are ready in a queue or for a source. */
export async function hintAtWorkersFor(
  cli: Cli,
  holdfast: Operations,
  which: { readonly queues?: readonly string[]; readonly sources?: readonly string[] },
): Promise<void> {
  await hintAtWorkers(cli, holdfast, 'resume', await holdfast.list({ ...which, states: ['ready'], limit: 1_000 }));
}
