import type { Milliseconds } from '../duration.ts';
import type { Operations } from '../queue/operations.ts';
import type { FallingDue } from '../store/insight.ts';
import { rfc3339 } from '../views/times.ts';

const MINUTE: Milliseconds = 60_000;

/** How many tasks are counted, and of how many it is read whether they are retries. */
const MOST_COUNTED = 200_000;
const MOST_READ = 20_000;

/** How many groups are named: the largest. */
const MOST_GROUPS = 20;

const MOST_BINS = 120;

/** What falls due, by the minute or by longer spans, and the largest groups of it. Tasks that are overdue already fall due at once. */
export async function forecastContent(holdfast: Operations, within: Milliseconds): Promise<object> {
  const now = holdfast.now();
  const span = Math.max(MINUTE, Math.ceil(within / MOST_BINS / MINUTE) * MINUTE);
  const from = now - (now % MINUTE);
  const bins = Math.ceil((now + within - from) / span);
  const question = { from, until: from + bins * span, span, mostCounted: MOST_COUNTED, mostRead: MOST_READ };
  const { counts, kinds } = await holdfast.administration.fallingDue(question);
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const countOf = new Map(counts.map(({ span: i, count }) => [i, count]));
  const sum = (i: number, isRetry: boolean) =>
    kinds.reduce((all, kind) => (kind.span === i && (kind.reason !== null) === isRetry ? all + kind.count : all), 0);
  return {
    at: rfc3339(now),
    until: rfc3339(question.until),
    bin_ms: span,
    total: { value: total, exact: total < MOST_COUNTED },
    bins: Array.from({ length: bins }, (_, i) => {
      const [first, retries, count] = [sum(i, false), sum(i, true), countOf.get(i) ?? 0];
      return { at: rfc3339(from + i * span), count, first, retries, unread: Math.max(0, count - first - retries) };
    }),
    groups: groupsOf(kinds),
  };
}

function groupsOf(kinds: FallingDue['kinds']): object[] {
  const groups = new Map<string, { type: string; source: string; reason: string | null; count: number }>();
  for (const { type, source, reason, count } of kinds) {
    const key = JSON.stringify([type, source, reason]);
    const group = groups.get(key) ?? { type, source, reason, count: 0 };
    groups.set(key, { ...group, count: group.count + count });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count).slice(0, MOST_GROUPS);
}
