import { InvalidInputError } from '../errors.ts';
import type { Operations } from '../queue/operations.ts';
import type { ChangeRecord } from '../store/changes.ts';
import { changedLimits } from '../views/source-history.ts';
import { rfc3339 } from '../views/times.ts';

/** An action of a person, or one on many tasks at once. */
interface Entry {
  readonly at: number;
  readonly json: object;
  /** The cursor behind it. */
  readonly after: (before: Cursor) => Cursor;
}

/** How far the actions on tasks, on sources and queues, and on groups of failures were listed. */
interface Cursor {
  readonly act: number;
  readonly change: number;
  readonly failures: number;
}

const NEWEST: Cursor = {
  act: Number.MAX_SAFE_INTEGER,
  change: Number.MAX_SAFE_INTEGER,
  failures: Number.MAX_SAFE_INTEGER,
};

/** How many actions on tasks are read for a page: an action on many of them is one entry. */
const MOST_ACTS = 1_000;

/** How many tasks of one entry are named. */
const MOST_NAMED = 10;

/** What people did, the newest first: on tasks, sources, queues and groups of failures. */
export async function auditContent(
  holdfast: Operations,
  { before, limit }: { readonly before?: string | undefined; readonly limit: number },
): Promise<object> {
  const cursor = before === undefined ? NEWEST : cursorFrom(before);
  const { administration } = holdfast;
  const [acts, changes, groups] = await Promise.all([
    administration.acts({ before: cursor.act, limit: MOST_ACTS }),
    administration.changes({ actions: true, before: cursor.change, limit: limit + 1 }),
    holdfast.failures.list(),
  ]);
  const entries = [
    ...together(acts),
    ...changes.map(
      (change): Entry => ({
        at: change.at,
        json: changeEntry(change),
        after: (known) => ({ ...known, change: change.id }),
      }),
    ),
    ...groups.flatMap((group) =>
      group.actions
        .filter(({ at }) => at < cursor.failures)
        .map(
          ({ at, actor, verb, note }): Entry => ({
            at,
            json: entryJson('failures', { at, actor, verb, note }, { name: group.id }),
            after: (known) => ({ ...known, failures: at }),
          }),
        ),
    ),
  ].sort((a, b) => b.at - a.at);
  const shown = entries.slice(0, limit);
  const reached = shown.reduce((known, { after }) => after(known), cursor);
  const mayHaveMore = entries.length > shown.length || acts.length === MOST_ACTS;
  return { items: shown.map(({ json }) => json), next: mayHaveMore && shown.length > 0 ? cursorText(reached) : null };
}

/** An action on many tasks has the same time, actor, verb and note for each. */
function together(acts: Awaited<ReturnType<Operations['administration']['acts']>>): Entry[] {
  const groups: (typeof acts)[number][][] = [];
  for (const act of acts) {
    const first = groups.at(-1)?.[0];
    const isSame =
      first?.at === act.at && first.actor === act.actor && first.verb === act.verb && first.note === act.note;
    if (isSame) groups.at(-1)?.push(act);
    else groups.push([act]);
  }
  return groups.map((group): Entry => {
    const { at, actor, verb, note, from, to } = group[0] as (typeof acts)[number];
    const tasks = group.slice(0, MOST_NAMED).map(({ task }) => task);
    return {
      at,
      json: entryJson('tasks', { at, actor, verb, note }, { count: group.length, tasks, from, to }),
      after: (known) => ({ ...known, act: (group.at(-1) as (typeof acts)[number]).id }),
    };
  });
}

interface Done {
  readonly at: number;
  readonly actor: string;
  readonly verb: string;
  readonly note: string | undefined;
}

/** Every entry has the same members. */
function entryJson(on: 'tasks' | 'source' | 'queue' | 'failures', { at, note, ...done }: Done, more: object): object {
  const none = { name: null, count: 1, tasks: [], from: null, to: null, limits: null };
  return { on, at: rfc3339(at), ...done, note: note ?? null, ...none, ...more };
}

function changeEntry(change: ChangeRecord): object {
  const { at, kind, name, change: verb, by } = change;
  const done = { at, actor: by?.actor ?? '', verb, note: by?.note };
  return entryJson(kind, done, { name, limits: changedLimits(change) });
}

function cursorText({ act, change, failures }: Cursor): string {
  return [act, change, failures].map((each) => (each === Number.MAX_SAFE_INTEGER ? '' : each)).join('.');
}

function cursorFrom(text: string): Cursor {
  const [act, change, failures] = text.split('.').map((each) => (each === '' ? Number.MAX_SAFE_INTEGER : Number(each)));
  const known = [act, change, failures].every((each) => Number.isSafeInteger(each));
  if (!known) throw new InvalidInputError('before must be `next` of the page before.');
  return { act: act as number, change: change as number, failures: failures as number };
}
