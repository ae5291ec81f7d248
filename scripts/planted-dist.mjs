// The built package for a campaign: as it is, or a copy with a bug planted in it, which the campaign must find. The commands in `dist/cli`
// are bundled, so a bug is planted only in what programs import.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** A bug: in a file of dist, `find` is replaced by `replace`. */
// { file: 'store/liveness.js', find: /…/ or 'text', replace: 'text' }

/** Where dist is, as a URL that ends with a slash, and what removes it again. Throws where a patch finds nothing to replace. */
export function distWith(patches = []) {
  if (patches.length === 0) return { dist: pathToFileURL(join(ROOT, 'dist/')).href, remove() {} };
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-planted-'));
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    for (const patch of patches) apply(join(folder, 'dist'), patch);
  } catch (error) {
    remove();
    throw error;
  }
  return { dist: pathToFileURL(join(folder, 'dist/')).href, remove };
}

function apply(dist, { file, find, replace }) {
  const path = join(dist, file);
  const text = readFileSync(path, 'utf8');
  const patched = text.replace(find, replace);
  if (patched === text) throw new Error(`The bug could not be planted: ${file} has nothing that matches ${find}.`);
  writeFileSync(path, patched);
}
