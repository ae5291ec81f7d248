import type { By } from '../store/store.ts';
import { ago, rfc3339 } from './times.ts';
import { visible } from './visible.ts';

/** What somebody did to a source or queue: when, who, and a word about why. */
export interface DoneBy extends By {
  readonly at: number;
}

/** `31m ago by eva: the host is down`. */
export function doneByWords({ at, actor, note }: DoneBy, now: number): string {
  return `${ago(at, now)} by ${visible(actor)}${note === undefined ? '' : `: ${visible(note)}`}`;
}

/** Null where nobody did it. */
export function doneByJson(done: DoneBy | undefined): object | null {
  return done ? { at: rfc3339(done.at), actor: done.actor, note: done.note ?? null } : null;
}
