import type { Milliseconds } from '../../duration.ts';
import { HeaderBag } from './headers.ts';
import { httpDate, plainNumber, plausible, resetIn } from './times.ts';

/** How many requests a source still accepts before its limit resets. */
export interface RateLimit {
  readonly remaining: number;
  readonly resetsIn: Milliseconds;
}

/** One limit in the headers of a response. Some headers do not say how much of it is left. */
export interface Quota {
  readonly remaining?: number;
  readonly resetsIn: number;
}

/** The time of the server, if its `Date` header differs from our clock by more than a second; otherwise `now`. */
export function serverNow(headers: HeaderBag, now: number): number {
  const sent = httpDate(headers.get('date') ?? '', now);
  return sent !== undefined && Math.abs(sent - now) > 1_000 ? sent : now;
}

/** Every limit in the headers of a response. */
export function quotasIn(headers: HeaderBag, now: number): readonly Quota[] {
  const all = [...headers].filter(([name]) => name.includes('limit'));
  if (all.length === 0) return [];
  const byName = new Map(all);
  const server = serverNow(headers, now);
  return [...all.flatMap((pair) => quotaOf(pair, byName, server)), ...structured(byName.get('ratelimit') ?? '')];
}

/** Whether one of the limits in the headers of a response is used up. */
export function isLimitUsedUp(headers: HeaderBag): boolean {
  for (const [name, value] of headers) {
    if (name.includes('limit') && name.includes('remain') && /^0+$/.test(value)) return true;
  }
  return structured(headers.get('ratelimit') ?? '').some(({ remaining }) => remaining === 0);
}

/** The limit in the headers of a response that allows the fewest requests per time until it resets. */
export function tightestLimit(headers: object, now: number): RateLimit | undefined {
  let tightest: RateLimit | undefined;
  for (const { remaining, resetsIn } of quotasIn(new HeaderBag(headers), now)) {
    const wait = plausible(resetsIn);
    if (remaining === undefined || wait === undefined || wait <= 0) continue;
    if (!tightest || remaining / wait < tightest.remaining / tightest.resetsIn)
      tightest = { remaining, resetsIn: wait };
  }
  return tightest;
}

/** A "reset" header and the "remaining" one that belongs to it. */
function quotaOf([name, value]: readonly [string, string], all: ReadonlyMap<string, string>, now: number): Quota[] {
  if (!name.includes('reset')) return [];
  const resetsIn = name.endsWith('-ms') ? plainNumber(value) : resetIn(value, now);
  if (resetsIn === undefined) return [];
  const left = (word: string) => all.get(name.replace(/reset(?:-after|-at|-in|-ms)?/, word));
  const remaining = Number.parseFloat(left('remaining') ?? left('remain') ?? '');
  return [{ resetsIn, ...(remaining >= 0 && { remaining }) }];
}

/** The IETF's RateLimit field, `"daily";r=0;t=3600` or, in older drafts, `limit=100, remaining=0, reset=50`. */
function structured(field: string): Quota[] {
  const old = /\bremaining=(\d+)\b.*\breset=(\d+)\b/.exec(field);
  const items = old ? [old] : [...field.matchAll(/;\s*r=(\d+)\b[^,]*?;\s*t=(\d+)\b/g)];
  return items.map(([, left, seconds]) => ({ remaining: Number(left), resetsIn: Number(seconds) * 1_000 }));
}
