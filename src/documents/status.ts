import { type InvalidConfigError, TaskNotFoundError } from '../errors.ts';
import type { FailureGroupView } from '../queue/failures.ts';
import type { Operations } from '../queue/operations.ts';
import type { Task } from '../queue/task-view.ts';
import type {
  ClockRecord,
  Counts,
  LastTaker,
  QueueSince,
  ReadyCount,
  ReadyKind,
  SourceRecord,
  WorkerRecord,
} from '../store/store.ts';
import { adviceFor } from '../views/advice.ts';
import type { AttentionKind } from '../views/attention-signs.ts';
import { type DoneBy, doneByWords } from '../views/done-by.ts';
import { workerJson } from '../views/json-shapes.ts';
import { type Lack, lackOf } from '../views/lack.ts';
import { programToStart } from '../views/last-taker.ts';
import { capital, plural } from '../views/plural.ts';
import { seenSource, shownSourceState, sourceCause, sourceNext } from '../views/source-state.ts';
import { isOwnType, summaryOf } from '../views/task-text.ts';
import { ago, clockTime, rfc3339 } from '../views/times.ts';
import { quoted, shortened, visible } from '../views/visible.ts';
import { clockTrouble } from '../worker/clock-trouble.ts';
import { differenceText, policyDifferences } from '../worker/policy-differences.ts';
import type { CommandLine } from './command-line.ts';
import { seenBy } from './hidden-inputs.ts';
import { worksAll } from './workers-alive.ts';

/** How many tasks are named in one line. */
const MOST_NAMED = 5;

/** How many due tasks are looked at to name the program that takes them. */
const MOST_DUE = 20;

/** How many tasks of a kind are counted, or looked at, where a few would tell the same. */
const MOST_LOOKED_AT = 1_000;

/** How many sources are named. */
const MOST_SOURCES = 20;

/** For how many reasons without advice a task is named. */
const MOST_EXAMPLES = 5;

/** How many groups of failures of a reason are looked at. */
const MOST_GROUPS = 10;

/** How many types are named in one line. */
const MOST_TYPES = 5;

/** For how many queues, categories and needs that no worker takes there is a line. */
const MOST_LACKS = 5;

/** How much of a message is shown. */
const LONGEST_MESSAGE = 60;

/** For how long a redrive that stopped itself needs attention. */
const STOPPED_SHOWN_FOR_MS = 24 * 3_600_000;

const HOUR_MS = 3_600_000;

/** For so long, workers of two versions are no alarm. */
const DEPLOY_MAY_TAKE_MS = 15 * 60_000;

/** Something that needs attention: what it is, why it matters, and the command that shows it. */
export interface Attention {
  readonly kind: AttentionKind;
  readonly count: number;
  readonly reason?: string;
  readonly text: string;
  readonly command: string;
}

/** What `status` knows of a store at one moment. */
export interface SeenStatus {
  readonly counts: Counts;
  readonly workers: readonly WorkerRecord[];
  readonly alive: readonly WorkerRecord[];
  readonly attention: readonly Attention[];
  /** How many groups of failures are muted that tasks are dead of. */
  readonly muted: number;
  /** What failed most in the last hour, of what is retried. */
  readonly failing: FailureGroupView | undefined;
  readonly oldest: OldestTasks;
  readonly now: number;
}

/** By queue: since when the oldest ready task of a fifo queue has waited, and the oldest running one has run. */
interface OldestTasks {
  readonly ready: readonly QueueSince[];
  readonly running: readonly QueueSince[];
}

/** `refused`: the configuration that applies here, if it has errors. `patient`: workers with different policies are no alarm while a deploy may take. */
export async function seenStatus(
  commands: CommandLine,
  holdfast: Operations,
  refused: InvalidConfigError | undefined,
  patient: boolean,
): Promise<SeenStatus> {
  const now = holdfast.now();
  const { administration } = holdfast;
  // Counting takes the longest in a large store. PostgreSQL reads the rest meanwhile, on another connection.
  const [counts, rest] = await Promise.all([holdfast.counts(), seenBesides(commands, holdfast, now)]);
  const { workers, clock, behind, redrives, oldest, groups } = rest;
  const alive = workers.filter(({ keepsTasks }) => keepsTasks);
  const missed = counts.due > 0 ? await administration.withoutWorker(MOST_LOOKED_AT) : [];
  const working = alive.filter(worksAll);
  const ofType = missed.filter((kind) => (lackOf(working, kind)?.of ?? 'type') === 'type');
  const programs = await programsOf(holdfast, byType(ofType), now);
  // Where only the source of due tasks holds them, these are not missed.
  const nobody = counts.due > 0 && working.length === 0;
  const behindSources = nobody && missed.length === 0 ? await dueTypes(holdfast, now) : [];
  const start = behindSources.some(isOwnType)
    ? undefined
    : (await programsOf(holdfast, countedOnce(behindSources), now))[0]?.start;
  const attention = [
    ...refusedConfig(commands, refused),
    ...clocks(commands, clock),
    ...(await attentionFrom(commands, holdfast, counts, groups)),
    ...unclaimed(commands, counts, working.length > 0, programs, start),
    ...lacking(commands, working, missed),
    ...(await lapsed(commands, holdfast, counts, alive)),
    ...behind,
    ...paused(commands, alive, now),
    ...differing(commands, alive, now, patient),
    ...redrives,
  ];
  return {
    counts,
    workers,
    alive,
    attention,
    muted: mutedIn(counts, groups),
    failing: failingMost(groups, now),
    oldest,
    now,
  };
}

/** What is read without the counts, one after the other. */
async function seenBesides(commands: CommandLine, holdfast: Operations, now: number) {
  const { administration } = holdfast;
  return {
    workers: await holdfast.workers(),
    clock: await administration.clock(),
    behind: await heldBack(commands, holdfast, now),
    redrives: await stoppedRedrives(commands, holdfast, now),
    groups: await administration.failureGroups(),
    oldest: { ready: await administration.oldestReady(), running: await administration.oldestRunning() },
  };
}

/**
 * The configuration is checked here, because a worker that refused it reports that only in its own log, not in the store. A worker
 * with another file is not noticed.
 */
function refusedConfig(commands: CommandLine, refused: InvalidConfigError | undefined): Attention[] {
  if (!refused) return [];
  const { file, problems } = refused;
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const what = `${visible(file)} is refused (${plural(errors, 'error', 'errors')}): running workers keep the one before, and no new worker starts`;
  return [{ kind: 'config_refused', count: errors, text: what, command: commands.command('policies validate') }];
}

/** A wall clock that jumped, or a store that is ahead of it. */
function clocks(commands: CommandLine, clock: ClockRecord): Attention[] {
  const text = clockTrouble(clock);
  return text === undefined ? [] : [{ kind: 'clock', count: 1, text, command: commands.command('db clock') }];
}

/** What tasks died or wait for a person of, by reason. Reasons of which all groups of failures are muted are left out. */
async function attentionFrom(
  commands: CommandLine,
  holdfast: Operations,
  { byReason }: Counts,
  groups: readonly FailureGroupView[],
): Promise<readonly Attention[]> {
  const shown = byReason.filter((item) => !isMuted(item, groups));
  const unadvised = shown.filter(({ reason }) => adviceFor(reason) === undefined).slice(0, MOST_EXAMPLES);
  const examples = new Map<ReasonCount, Example>();
  for (const item of unadvised) examples.set(item, await exampleOf(commands, holdfast, item, groups));
  return shown.map((item): Attention => {
    const { state, reason, count } = item;
    const kind = state === 'dead' ? 'dead' : 'needs_manual';
    const need = count === 1 ? '1 task needs a person' : `${count} tasks need a person`;
    const what = kind === 'dead' ? `${count} dead` : need;
    const example = examples.get(item);
    const advice = adviceFor(reason, count);
    const more = advice === undefined ? (example?.text ?? '') : `. ${advice}`;
    const look = `${kind === 'dead' ? 'list state:dead' : 'inbox'} reason:${visible(reason)}`;
    return {
      kind,
      count,
      reason,
      text: `${what}: ${visible(reason)}${more}`,
      command: commands.command(
        kind === 'dead' && example && example.groups > 1 ? `failures reason:${visible(reason)}` : look,
      ),
    };
  });
}

function mutedIn({ byReason }: Counts, groups: readonly FailureGroupView[]): number {
  const reasons = new Set(byReason.filter(({ state }) => state === 'dead').map(({ reason }) => reason));
  return groups.filter(({ state, dead, reason }) => state === 'muted' && dead > 0 && reasons.has(reason)).length;
}

/** The group with the most failures in this hour and the one before, unless all of its tasks have ended. */
function failingMost(groups: readonly FailureGroupView[], now: number): FailureGroupView | undefined {
  const lately = (group: FailureGroupView) => failuresLately(group, now).count;
  return groups
    .filter(({ count, dead, needsManual, state }) => count > dead + needsManual && state !== 'muted')
    .filter((group) => lately(group) > 0)
    .sort((a, b) => lately(b) - lately(a))[0];
}

/** How many failures a group had in this hour and the one before, and since when that is. */
export function failuresLately(
  { hours }: FailureGroupView,
  now: number,
): { readonly count: number; readonly since: number } {
  const since = now - (now % HOUR_MS) - HOUR_MS;
  const count = Object.entries(hours).reduce((sum, [hour, some]) => (Number(hour) >= since ? sum + some : sum), 0);
  return { count, since };
}

type ReasonCount = Counts['byReason'][number];

/**
 * Whether people have said of all failures that such tasks died of that they do not matter. A task that waits for a person does. If more
 * tasks are dead than these groups ever had, some have no group: a person gave them up, or the store keeps their group no longer.
 */
function isMuted(item: ReasonCount, groups: readonly FailureGroupView[]): boolean {
  const ended = groupsThatEnded(item, groups);
  const known = ended.reduce((sum, { dead }) => sum + dead, 0);
  return item.state === 'dead' && known >= item.count && ended.every(({ state }) => state === 'muted');
}

/** The groups of failures that such tasks ended with. */
function groupsThatEnded({ state, reason }: ReasonCount, groups: readonly FailureGroupView[]): FailureGroupView[] {
  return groups.filter((group) => group.reason === reason && (state === 'dead' ? group.dead : group.needsManual) > 0);
}

/** What a reason without advice stands for. */
interface Example {
  readonly text: string;
  /** In how many groups of failures its tasks are. */
  readonly groups: number;
}

/** ` (#18301 payout.send: invalid IBAN)`: the newest task and its message say more than a reason. */
async function exampleOf(
  commands: CommandLine,
  holdfast: Operations,
  item: ReasonCount,
  groups: readonly FailureGroupView[],
): Promise<Example> {
  const { state, reason, count } = item;
  const open = groupsThatEnded(item, groups).filter((group) => group.state !== 'muted');
  const newest = await Promise.all(open.slice(0, MOST_GROUPS).map(({ task }) => taskIfThere(holdfast, task)));
  // Those whose tasks have been put back since are over.
  const present = newest.flatMap((task, i) =>
    task && task.state === state && task.reason === reason ? [{ task, message: open[i]?.message }] : [],
  );
  const [first] = present.length > 0 ? present : await newestOf(holdfast, item);
  if (!first) return { text: '', groups: present.length };
  const { task, message } = first;
  const said = message === undefined ? '' : `: ${shortened(visible(message), LONGEST_MESSAGE)}`;
  const summary = shortened(summaryOf(seenBy(commands, task)), LONGEST_MESSAGE);
  const which = `${count === 1 ? '' : 'the newest: '}#${task.id} ${summary}${said}`;
  const more = open.length > MOST_GROUPS ? 'more than ' : '';
  const kinds = present.length > 1 ? `, in ${more}${present.length} groups of failures` : '';
  return { text: `${kinds} (${which})`, groups: present.length };
}

async function taskIfThere(holdfast: Operations, id: number): Promise<Task | undefined> {
  try {
    return await holdfast.get(id);
  } catch (error) {
    if (error instanceof TaskNotFoundError) return undefined;
    throw error;
  }
}

/** The newest task of a reason of which no group of failures is known, such as that of an expired task. */
async function newestOf(
  holdfast: Operations,
  { state, reason }: ReasonCount,
): Promise<readonly { readonly task: Task; readonly message: string | undefined }[]> {
  const filter = { states: [state], reasons: [reason] };
  const { tasks } = await holdfast.administration.search(filter, { limit: 1, most: MOST_LOOKED_AT });
  const last = await holdfast.administration.lastExecutions(tasks, 'failed');
  return tasks.map((task) => ({ task, message: last.get(task.id)?.failure?.message }));
}

/** Workers that lack something themselves, such as room on their disk. */
function paused(commands: CommandLine, alive: readonly WorkerRecord[], now: number): Attention[] {
  return alive.flatMap(({ name, trouble }) => {
    if (!trouble) return [];
    const { reason, message, since } = trouble;
    const advice = adviceFor(reason) ?? message;
    const what = `worker ${visible(name)} cannot work properly and claims only single tasks to test, since ${clockTime(since, now)}`;
    return [
      {
        kind: 'worker_paused',
        count: 1,
        reason,
        text: `${what}: ${visible(reason)}. ${visible(advice)}`,
        command: commands.command('workers'),
      },
    ];
  });
}

/** Types that workers run under different policies. `--check` gives a deploy time to end. */
function differing(commands: CommandLine, alive: readonly WorkerRecord[], now: number, patient: boolean): Attention[] {
  return policyDifferences(alive).flatMap((difference): Attention[] => {
    const newest = difference.policies.at(-1)?.since ?? now;
    if (patient && now - newest < DEPLOY_MAY_TAKE_MS) return [];
    const text = differenceText(difference, (time) => clockTime(time, now), visible);
    return [{ kind: 'policies_differ', count: difference.policies.length, text, command: commands.command('workers') }];
  });
}

/** Redrives that stopped themselves in the last day, and those that somebody paused. */
async function stoppedRedrives(commands: CommandLine, holdfast: Operations, now: number): Promise<Attention[]> {
  return (await holdfast.redrives.list()).flatMap(({ id, state, since, because, by }): Attention[] => {
    const command = commands.command(`redrives show ${id}`);
    if (state === 'paused') {
      const who = by ? doneByWords({ ...by, at: since }, now) : ago(since, now);
      return [{ kind: 'redrive_paused', count: 1, text: `redrive ${id} was paused ${who}`, command }];
    }
    if (state !== 'stopped' || now - since > STOPPED_SHOWN_FOR_MS) return [];
    const text = `redrive ${id} stopped itself ${ago(since, now)}: ${because ?? ''}`;
    return [{ kind: 'redrive_stopped', count: 1, text, command }];
  });
}

/** The types of the newest ready tasks; if none is ready, of the newest scheduled ones that are due. */
async function dueTypes({ administration }: Operations, now: number): Promise<readonly string[]> {
  const ready = await administration.search({ states: ['ready'] }, { limit: MOST_DUE, most: MOST_DUE });
  const { tasks } =
    ready.tasks.length > 0
      ? ready
      : await administration.search(
          { states: ['scheduled'] },
          { limit: MOST_DUE, most: MOST_LOOKED_AT, keep: ({ dueAt }) => dueAt !== undefined && dueAt.getTime() <= now },
        );
  return [...new Set(tasks.map(({ type }) => type))];
}

function countedOnce(types: readonly string[]): readonly ReadyCount[] {
  return types.map((name) => ({ name, ready: 1 }));
}

/**
 * Due tasks that no running worker takes, because of a misspelt name or a missing worker. `start`: the program to start for due tasks
 * that only their source holds, if no command runs them.
 */
function unclaimed(
  commands: CommandLine,
  { due }: Counts,
  someoneWorks: boolean,
  programs: readonly Program[],
  start: string | undefined,
): Attention[] {
  if (someoneWorks) return programs.map((program) => ofProgram(commands, program));
  const foreign = programs.filter(({ start }) => start !== undefined);
  const ofForeign = foreign.map((program) => ofProgram(commands, program));
  const rest = due - ofForeign.reduce((sum, { count }) => sum + count, 0);
  if (rest <= 0 || (foreign.length > 0 && foreign.length === programs.length)) return ofForeign;
  const text = `${rest === 1 ? '1 task is due' : `${rest} tasks are due`}, and no worker is running`;
  if (start !== undefined) {
    const look = commands.command('list state:ready,scheduled');
    return [{ kind: 'no_worker', count: rest, text: `${text}: ${start}`, command: look }];
  }
  return [{ kind: 'no_worker', count: rest, text, command: commands.command('worker') }, ...ofForeign];
}

/** Due tasks of types that running workers take, but not of their queue or category, or not with their needs. */
function lacking(commands: CommandLine, working: readonly WorkerRecord[], missed: readonly ReadyKind[]): Attention[] {
  const byLack = new Map<string, { readonly lack: Lack; readonly kinds: ReadyKind[] }>();
  for (const kind of missed) {
    const lack = lackOf(working, kind);
    if (!lack || lack.of === 'type') continue;
    const key = `${lack.words}: ${lack.offered}`;
    const alike = byLack.get(key) ?? { lack, kinds: [] };
    alike.kinds.push(kind);
    byLack.set(key, alike);
  }
  const found = [...byLack.values()].map(({ lack, kinds }) => ofLack(commands, lack, kinds));
  const more = found.slice(MOST_LACKS);
  if (more.length === 0) return found;
  const count = more.reduce((sum, each) => sum + each.count, 0);
  const text = `${plural(count, 'more ready task is', 'more ready tasks are')} taken by no running worker, for ${plural(more.length, 'other reason', 'other reasons')}`;
  return [
    ...found.slice(0, MOST_LACKS),
    { kind: 'no_worker', count, text, command: commands.command('list state:ready') },
  ];
}

function ofLack(commands: CommandLine, { words, offered, start = '' }: Lack, kinds: readonly ReadyKind[]): Attention {
  const types = byType(kinds);
  const names = types.map(({ name }) => name);
  const queues = [...new Set(kinds.map(({ queue }) => queue))];
  const count = types.reduce((sum, { ready }) => sum + ready, 0);
  const which = `${plural(count, 'task', 'tasks')} of the ${typesNamed(names)} ${count === 1 ? 'is' : 'are'} ready`;
  const text = `${which}, but no running worker takes ${visible(words)}: ${visible(offered)}. ${capital(start)}`;
  const shown = (some: readonly string[]) => some.slice(0, MOST_TYPES).map(visible).join(',');
  const look = `list state:ready type:${shown(names)} queue:${shown(queues)}`;
  return { kind: 'no_worker', count, text, command: commands.command(look) };
}

/** By type, those with the most first. */
function byType(kinds: readonly ReadyKind[]): readonly ReadyCount[] {
  const counts = new Map<string, number>();
  for (const { type, ready } of kinds) counts.set(type, (counts.get(type) ?? 0) + ready);
  return [...counts].map(([name, ready]) => ({ name, ready })).sort((a, b) => b.ready - a.ready);
}

/** What takes some types, and how to start it; nothing to start for types that our own worker takes. */
interface Program {
  readonly types: readonly ReadyCount[];
  readonly start?: string;
}

/** The types that no running worker takes, by the program that took them last. */
async function programsOf(holdfast: Operations, missed: readonly ReadyCount[], now: number): Promise<Program[]> {
  const foreign = missed.filter(({ name }) => !isOwnType(name));
  const own = missed.filter(({ name }) => isOwnType(name));
  const takers = foreign.length === 0 ? [] : await holdfast.administration.lastTakers(foreign.map(({ name }) => name));
  const byTaker = new Map<string, { types: ReadyCount[]; last: LastTaker | undefined }>();
  for (const type of foreign) {
    const last = takers.find((taker) => taker.type === type.name);
    const key = last ? JSON.stringify([last.worker, last.host, last.program]) : '';
    const alike = byTaker.get(key) ?? { types: [], last };
    byTaker.set(key, { types: [...alike.types, type], last: alike.last });
  }
  const programs = [...byTaker.values()].map(({ types, last }): Program => {
    return { types, start: programToStart(last, now, types.length === 1 ? 'it' : 'them') };
  });
  return own.length === 0 ? programs : [{ types: own }, ...programs];
}

function ofProgram(commands: CommandLine, { types, start }: Program): Attention {
  const count = types.reduce((sum, { ready }) => sum + ready, 0);
  const names = types.map(({ name }) => name);
  const what = `${count === 1 ? '1 task is' : `${count} tasks are`} ready, but no running worker takes the ${typesNamed(names)}`;
  const look = `list state:ready type:${names.slice(0, MOST_TYPES).map(visible).join(',')}`;
  return {
    kind: 'no_worker',
    count,
    text: start === undefined ? what : `${what}: ${start}`,
    command: commands.command(start === undefined ? 'worker' : look),
  };
}

/** `type a`, `types a and b`, `types a, b, c, d, e and 4 more`. */
function typesNamed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_TYPES).map(visible);
  if (names.length === 1) return `type ${shown[0]}`;
  const last = names.length > shown.length ? `${names.length - shown.length} more` : (shown.pop() as string);
  return `types ${shown.join(', ')} and ${last}`;
}

/** Running tasks whose worker was lost: its process has ended, or it is silent and its lease has ended. */
async function lapsed(
  commands: CommandLine,
  holdfast: Operations,
  counts: Counts,
  alive: readonly WorkerRecord[],
): Promise<Attention[]> {
  const kept = alive.reduce((sum, { running }) => sum + running, 0);
  if (counts.byState.running <= kept) return [];
  const names = new Set(alive.map(({ name }) => name));
  const running = await holdfast.list({ states: ['running'], limit: MOST_LOOKED_AT });
  const lost = running.filter((task) => task.running && !names.has(task.running.worker));
  if (lost.length === 0) return [];
  const shown = lost.slice(0, MOST_NAMED).map(({ id, running: by }) => `#${id} (${visible(by?.worker ?? 'unknown')})`);
  const more = lost.length > shown.length ? `, and ${lost.length - shown.length} more` : '';
  const are = lost.length === 1 ? '1 task runs' : `${lost.length} tasks run`;
  const { next, command } = await whoRecords(holdfast, lost, alive.some(worksAll));
  return [
    {
      kind: 'lease_lapsed',
      count: lost.length,
      text: `${are} under a worker that was lost: ${shown.join(', ')}${more}. ${next}.`,
      command: commands.command(command),
    },
  ];
}

/** Who records the loss of tasks. Any worker does, but only a program that defines their types runs them again. */
async function whoRecords(
  holdfast: Operations,
  lost: readonly Task[],
  someoneWorks: boolean,
): Promise<{ readonly next: string; readonly command: string }> {
  if (someoneWorks) return { next: 'A running worker takes over when it is sure', command: 'workers' };
  const does = 'it records the loss, and runs the task again or asks a person';
  if (lost.some(({ type }) => isOwnType(type))) return { next: `Start a worker: ${does}`, command: 'worker' };
  const [type = ''] = lost.map((task) => task.type);
  const [taker] = await holdfast.administration.lastTakers([type]);
  return { next: `${capital(programToStart(taker, holdfast.now()))}; ${does}`, command: 'workers' };
}

/** Sources and queues for which ready tasks wait: a person may have forgotten that they held it, or is needed. */
export async function heldBack(commands: CommandLine, holdfast: Operations, now: number): Promise<Attention[]> {
  const { administration } = holdfast;
  const found = await administration.sourcesInTrouble(MOST_SOURCES + 1);
  const records = found.slice(0, MOST_SOURCES);
  const paused = (await holdfast.queues()).filter((queue) => queue.paused);
  const behind = (counts: readonly ReadyCount[], name: string) => counts.find((one) => one.name === name)?.ready ?? 0;
  const bySource = records.length > 0 ? await administration.readyOf(records.map(({ name }) => name)) : [];
  const byQueue = paused.length > 0 ? await administration.countsBy('queue', 0) : [];
  const sources = records.flatMap((record) => sourceAttention(commands, record, behind(bySource, record.name), now));
  const queues = paused.map(({ name, paused: by }): Attention => {
    const count = behind(byQueue, name);
    const text = `${plural(count, 'ready task waits', 'ready tasks wait')} in the queue ${visible(name)}, paused ${doneByWords(by as DoneBy, now)}`;
    return { kind: 'queue_paused', count, text, command: commands.command(`queues resume ${quoted(name)}`) };
  });
  const more: Attention = {
    kind: 'source_held',
    count: 1,
    text: `more than ${MOST_SOURCES} sources are down or held, and only these are shown here`,
    command: commands.command('sources'),
  };
  return [...sources, ...(found.length > MOST_SOURCES ? [more] : []), ...queues.filter(({ count }) => count > 0)];
}

/** One item for each source with waiting tasks. A source that opens soon by itself, or is only slow, needs nobody. */
function sourceAttention(commands: CommandLine, record: SourceRecord, count: number, now: number): Attention[] {
  const { name, hold } = record;
  const shown = visible(name);
  const waits = plural(count, 'ready task waits', 'ready tasks wait');
  const state = shownSourceState(record);
  const cause = visible(sourceCause(seenSource(record), now));
  if (state === 'held' && hold) {
    const until = hold.until === undefined ? '' : `, ${sourceNext(record, count, now)}`;
    const text = `${waits} for the source ${shown}, held ${doneByWords(hold, now)}${until}`;
    return count === 0
      ? []
      : [{ kind: 'source_held', count, text, command: commands.command(`sources release ${quoted(name)}`) }];
  }
  if (state === 'needs_person') {
    const text = `the source ${shown} needs a person ${cause}. ${capital(waits)}, and no attempt is charged. Mend it, then release it.`;
    return [{ kind: 'source_needs_person', count, text, command: commands.command(`sources release ${quoted(name)}`) }];
  }
  if (state === 'down' || state === 'probing') {
    const text = `the source ${shown} is ${cause}. ${capital(waits)}, and no attempt is charged; ${sourceNext(record, count, now)}.`;
    return [{ kind: 'source_down', count, text, command: commands.command('sources') }];
  }
  return [];
}

/** The content of `holdfast status --json`. */
export function statusContent(store: string, { counts, workers, alive, attention, oldest }: SeenStatus): object {
  const { byState, retrying, due, nextDueAt, byReason } = counts;
  const times = (since: readonly QueueSince[]) => since.map(({ queue, since }) => ({ queue, since: rfc3339(since) }));
  return {
    store,
    attention: attention.map(({ reason, ...rest }) => ({ ...rest, reason: reason ?? null })),
    by_state: byState,
    retrying,
    due,
    next_due_at: rfc3339(nextDueAt),
    by_reason: byReason,
    oldest_ready: times(oldest.ready),
    oldest_running: times(oldest.running),
    workers: workers.map((worker) => workerJson(worker, alive.includes(worker))),
  };
}
