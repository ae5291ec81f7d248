// The rates of a kept run as bars, a column for each store.

const SCENARIOS = [
  ['enqueue concurrent', 100, 'enqueue, 100 callers'],
  ['enqueue bulk', 1, 'enqueue, 100 a call'],
  ['drain', 1, 'run, 1 at a time'],
  ['drain', 100, 'run, 100 at a time'],
  ['fail', 100, 'run, two of three fail'],
];
const COLUMNS = { sqlite: 'SQLite', postgres: 'Servers' };
const [WIDTH, BAR, GAP, TOP, LEFT, LONGEST] = [460, 13, 30, 64, 165, 210];

/** Bars of one column have one scale. A paler bar promises less: its durability is not full. */
export function plot({ date, machine, load, runs }) {
  const columns = runs.map(columnOf);
  const height = TOP + Math.max(...columns.map((column) => column.height)) + 10;
  const width = WIDTH * columns.length;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>Tasks a second of Holdfast and other queues</title>
<style>
.page{fill:#fff}text{fill:#1f2328}.note{fill:#57606a;font-size:11px}.holdfast{fill:#2da44e}.other{fill:#8c959f}.weaker{fill:#d0d7de}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#e6edf3}.note{fill:#8d96a0}.weaker{fill:#3d444d}}
</style>
<rect class="page" width="${width}" height="${height}"/>
<text x="10" y="18" font-weight="600">Executions or enqueued tasks a second</text>
<text class="note" x="10" y="34">${date}, ${machine}, load average before it ${load}. Pale: a power cut can lose what was acknowledged.</text>
${columns.map(({ lines }, i) => `<g transform="translate(${i * WIDTH} ${TOP})">\n${lines.join('\n')}\n</g>`).join('\n')}
</svg>
`;
}

function columnOf({ store, rows }) {
  const shown = rows.filter(({ system }) => !system.startsWith('floor'));
  const groups = SCENARIOS.map(([scenario, concurrency, title]) => ({
    title,
    rows: shown.filter((row) => row.scenario === scenario && row.concurrency === concurrency),
  }));
  const highest = Math.max(...groups.flatMap(({ rows }) => rows.map(({ rate_per_s }) => rate_per_s)));
  const lines = [`<text x="10" y="-6" font-weight="600">${COLUMNS[store]}</text>`];
  let y = 0;
  for (const { title, rows } of groups) {
    lines.push(`<text x="10" y="${y + 14}">${title}</text>`);
    y += 20;
    for (const row of rows) {
      lines.push(...barOf(row, y, (row.rate_per_s / highest) * LONGEST));
      y += BAR + 3;
    }
    y += GAP - 20;
  }
  return { lines, height: y };
}

function barOf({ system, rate_per_s, durability }, y, length) {
  const kind = system === 'holdfast' ? 'holdfast' : durability === 'full' ? 'other' : 'weaker';
  const text = Math.round(rate_per_s).toLocaleString('en-US');
  return [
    `<text class="note" x="${LEFT - 6}" y="${y + 10}" text-anchor="end">${system}</text>`,
    `<rect class="${kind}" x="${LEFT}" y="${y}" width="${length.toFixed(1)}" height="${BAR}"/>`,
    `<text class="note" x="${LEFT + 4 + Math.round(length)}" y="${y + 10}">${text}</text>`,
  ];
}
