// Compiles src to dist, and copies the files of SQL. What is there is overwritten in place, and only what no source stands behind any more is removed, so
// that a process that runs from dist meanwhile keeps its files.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [src, dist] = [join(root, 'src'), join(root, 'dist')];

const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));
const { status, error } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
if (error) throw error;
// A compiler that a signal ended has no status.
if (status !== 0) process.exit(status ?? 1);

for (const path of readdirSync(src, { recursive: true })) {
  if (path.endsWith('.sql')) cpSync(join(src, path), join(dist, path));
}

for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  const source = join(src, relative(dist, path)).replace(/(?:\.d\.ts|\.js)$/, '.ts');
  if (!existsSync(source)) rmSync(path, { recursive: true, force: true });
}

const main = join(dist, 'cli/main.js');
if (existsSync(main)) chmodSync(main, 0o755);
