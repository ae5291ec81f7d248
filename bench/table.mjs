// The figures for people.

/** Prints the figures of a run, then what was to be reached and whether it was. */
export function printTable(rows, verdicts) {
  print([
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
  if (verdicts.length === 0) return;
  console.log();
  print([
    ['target', 'wanted', 'this run', 'met'],
    ...verdicts.map(({ what, target, got, met }) => [
      what,
      target,
      String(got),
      met === null ? 'too small a run' : met ? 'yes' : 'no',
    ]),
  ]);
}

/** What only some scenarios have. */
function noteOf({ n, peak_mb, executed_once, complaints }) {
  return [
    n !== undefined && `n ${shown(n)}`,
    peak_mb !== undefined && `peak ${peak_mb} MB`,
    executed_once !== undefined && (executed_once ? 'each executed once' : 'NOT each executed once'),
    complaints !== undefined && `${complaints} complaints`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** In Markdown, so that a run can be kept as it was printed. */
function print(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length), 3));
  const [head, ...body] = lines.map(
    (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`,
  );
  console.log([head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body].join('\n'));
}

function shown(value) {
  return value === null || value === undefined ? '–' : value.toLocaleString('en-US');
}
