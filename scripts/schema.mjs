// Writes schemas/holdfast.schema.json and the table of options in docs/guides/policies.md, from what reads the file.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { jsonSchema } from '../dist/config/index.js';
import { optionData } from '../dist/config/print.js';
import { POLICY_FIELDS, RULE_FIELDS } from '../dist/failure/policy-fields.js';
import { withOptionsTable } from './options-table.mjs';

const target = new URL('../schemas/holdfast.schema.json', import.meta.url);
mkdirSync(new URL('.', target), { recursive: true });
writeFileSync(target, `${JSON.stringify(jsonSchema(), null, 2)}\n`);

const page = new URL('../docs/guides/policies.md', import.meta.url);
const table = { policy: POLICY_FIELDS, rule: RULE_FIELDS, data: optionData };
writeFileSync(page, withOptionsTable(readFileSync(page, 'utf8'), table));
