// The figures for people.

/** The figures of a run, then what was to be reached and whether it was, in Markdown. */
export function tablesOf(rows, verdicts) {
  const figures = tableOf([
    ['system', 'scenario', 'at once', 'per second', 'lowest–highest', 'p50 ms', 'p99 ms', 'ratio', 'durability', ''],
    ...rows.map((row) => [
      row.system,
      row.scenario,
      shown(row.concurrency),
      shown(row.rate_per_s),
      row.lowest === undefined ? '' : `${shown(row.lowest)}–${shown(row.highest)}`,
      shown(row.p50_ms),
      shown(row.p99_ms),
      row.ratio === undefined ? '' : `${row.ratio} × ${row.of}`,
      row.durability,
      noteOf(row),
    ]),
  ]);
  if (verdicts.length === 0) return figures;
  const targets = tableOf([
    ['target', 'wanted', 'this run', 'met'],
    ...verdicts.map(({ what, target, got, met }) => [
      what,
      target,
      String(got),
      met === null ? 'too small a run' : met ? 'yes' : 'no',
    ]),
  ]);
  return `${figures}\n\n${targets}`;
}

/** What only some scenarios have. */
function noteOf({ n, size, peak_mb, executed_once, complaints }) {
  return [
    n !== undefined && `n ${shown(n)}`,
    size > 0 && size !== n && `size ${shown(size)}`,
    peak_mb !== undefined && `peak ${peak_mb} MB`,
    executed_once !== undefined && (executed_once ? 'each executed once' : 'NOT each executed once'),
    complaints !== undefined && `${complaints} complaints`,
  ]
    .filter(Boolean)
    .join(', ');
}

function tableOf(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length), 3));
  const [head, ...body] = lines.map(
    (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`,
  );
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body].join('\n');
}

function shown(value) {
  return value === null || value === undefined ? '–' : value.toLocaleString('en-US');
}
