import type { Because } from '../failure/decide.ts';
import type { Failure } from '../failure/outcome.ts';
import { readStored, unreadableMember } from '../stored-json.ts';
import type { HistoryEntry, Imported } from './store.ts';

type Unreadable = { readonly unreadable?: readonly string[] };

/** What an execution's row keeps as JSON. */
export function judgementFrom(row: {
  readonly because: string;
  readonly failure: string | null;
}): Unreadable & { readonly because?: Because; readonly failure?: Failure } {
  const unreadable: string[] = [];
  const because = readStored<Because | undefined>(row.because, 'because', unreadable, undefined);
  const failure = readStored<Failure | null>(row.failure ?? 'null', 'failure', unreadable, null);
  return { ...(because && { because }), ...(failure && { failure }), ...unreadableMember(unreadable) };
}

/** What was counted of an imported task, as JSON. */
export function importedFrom(text: string | null): Unreadable & { readonly imported?: Imported } {
  const unreadable: string[] = [];
  const imported = readStored<Imported | null>(text ?? 'null', 'brought', unreadable, null);
  return { ...(imported && { imported }), ...unreadableMember(unreadable) };
}

/** What went astray of an execution stands among the steps, under this verb; what it was, as JSON in the note. */
export const STRAY_VERB = 'stray';

export function strayFrom({ at, actor, note }: { at: number; actor: string; note: string | null }): HistoryEntry {
  const unreadable: string[] = [];
  const stray = readStored(note ?? '', 'stray', unreadable, { execution: 0 });
  return { kind: 'stray', at, worker: actor, ...stray, ...unreadableMember(unreadable) };
}
