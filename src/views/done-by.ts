import { formatDuration } from '../duration.ts';
import type { By } from '../store/store.ts';
import { ago, rfc3339 } from './times.ts';
import { visible } from './visible.ts';

/** An action on a source or queue: when, who, and why. */
export interface DoneBy extends By {
  readonly at: number;
}

/** `31m ago by eva: the host is down`. */
export function doneByWords({ at, actor, note }: DoneBy, now: number): string {
  return `${ago(at, now)} by ${visible(actor)}${note === undefined ? '' : `: ${visible(note)}`}`;
}

/** Null if nobody did it. */
export function doneByJson(done: DoneBy | undefined): object | null {
  return done ? { at: rfc3339(done.at), actor: done.actor, note: done.note ?? null } : null;
}

/** `by eva 3m20s ago: maintenance`, for a sentence. The actor and the note are as somebody wrote them. */
export function doneBy({ actor, note }: By, at: number, now: number, who = `by ${actor} `): string {
  return `${who}${agoInFull(at, now)}${note === undefined ? '' : `: ${note}`}`;
}

/** `3m20s ago`. */
export function agoInFull(at: number, now: number): string {
  return now - at < 1_000 ? 'just now' : `${formatDuration(now - at)} ago`;
}
