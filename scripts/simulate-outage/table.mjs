// The results of simulated outages as a table in Markdown.

const COLUMNS = [
  ['policy', ({ policy }) => policy],
  ['useless calls', ({ useless_calls }) => number(useless_calls)],
  ['throttled after', ({ throttled_after }) => number(throttled_after)],
  ['dead', ({ dead }) => number(dead)],
  ['attempts charged', ({ attempts_charged }) => number(attempts_charged)],
  ['drain ratio', ({ drain_ratio }) => (drain_ratio === null ? 'not drained' : drain_ratio.toFixed(2))],
  ['new work, median wait', ({ fresh_wait_p50_ms }) => wait(fresh_wait_p50_ms)],
  ['most calls in 1 s', ({ peak_calls_per_second }) => number(peak_calls_per_second)],
];

export function tableOf(results, policies) {
  const rows = [COLUMNS.map(([name]) => name), ...results.map((result) => COLUMNS.map(([, cell]) => cell(result)))];
  const widths = COLUMNS.map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  const lines = rows.map((row) =>
    lineOf(row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))),
  );
  const rule = lineOf(widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)));
  const notes = results.map(({ policy }) => `${policy}: ${policies.find(({ name }) => name === policy).says}`);
  return [lines[0], rule, ...lines.slice(1), '', ...notes].join('\n');
}

function lineOf(cells) {
  return `| ${cells.join(' | ')} |`;
}

function number(value) {
  return value.toLocaleString('en');
}

function wait(ms) {
  if (ms === null) return 'most never ran';
  return ms < 10_000 ? `${number(ms)} ms` : `${number(Math.round(ms / 1_000))} s`;
}
