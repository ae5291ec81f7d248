// Writes the page of every option, docs/reference/options.md. With --check: fails if what is written is not current.
//   npm run reference
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { optionData } from '../dist/config/print.js';
import { POLICY_FIELDS, RULE_FIELDS } from '../dist/failure/policy-fields.js';
import { openHoldfast } from '../dist/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';
import { takes } from './options-table.mjs';
import { optionsPage } from './reference/options-page.mjs';
import { sectionsFor, task, WORDS } from './reference/options-sections.mjs';

const root = new URL('../', import.meta.url);
const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [task] });
const page = await optionsPage(
  sectionsFor(holdfast),
  {
    policy: POLICY_FIELDS,
    rule: RULE_FIELDS,
    takes,
    data: (shape, value) => stringify(optionData(shape, value), { collectionStyle: 'flow', lineWidth: 0 }).trim(),
  },
  { policiesPage: '../guides/policies.md', words: WORDS },
);
await holdfast.close();

keep('docs/reference/options.md', page);

function keep(path, text) {
  const target = new URL(path, root);
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return;
  if (process.argv.includes('--check')) {
    console.error(`${path} is not current. Run: npm run reference`);
    process.exitCode = 1;
    return;
  }
  mkdirSync(new URL('./', target), { recursive: true });
  writeFileSync(target, text);
}
