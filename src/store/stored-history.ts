import type { Because } from '../failure/decide.ts';
import type { Failure } from '../failure/outcome.ts';
import { readStored, unreadableMember } from '../stored-json.ts';
import type { Brought } from './store.ts';

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
export function broughtFrom(text: string | null): Unreadable & { readonly brought?: Brought } {
  const unreadable: string[] = [];
  const brought = readStored<Brought | null>(text ?? 'null', 'brought', unreadable, null);
  return { ...(brought && { brought }), ...unreadableMember(unreadable) };
}
