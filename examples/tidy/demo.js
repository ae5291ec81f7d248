// @ts-check
// A folder that needs tidying, made for the purpose.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPlan } from './plan.js';
import { foreseenText, reportTo } from './progress.js';
import { openQueue } from './queue.js';
import { summaryOf, summaryText } from './summary.js';
import { foresee, tidy } from './tidy.js';

const PLAN = `
moves:
  - { from: inbox/report.txt, to: documents/ }
  - { from: inbox/photo.jpg, to: pictures/2026/beach.jpg }
  - { from: inbox/notes.txt, to: documents/notes.txt }
  - { from: inbox/later.txt, to: documents/ }
`;

/**
 * Dry run, run, and a second run after a person has answered, in a folder that is removed at the end.
 *
 * @param {(text: string) => void} print
 */
export async function demo(print) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-tidy-'));
  /** @param {string} text */
  const shown = (text) => print(text.replaceAll(`${folder}/`, ''));
  try {
    await tidyUp(folder, shown);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * @param {string} folder
 * @param {(text: string) => void} print
 */
async function tidyUp(folder, print) {
  for (const name of ['inbox', 'documents']) mkdirSync(join(folder, name));
  for (const name of ['report.txt', 'photo.jpg', 'notes.txt']) writeFileSync(join(folder, 'inbox', name), `my ${name}`);
  writeFileSync(join(folder, 'documents/notes.txt'), 'older notes');
  writeFileSync(join(folder, 'plan.yaml'), PLAN);
  const [moves, file] = [readPlan(join(folder, 'plan.yaml')), join(folder, 'tidy.db')];

  print(`The plan:\n${PLAN}`);
  print(foreseenText(await foresee(undefined, moves)));

  const queue = await openQueue(file);
  try {
    print('\nA run. notes.txt exists in documents already, and later.txt has not come yet:\n');
    const first = await tidy(queue, moves, { onEvent: reportTo(print) });
    print(`\n${summaryText(await summaryOf(queue), { succeededNow: first.succeeded, file })}`);

    print('\nSomebody removes the older notes and says "retry"; and later.txt has come. The same plan again:\n');
    rmSync(join(folder, 'documents/notes.txt'));
    for (const { id } of await queue.list({ states: ['needs_manual'] })) {
      await queue.resolve(id, { as: 'retry', actor: 'demo', note: 'The older notes are gone.' });
    }
    writeFileSync(join(folder, 'inbox/later.txt'), 'my later.txt');
    const second = await tidy(queue, moves, { onEvent: reportTo(print) });
    print(`\n${summaryText(await summaryOf(queue), { succeededNow: second.succeeded, file })}`);
    print(`\ndocuments: ${readdirSync(join(folder, 'documents')).join(', ')}`);
    print(`documents/notes.txt: ${readFileSync(join(folder, 'documents/notes.txt'), 'utf8')}`);
  } finally {
    await queue.close();
  }
}
