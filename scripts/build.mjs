// Compiles src to dist, bundles the command, builds the page of the dashboard, and copies the files of SQL. Only a file that changed is written, in one step, and only a
// file without a source is removed: a process that runs from dist meanwhile, or another build, never reads half a file.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildPage } from './build-page.mjs';
import { bundleCommand } from './bundle-command.mjs';
import { writeLlms } from './llms.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const [src, dist, cache] = ['src', 'dist', 'node_modules/.cache'].map((name) => join(root, name));

mkdirSync(cache, { recursive: true });
const built = mkdtempSync(join(cache, 'dist-'));
try {
  process.exitCode = compile();
  if (process.exitCode === 0) {
    await bundleCommand(built);
    await buildPage(join(built, 'dashboard/page'), cache);
    install();
    writeLlms(root);
  }
} finally {
  rmSync(built, { recursive: true, force: true });
}

/** Returns the exit code. A compiler that a signal ended has none. */
function compile() {
  const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));
  const args = [tsc, '-p', 'tsconfig.build.json', '--outDir', built];
  const { status, error } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  return status ?? 1;
}

function install() {
  for (const path of filesIn(src)) if (path.endsWith('.sql')) cpSync(join(src, path), join(built, path));
  chmodSync(join(built, 'cli/main.js'), 0o755);
  mkdirSync(dist, { recursive: true });
  const paths = filesIn(built);
  for (const path of paths) {
    const [from, to] = [join(built, path), join(dist, path)];
    if (existsSync(to) && readFileSync(to).equals(readFileSync(from))) continue;
    mkdirSync(dirname(to), { recursive: true });
    renameSync(from, to);
  }
  for (const path of filesIn(dist)) if (!paths.includes(path)) rmSync(join(dist, path), { force: true });
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}
