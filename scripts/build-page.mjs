// Builds the page of the dashboard into a folder. Tests build often, so a page whose sources are those of the last time is copied from
// then.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dashboard = join(root, 'dashboard');
/** Versions of the libraries that are in the page. */
const LOCK = join(root, 'node_modules/.package-lock.json');

/** Writes the page to `out`. `cache`: a folder that stays from one build to the next. */
export async function buildPage(out, cache) {
  const kept = join(cache, 'page');
  if (isOf(join(kept, 'sources.json'))) return cpSync(join(kept, 'files'), out, { recursive: true });
  const made = mkdtempSync(join(cache, 'page-'));
  try {
    const modules = await build(join(made, 'files'));
    writeFileSync(join(made, 'sources.json'), JSON.stringify(hashesOf(sourcesOf(modules))));
    cpSync(join(made, 'files'), out, { recursive: true });
    rmSync(kept, { recursive: true, force: true });
    renameSync(made, kept);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Returns the files that it read. */
async function build(outDir) {
  const { build: bundle } = await import('vite');
  const modules = [];
  const collect = { name: 'holdfast', moduleParsed: ({ id }) => modules.push(id) };
  await bundle({
    configFile: join(dashboard, 'vite.config.ts'),
    logLevel: 'warn',
    plugins: [collect],
    build: { outDir },
  });
  return modules;
}

/** Those of the dashboard, and of `src` those that it imports. */
function sourcesOf(modules) {
  const own = readdirSync(dashboard, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const imported = modules.filter((id) => id.startsWith(join(root, 'src/')) && existsSync(id));
  return [...own, ...imported, LOCK];
}

function hashesOf(files) {
  const hashOf = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');
  return Object.fromEntries(files.map((file) => [relative(root, file), hashOf(file)]).sort());
}

/** Whether the files in the list are unchanged, and no other came to them. */
function isOf(list) {
  if (!existsSync(list)) return false;
  const known = JSON.parse(readFileSync(list, 'utf8'));
  const imported = Object.keys(known).map((file) => join(root, file));
  if (!imported.every((file) => existsSync(file))) return false;
  return JSON.stringify(hashesOf([...new Set(sourcesOf(imported))])) === JSON.stringify(known);
}
