import { FILTER_KEYS } from '../filter.ts';
import type { Operations } from '../queue/operations.ts';
import { TASK_STATES } from '../task.ts';

/** How many tasks are looked at for their numbers, types and reasons: the newest. */
const MOST = 200;

/** Names and numbers that the store knows, for a completion. Of very many sources only those are read that may go on with `word`. */
export async function knownValues(holdfast: Operations, kind: string, word = ''): Promise<string[]> {
  const newest = () => holdfast.list({ limit: MOST });
  switch (kind) {
    case 'state':
      return [...TASK_STATES];
    case 'id':
      return (await newest()).map(({ id }) => String(id));
    case 'type':
      return (await newest()).map(({ type }) => type);
    case 'reason':
      return (await holdfast.counts()).byReason.map(({ reason }) => reason);
    case 'queue':
      return (await holdfast.queues()).map(({ name }) => name);
    case 'source':
      return sourcesNear(holdfast, word);
    case 'worker':
      return (await holdfast.workers()).map(({ name }) => name);
    case 'redrive':
      return (await holdfast.redrives.list()).map(({ id }) => String(id));
    case 'schedule':
      return [...(await holdfast.administration.scheduleNames())];
    default:
      return [];
  }
}

/** The first sources of all, which are all of a small store, and the first from this word on. */
async function sourcesNear({ administration }: Operations, word: string): Promise<string[]> {
  const [first, next] = [await administration.sourceNames('', MOST), await administration.sourceNames(word, MOST)];
  return [...new Set([...first, ...next])];
}

/** How many completions are offered. */
const MOST_OFFERED = 20;

/** How the term of a filter that ends at `at` may go on: each item is the whole filter with it. */
export async function completionContent(holdfast: Operations, text: string, at: number): Promise<object> {
  const [before, behind] = [text.slice(0, at), text.slice(at)];
  const [, start = '', term = ''] = /^(.*\s)?(\S*)$/s.exec(before) ?? [];
  const found = await termsFor(holdfast, term);
  return { items: found.slice(0, MOST_OFFERED).map((each) => ({ text: `${start}${each}${behind}` })) };
}

async function termsFor(holdfast: Operations, term: string): Promise<string[]> {
  const [, minus = '', key, values = ''] = /^(-?)(\w+):(.*)$/.exec(term) ?? [];
  if (key === undefined) {
    const [sign, word] = term.startsWith('-') ? ['-', term.slice(1)] : ['', term];
    return FILTER_KEYS.filter((each) => each.startsWith(word)).map((each) => `${sign}${each}:`);
  }
  const comma = values.lastIndexOf(',') + 1;
  const [kept, written] = [values.slice(0, comma), values.slice(comma).replace(/^"/, '')];
  const word = written.toLowerCase();
  const known = [...new Set(await knownValues(holdfast, key, written))];
  const likely = known.filter((value) => value.toLowerCase().includes(word));
  const first = likely.filter((value) => value.toLowerCase().startsWith(word));
  return [...new Set([...first, ...likely])].map((value) => `${minus}${key}:${kept}${quoted(value)}`);
}

/** A value with characters of the filter language is quoted. */
function quoted(value: string): string {
  return /[\s,"*\\]/.test(value) ? `"${value.replaceAll(/["\\]/g, '\\$&')}"` : value;
}
