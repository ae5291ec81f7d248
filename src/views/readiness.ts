import { formatDuration, type Milliseconds } from '../duration.ts';
import type { Facts } from '../failure/decide.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import { formatPace, type Limits } from '../pace.ts';
import type { Task } from '../queue/task-view.ts';
import type { RedriveOfTask } from '../store/redrives.ts';
import type { HeldBy, HistoryEntry, LastTaker, QueueRecord, Takes, WorkerRecord } from '../store/store.ts';
import { meets } from '../task.ts';
import { doneBy } from './done-by.ts';
import { type Lack, lackOf } from './lack.ts';
import { lastTakerWords } from './last-taker.ts';
import { holdsTasks, inTime, limitWords, type SourceSeen, shownSourceState, sourceSentence } from './source-state.ts';
import { suspectWords } from './suspect-rule.ts';

/** One thing that must hold before a waiting task starts. */
export interface Check {
  readonly name: 'due' | 'source' | 'queue' | 'budget' | 'limit' | 'worker';
  readonly ok: boolean;
  readonly text: string;
  /** What keeps the task from starting, where this does. */
  readonly holder?: Holder;
}

/** What keeps a task from starting although it may be due. */
export type Holder = HeldBy | 'worker_paused' | 'operator';

/** What an explanation is made of: records as they stand in the store, and the policy of today. */
export interface Known {
  readonly now: number;
  readonly task: Task;
  readonly history: readonly HistoryEntry[];
  /** What the end of its present or next execution would be decided by. */
  readonly facts: Facts;
  readonly policy: ExplainedPolicy;
  /** Its source, if that is not in its normal state. */
  readonly source?: SourceSeen;
  readonly queue?: QueueRecord;
  readonly workers: readonly WorkerRecord[];
  /** The worker that last took its type. */
  readonly lastTaker?: LastTaker;
  /** The newest redrive that has it, if any. */
  readonly redrive?: RedriveOfTask;
}

/** What must hold before it starts. */
export function checksOf(known: Known): readonly Check[] {
  const { now, task, queue } = known;
  const dueIn = task.dueAt ? task.dueAt.getTime() - now : 0;
  const paused = queue?.paused;
  return [
    ...(task.state === 'held' ? [] : [dueCheck(task, dueIn)]),
    sourceCheck(known),
    paused
      ? {
          name: 'queue',
          ok: false,
          holder: 'queue_paused',
          text: `${task.queue} is paused (${doneBy(paused, paused.at, now)})`,
        }
      : { name: 'queue', ok: true, text: `${task.queue} is not paused` },
    ...budgetCheck(known),
    ...limitCheck(known),
    workerCheck(known),
  ];
}

/** Of a task that an operator holds, nothing is said: the store tells its due time only when it is released. */
function dueCheck({ waitsForGroup }: Task, dueIn: Milliseconds): Check {
  if (waitsForGroup) return { name: 'due', ok: false, text: 'when all tasks of its group have ended' };
  return { name: 'due', ok: dueIn <= 0, text: dueIn > 0 ? `in ${formatDuration(dueIn)}` : 'yes' };
}

function sourceCheck({ now, task, source }: Known): Check {
  if (!source) return { name: 'source', ok: true, text: `${task.source} is not held` };
  const text = sourceSentence(source, now);
  const holder = sourceHolder(source, task.heldBy);
  return holder ? { name: 'source', ok: false, holder, text } : { name: 'source', ok: true, text };
}

/** While a source is only asked slowly, it holds a task only now and then: the store says when. */
function sourceHolder({ record }: SourceSeen, heldBy: HeldBy | undefined): Holder | undefined {
  const state = shownSourceState(record);
  if (state === 'held') return 'source_held';
  const cause = record.state?.restriction?.cause;
  return holdsTasks(state) || heldBy === cause ? cause : undefined;
}

function budgetCheck({ task }: Known): readonly Check[] {
  if (task.heldBy !== 'budget') return [];
  const next = task.heldFor === undefined ? '' : `. The next one may start ${inTime(task.heldFor)}`;
  const text = `${task.source} had too many retries lately${next}`;
  return [{ name: 'budget', ok: false, holder: 'budget', text }];
}

/** The limits of its source and its queue: that one is reached, or what they are. */
function limitCheck({ task, source, queue }: Known): readonly Check[] {
  const limits = [
    { whose: task.source, limits: source?.record.limits },
    { whose: `the queue ${task.queue}`, limits: queue },
  ].flatMap(({ whose, limits: some }) => (some && (some.pace || some.concurrency) ? [{ whose, limits: some }] : []));
  const { heldBy, heldFor } = task;
  if (heldBy === 'pace' || heldBy === 'concurrency') {
    const those = limits
      .filter(({ limits: some }) => some[heldBy])
      .map(({ whose, limits: some }) => reached(whose, some, heldBy, heldFor));
    return [
      { name: 'limit', ok: false, holder: heldBy, text: those.length > 0 ? those.join('; ') : 'its limit is reached' },
    ];
  }
  if (limits.length === 0) return [];
  return [
    {
      name: 'limit',
      ok: true,
      text: limits.map(({ whose, limits: some }) => `${whose} starts at most ${limitWords(some)}`).join('; '),
    },
  ];
}

function reached(
  whose: string,
  { pace, concurrency }: Limits,
  by: 'pace' | 'concurrency',
  heldFor?: Milliseconds,
): string {
  if (by === 'concurrency') return `${whose} runs ${concurrency} at a time, and so many run`;
  const next = heldFor === undefined ? '' : `; the next start is ${inTime(heldFor)}`;
  return `${whose} starts at most ${pace ? formatPace(pace) : ''}${next}`;
}

function workerCheck({ now, task, workers, lastTaker }: Known): Check {
  const alive = workers.filter(({ leaseUntil }) => leaseUntil > now);
  const able = alive.filter(({ takes }) => takesIt(takes, task));
  const rule = suspectWords(task);
  const suspect = rule === undefined ? '' : `; it ${rule}`;
  const paused = able.find(({ trouble }) => trouble);
  if (paused?.trouble && able.every(({ trouble }) => trouble)) {
    const { reason, message, since } = paused.trouble;
    const others = able.length > 1 ? `, and so have ${able.length - 1} more` : '';
    const what = `${paused.name} cannot work properly and has claimed only single tasks to test for ${formatDuration(now - since)}${others}`;
    return { name: 'worker', ok: false, holder: 'worker_paused', text: `${what}: ${reason} (${message})` };
  }
  if (able.length > 0) {
    const names = able.map(({ name }) => name);
    const shown = names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');
    return { name: 'worker', ok: true, text: `${shown} ${able.length === 1 ? 'takes' : 'take'} it${suspect}` };
  }
  const general = generalWorkers(workers, now);
  const last = lastTaker ? `; its type was last taken by ${lastTakerWords(lastTaker, now)}` : '';
  if (general.length === 0)
    return { name: 'worker', ok: false, holder: 'no_worker', text: `no worker is running${last}` };
  const nobody =
    general.length === 1 ? 'the running worker does not take' : `none of the ${general.length} running workers takes`;
  const lack = lackOf(general, task);
  const more = lack?.of === 'type' ? last : `: ${lack?.offered}`;
  return {
    name: 'worker',
    ok: false,
    holder: 'no_worker',
    text: `${nobody} ${lack?.words}${more}`,
  };
}

function takesIt({ types, queues, categories, capabilities }: Takes, task: Task): boolean {
  return (
    (!types || types.includes(task.type)) &&
    (!queues || queues.includes(task.queue)) &&
    (!categories || categories.includes(task.category ?? '')) &&
    meets(capabilities, task.needs ?? {})
  );
}

/** The running workers. Those who are there for certain tasks take nothing of their own accord, and are left out. */
function generalWorkers(workers: readonly WorkerRecord[], now: number): readonly WorkerRecord[] {
  return workers.filter(({ leaseUntil, takes }) => leaseUntil > now && takes.types?.length !== 0);
}

/** Why no running worker takes it; undefined if one does, or none runs. */
export function lackFor({ now, task, workers }: Known): Lack | undefined {
  const general = generalWorkers(workers, now);
  return general.length === 0 ? undefined : lackOf(general, task);
}

/** Everything that holds it, or would if it were due; the first one speaks for all. */
export function holdersOf(task: Task, checks: readonly Check[]): readonly Holder[] {
  const holders = checks.flatMap(({ holder }) => (holder ? [holder] : []));
  return task.state === 'held' ? ['operator', ...holders] : holders;
}
