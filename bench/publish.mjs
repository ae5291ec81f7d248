// What is published of a kept run: the tables of docs/internals/performance.md and its plot.
//   node publish.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { plot } from './plot.mjs';
import { tablesOf } from './table.mjs';

export const KEPT = here('kept.json');

const PAGE = here('../docs/internals/performance.md');
const PLOT = here('../docs/internals/speed.svg');
const [BEGIN, END] = ['<!-- LAST RUN -->', '<!-- END OF LAST RUN -->'];

/** Writes both from the figures of a kept run. */
export function publish(kept) {
  const page = readFileSync(PAGE, 'utf8');
  const [before, after] = [page.slice(0, page.indexOf(BEGIN)), page.slice(page.indexOf(END))];
  writeFileSync(PAGE, `${before}${BEGIN}\n\n${textOf(kept)}\n\n${after}`);
  writeFileSync(PLOT, plot(kept));
}

function textOf({ date, machine, load, command, runs }) {
  return [
    `${date}, ${machine}, load average before it ${load}: \`${command}\`.`,
    ...runs.map(({ store, server, rows, targets }) =>
      [`### ${TITLES[store]}`, server, tablesOf(rows, targets)].filter(Boolean).join('\n\n'),
    ),
  ].join('\n\n');
}

const TITLES = { sqlite: 'SQLite', postgres: 'PostgreSQL' };

function here(path) {
  return fileURLToPath(new URL(path, import.meta.url));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) publish(JSON.parse(readFileSync(KEPT, 'utf8')));
