import type { StatsReport } from '../queue/stats.ts';
import { snakeCase } from '../views/snake-case.ts';
import { rfc3339 } from '../views/times.ts';

/** The content of `holdfast stats --json`. */
export function statsContent({ since, bins, ...counted }: StatsReport): object {
  return {
    since: rfc3339(since),
    ...(snakeCased(counted) as object),
    ...(bins && { bins: bins.map(({ at, ...stats }) => ({ at: rfc3339(at), ...(snakeCased(stats) as object) })) }),
  };
}

/** Members in snake_case. The names of kinds are already. */
function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), snakeCased(member)]));
}
