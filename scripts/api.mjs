// Writes schemas/openapi.json and docs/reference/api.md, from the routes of the dashboard's API.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { apiPage } from '../dist/dashboard/api-page.js';
import { openApi } from '../dist/dashboard/openapi.js';
import { ROUTES } from '../dist/dashboard/routes/index.js';

const root = new URL('../', import.meta.url);
const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
const made = openApi(ROUTES, documentSchemas(new URL('schemas/documents/', root)), version);
writeFileSync(new URL('schemas/openapi.json', root), `${JSON.stringify(made, null, 2)}\n`);
writeFileSync(new URL('docs/reference/api.md', root), apiPage(ROUTES));

/** By the names of documents: `show` of show.schema.json. */
function documentSchemas(folder) {
  if (!existsSync(folder)) return {};
  const ending = '.schema.json';
  const files = readdirSync(folder).filter((name) => name.endsWith(ending));
  return Object.fromEntries(
    files
      .sort()
      .map((name) => [name.slice(0, -ending.length), JSON.parse(readFileSync(new URL(name, folder), 'utf8'))]),
  );
}
