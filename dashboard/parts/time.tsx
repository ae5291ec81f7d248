import { ago, clockTime, lasting, until } from '../../src/views/times.ts';
import { now } from '../data/clock.ts';

/** A time: `4m ago` or `in 4m10s`, and the exact one on hover. `exact`: the clock time is what is shown. */
export function Time({ at, exact = false }: { readonly at: string; readonly exact?: boolean }) {
  const moment = Date.parse(at);
  const text = exact
    ? clockTime(moment, now.value)
    : moment > now.value
      ? until(moment, now.value)
      : ago(moment, now.value);
  return (
    <time dateTime={at} title={exactly(at)}>
      {text}
    </time>
  );
}

/** A time to come as both: `in 4m10s · 14:32:10`. One that has come is due now. */
export function DueTime({ at }: { readonly at: string }) {
  const moment = Date.parse(at);
  return (
    <time dateTime={at} title={exactly(at)}>
      {moment <= now.value ? 'due now' : `${until(moment, now.value)} · ${clockTime(moment, now.value)}`}
    </time>
  );
}

/** How long something lasts that began then. */
export function Since({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={exactly(at)}>
      {lasting(Date.parse(at), now.value)}
    </time>
  );
}

/** With the zone of this browser, and in UTC. */
export function exactly(at: string): string {
  const local = new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
  return `${local} (${at})`;
}
