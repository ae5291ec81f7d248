import { formatDuration } from '../duration.ts';
import type { Facts } from '../failure/decide.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import type { Task } from '../queue/task-view.ts';
import type { HeldBy, HistoryEntry, QueueRecord, SourceRecord, Takes, WorkerRecord } from '../store/store.ts';
import { meets } from '../task.ts';
import { suspectWords } from './suspect-rule.ts';

/** One thing that must hold before a waiting task starts. */
export interface Check {
  readonly name: 'due' | 'source' | 'queue' | 'worker';
  readonly ok: boolean;
  readonly text: string;
  /** Of a worker: whoever takes it claims nothing at present. */
  readonly paused?: true;
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
  /** Its source, if that is held. */
  readonly heldSource?: SourceRecord['hold'];
  readonly queue?: QueueRecord;
  readonly workers: readonly WorkerRecord[];
}

/** What must hold before it starts. */
export function checksOf(known: Known): readonly Check[] {
  const { now, task, heldSource, queue } = known;
  const dueIn = task.dueAt ? task.dueAt.getTime() - now : 0;
  const paused = queue?.paused;
  return [
    { name: 'due', ok: dueIn <= 0, text: dueIn > 0 ? `in ${formatDuration(dueIn)}` : 'yes' },
    {
      name: 'source',
      ok: !heldSource,
      text: heldSource
        ? `${task.source} is held (${doneBy(heldSource, heldSource.at, now)})`
        : `${task.source} is not held`,
    },
    {
      name: 'queue',
      ok: !paused,
      text: paused ? `${task.queue} is paused (${doneBy(paused, paused.at, now)})` : `${task.queue} is not paused`,
    },
    workerCheck(known),
  ];
}

function workerCheck({ now, task, workers }: Known): Check {
  const alive = workers.filter(({ leaseUntil }) => leaseUntil > now);
  const able = alive.filter(({ takes }) => takesIt(takes, task));
  const rule = suspectWords(task);
  const suspect = rule === undefined ? '' : `; it ${rule}`;
  const paused = able.find(({ trouble }) => trouble);
  if (paused?.trouble && able.every(({ trouble }) => trouble)) {
    const { reason, message, since } = paused.trouble;
    const others = able.length > 1 ? `, and so have ${able.length - 1} more` : '';
    const what = `${paused.name} cannot work properly and has claimed only single tasks to test for ${formatDuration(now - since)}${others}`;
    return { name: 'worker', ok: false, paused: true, text: `${what}: ${reason} (${message})` };
  }
  if (able.length > 0) {
    const names = able.map(({ name }) => name);
    const shown = names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');
    return { name: 'worker', ok: true, text: `${shown} ${able.length === 1 ? 'takes' : 'take'} it${suspect}` };
  }
  // Those who are there for certain tasks take nothing of their own accord, and are nobody's fault.
  const general = alive.filter(({ takes }) => takes.types?.length !== 0);
  if (general.length === 0) return { name: 'worker', ok: false, text: 'no worker is running' };
  const many = general.length === 1 ? '1 worker runs, and' : `${general.length} workers run, and none of them`;
  const lacks = lackOf(general, task);
  return {
    name: 'worker',
    ok: false,
    text: `${many} ${general.length === 1 ? `does not take ${lacks}` : `takes ${lacks}`}`,
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

/** The first thing that nobody offers. */
function lackOf(workers: readonly WorkerRecord[], { type, queue, category, needs }: Task): string {
  const all = workers.map(({ takes }) => takes);
  const ofType = all.filter(({ types }) => !types || types.includes(type));
  if (ofType.length === 0) return `the type ${type}`;
  const ofQueue = ofType.filter(({ queues }) => !queues || queues.includes(queue));
  if (ofQueue.length === 0) return `the queue ${queue}`;
  const ofCategory = ofQueue.filter(({ categories }) => !categories || categories.includes(category ?? ''));
  if (ofCategory.length === 0) return category === undefined ? 'what has no category' : `the category ${category}`;
  return `what needs ${JSON.stringify(needs)}`;
}

/** Everything that holds it, or would if it were due; the first one speaks for all. */
export function holdersOf(task: Task, checks: readonly Check[]): readonly Holder[] {
  const isPaused = checks.some(({ paused }) => paused);
  const bad = new Set(checks.filter(({ ok }) => !ok).map(({ name }) => name));
  return [
    ...(task.state === 'held' ? (['operator'] as const) : []),
    ...(bad.has('source') ? (['source_held'] as const) : []),
    ...(bad.has('queue') ? (['queue_paused'] as const) : []),
    ...(bad.has('worker') ? [isPaused ? ('worker_paused' as const) : ('no_worker' as const)] : []),
  ];
}

/** `by eva 3m ago: maintenance`. */
export function doneBy(
  { actor, note }: { readonly actor: string; readonly note?: string },
  at: number,
  now: number,
  who = `by ${actor} `,
): string {
  return `${who}${ago(at, now)}${note === undefined ? '' : `: ${note}`}`;
}

/** `3m ago`. */
export function ago(at: number, now: number): string {
  return now - at < 1_000 ? 'just now' : `${formatDuration(now - at)} ago`;
}
