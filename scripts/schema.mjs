// Writes schemas/holdfast.schema.json, from what reads the file.
import { mkdirSync, writeFileSync } from 'node:fs';
import { jsonSchema } from '../dist/config/index.js';

const target = new URL('../schemas/holdfast.schema.json', import.meta.url);
mkdirSync(new URL('.', target), { recursive: true });
writeFileSync(target, `${JSON.stringify(jsonSchema(), null, 2)}\n`);
