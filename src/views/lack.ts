import type { Takes, WorkerRecord } from '../store/store.ts';
import { meets, type Needs } from '../task.ts';

/** How many different answers of workers are named. */
const MOST_NAMED = 3;

/** What decides which workers take a task. */
export interface TaskKind {
  readonly type: string;
  readonly queue: string;
  readonly category?: string;
  readonly needs?: Needs;
}

/** Why no running worker takes a task. Names are unchanged, so escape `words` and `offered` for the place where they are shown. */
export interface Lack {
  readonly of: 'type' | 'queue' | 'category' | 'needs';
  /** What no worker takes: `the queue mail`, `what needs {"gpu":true}`. */
  readonly words: string;
  /** What those take or have that come closest: `w1 has {"cpu":8}`. Empty for a type. */
  readonly offered: string;
  /** What to start instead; undefined for a type, because that depends on what took it last. */
  readonly start?: string;
}

type Offering = Pick<WorkerRecord, 'name' | 'takes'>;

/** The first of its type, queue, category and needs that none of these workers takes; undefined if one takes the task. */
export function lackOf(workers: readonly Offering[], { type, queue, category, needs }: TaskKind): Lack | undefined {
  const ofType = workers.filter(({ takes: { types } }) => !types || types.includes(type));
  if (ofType.length === 0) return { of: 'type', words: `the type ${type}`, offered: '' };
  const ofQueue = ofType.filter(({ takes: { queues } }) => !queues || queues.includes(queue));
  if (ofQueue.length === 0) {
    const offered = offeredBy(ofType, ({ queues }) => onlyWords(queues, 'queue', 'queues'));
    return { of: 'queue', words: `the queue ${queue}`, offered, start: 'start a worker that takes this queue' };
  }
  const ofCategory = ofQueue.filter(({ takes: { categories } }) => !categories || categories.includes(category ?? ''));
  if (ofCategory.length === 0) {
    const offered = offeredBy(ofQueue, ({ categories }) => onlyWords(categories, 'category', 'categories'));
    const words = category === undefined ? 'what has no category' : `the category ${category}`;
    const start = category === undefined ? 'without `categories`' : 'that takes this category';
    return { of: 'category', words, offered, start: `start a worker ${start}` };
  }
  if (ofCategory.some(({ takes: { capabilities } }) => meets(capabilities, needs ?? {}))) return undefined;
  const offered = offeredBy(ofCategory, ({ capabilities }) =>
    Object.keys(capabilities).length === 0 ? 'has no `capabilities`' : `has ${JSON.stringify(capabilities)}`,
  );
  return {
    of: 'needs',
    words: `what needs ${JSON.stringify(needs)}`,
    offered,
    start: 'start a worker that has these `capabilities`',
  };
}

function onlyWords(names: readonly string[] | undefined, one: string, many: string): string {
  return names?.length === 1 ? `takes only the ${one} ${names[0]}` : `takes only the ${many} ${names?.join(', ')}`;
}

/** What each of them offers; workers that offer the same are named once. */
function offeredBy(workers: readonly Offering[], words: (takes: Takes) => string): string {
  const alike = new Map<string, number>();
  const parts: { readonly name: string; readonly said: string }[] = [];
  for (const { name, takes } of workers) {
    const said = words(takes);
    if (!alike.has(said)) parts.push({ name, said });
    alike.set(said, (alike.get(said) ?? 0) + 1);
  }
  const shown = parts.slice(0, MOST_NAMED).map(({ name, said }) => {
    const others = (alike.get(said) ?? 1) - 1;
    return others === 0 ? `${name} ${said}` : `${name} ${said}, as ${others === 1 ? '1 other' : `${others} others`}`;
  });
  const more = parts.length > shown.length ? `; ${parts.length - shown.length} more differ` : '';
  return `${shown.join('; ')}${more}`;
}
