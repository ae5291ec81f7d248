// What the copies of a sample have in common on both stores.
const HOUR = 3_600_000;

/** A time of the sample as an expression in SQL, stretched to its period. */
export const stretched = (column, { from, stretch, start }) =>
  `CAST(${start} + (${column} - ${from}) * ${stretch} AS bigint)`;

/** The counters of one copy: hours, which are what a store keeps of counts that are older than two. */
export function countersOfCopy({ start, period }, copy) {
  const at = start + copy * period;
  return { span: HOUR, at: at - (at % HOUR), firstAt: at };
}

/** A group of failures after so many copies of its failures, which happened in all hours alike. */
export function groupOfAll(group, { sample, copies, period, start, from, stretch }) {
  const mapped = (time) => Math.floor(start + (time - from) * stretch);
  const times = (counts) => Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count * copies]));
  const lastAt = mapped(group.lastAt) + (copies - 1) * period;
  const perHour = Math.ceil((group.count * copies * HOUR) / (period * copies));
  const hours = Array.from({ length: 48 }, (_, i) => [lastAt - (lastAt % HOUR) - (47 - i) * HOUR, perHour]);
  return {
    ...group,
    ...times({ count: group.count, dead: group.dead, needsManual: group.needsManual }),
    task: group.task + (copies - 1) * sample,
    firstAt: mapped(group.firstAt),
    lastAt,
    retries: times(group.retries),
    sources: times(group.sources),
    policyVersions: times(group.policyVersions),
    hours: Object.fromEntries(hours),
  };
}
