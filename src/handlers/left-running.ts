import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Milliseconds } from '../duration.ts';
import { RetryLater } from '../failure/signals.ts';
import type { Logger } from '../log.ts';
import type { Json } from '../task.ts';
import { groupLives, hasEnded, LINGER, POSIX, processes, processState, signalGroup, within } from './process-group.ts';

/** The process group that an execution started, as it is saved. Its number alone is reused after its end or a restart. */
interface Started {
  readonly execution: number;
  readonly group: number;
  readonly started: string | null;
  readonly host: string;
  readonly boot: string | null;
  readonly pidSpace: string | null;
}

/** The members of a task that are needed to find processes of its earlier executions. */
export interface LeftRunning {
  readonly id: number;
  readonly execution: number;
  readonly submittedAt?: Date;
  readonly checkpoint?: Json | undefined;
  readonly log?: Pick<Logger, 'info' | 'warn'>;
  readonly signal?: AbortSignal;
}

/** The environment variable by which all processes of a command are recognised. */
export const TAG = 'HOLDFAST_RUN';

export function tagOf({ id, submittedAt }: LeftRunning, execution: number | ''): string {
  return `${id}-${submittedAt?.getTime() ?? 0}-${execution}`;
}

/** The checkpoint that says what this process has just started. */
export function startedAs(group: number, task: LeftRunning): { readonly command: Started } {
  const started = processState(group)?.started ?? null;
  return { command: { execution: task.execution, group, started, ...here() } };
}

/**
 * Ends the processes that earlier executions left running, like their worker would: SIGTERM, then SIGKILL. Processes on another host,
 * in another pid namespace or without `/proc` cannot be checked; they are left alone, and the log says so.
 * @throws RetryLater if they cannot be ended.
 */
export async function endLeftRunning(task: LeftRunning, killAfter: Milliseconds): Promise<void> {
  if (!POSIX || task.execution === 1) return;
  await endAll(task, groupsOf(task, task.execution - 1), killAfter);
}

/** The same, once it is known that no later execution will do it: `task.execution` is the one that was lost. */
export async function endLost(task: LeftRunning, killAfter: Milliseconds): Promise<void> {
  if (POSIX) await endAll(task, groupsOf(task, task.execution), killAfter);
}

async function endAll(task: LeftRunning, groups: readonly number[], killAfter: Milliseconds): Promise<void> {
  await Promise.all(groups.map((group) => end(task, group, killAfter)));
  task.signal?.throwIfAborted();
}

async function end(task: LeftRunning, group: number, killAfter: Milliseconds): Promise<void> {
  const gone = () => !groupLives(group);
  const reachable = signalGroup(group, 'SIGTERM');
  // A stopped process handles SIGTERM only after SIGCONT.
  signalGroup(group, 'SIGCONT');
  if (!(await within(killAfter, gone, task.signal))) {
    signalGroup(group, 'SIGKILL');
    if (!(await within(LINGER, gone))) {
      const why = reachable ? 'it does not end' : 'it belongs to another user';
      throw new RetryLater(
        '10s',
        `The command of an earlier execution still runs (process group ${group}), and ${why}. No second one is started.`,
        { reason: 'process.left_running' },
      );
    }
  }
  task.log?.info({ group }, 'Ended the command of an earlier execution, which had outlived its worker');
}

/**
 * The process groups of executions up to this one that still run. The checkpoint has the last group that was saved. Groups of later
 * executions, which may have started nothing, are found only by their tags.
 */
function groupsOf(task: LeftRunning, last: number): readonly number[] {
  const known = startedIn(task.checkpoint);
  const recorded = known !== undefined && isLeft(task, known) ? [known.group] : [];
  const later = (known?.execution ?? 0) + 1;
  return later > last ? recorded : [...new Set([...recorded, ...groupsTagged(task, later, last)])];
}

/** Whether the recorded group still runs. */
function isLeft(task: LeftRunning, known: Started): boolean {
  const mine = here();
  const { execution, group, started, host } = known;
  const warn = (what: string) => task.log?.warn({ host, group }, what);
  if (host === mine.host && mine.boot !== null && known.boot !== null && known.boot !== mine.boot) return false;
  if (host !== mine.host || known.pidSpace !== mine.pidSpace) {
    const where = host === mine.host ? 'in another pid namespace' : `on ${host}`;
    warn(`Whether the command of execution ${execution} still runs ${where} is not visible from here`);
    return false;
  }
  // Nearly always: the execution ended by itself, and its command with it.
  if (!groupLives(group)) return false;
  const leader = processState(group);
  // Another start time means that the number was reused, which happens only after the whole group has ended.
  if (leader && started !== null && leader.started !== started) return false;
  if (leader && started !== null && !hasEnded(leader)) return true;
  const isTagged = groupsTagged(task, execution, execution).includes(group);
  if (!isTagged && started === null) {
    warn(
      `Whether process group ${group} is the command of execution ${execution} is unknown, because its start time is unknown`,
    );
  }
  return isTagged;
}

/** The groups of the processes that have the tag of one of these executions in their environment, as far as we may look. */
function groupsTagged(task: LeftRunning, first: number, last: number): readonly number[] {
  const start = `${TAG}=${tagOf(task, '')}`;
  const isTag = (entry: string) => {
    const execution = entry.startsWith(start) ? Number(entry.slice(start.length)) : Number.NaN;
    return first <= execution && execution <= last;
  };
  const tagged = processes((pid) => environmentOf(pid).some(isTag)).filter((one) => !hasEnded(one));
  const own = processState(process.pid)?.group;
  return [...new Set(tagged.map(({ group }) => group))].filter((group) => group > 1 && group !== own);
}

function environmentOf(pid: number): readonly string[] {
  return tryRead(() => readFileSync(`/proc/${pid}/environ`, 'latin1'))?.split('\0') ?? [];
}

function startedIn(checkpoint: Json | undefined): Started | undefined {
  const { command } = Object(checkpoint) as { command?: Partial<Started> };
  const whole = typeof command?.execution === 'number' && typeof command.group === 'number' && command.group > 1;
  return whole && typeof command.host === 'string' ? (command as Started) : undefined;
}

function here(): Pick<Started, 'host' | 'boot' | 'pidSpace'> {
  return {
    host: hostname(),
    boot: tryRead(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidSpace: tryRead(() => readlinkSync('/proc/self/ns/pid')),
  };
}

function tryRead(read: () => string): string | null {
  try {
    return read();
  } catch {
    // No Linux, another user's process, or one that has just ended.
    return null;
  }
}
