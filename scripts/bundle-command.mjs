// Bundles the modules of the command line into few files, because each file that a command loads costs time. They are CommonJS, which Node
// loads without waiting: with 20 files that is 10 to 20 ms less. The modules of the library stay as they are. The files of `dist/cli` import
// none of them, and only packages.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';

/** So many files load a module that belongs into the file that all commands load. Most of them are commands. */
const LOADED_BY_MOST = 24;

/** Replaces the folder `cli` in `dist` by its bundle, with the same names for `main.js` and `start.js`. */
export async function bundleCommand(dist) {
  const cli = join(dist, 'cli');
  const [main, start] = [join(cli, 'main.js'), join(cli, 'start.js')];
  const out = mkdtempSync(join(dist, 'bundle-'));
  const ofStart = new Set();
  const ofMain = new Set();
  const bundle = await rolldown({
    cwd: dist,
    input: { main },
    platform: 'node',
    external: (id) => !/^[./]/.test(id),
    treeshake: { moduleSideEffects: false },
    checks: { ineffectiveDynamicImport: false },
    plugins: [
      {
        name: 'holdfast',
        // A module looks for its files beside itself, so its URL stays that of the module that is not bundled.
        transform: (code, id) =>
          code.replaceAll(', import.meta.url)', `, new URL('${relative(cli, id)}', import.meta.url))`),
        buildEnd() {
          collect(this, main, ofMain);
          collect(this, start, ofStart);
        },
      },
    ],
  });
  await bundle.write({
    dir: out,
    format: 'cjs',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    comments: { jsdoc: false, annotation: false },
    codeSplitting: {
      groups: [
        { name: 'version', test: (id) => id !== main && ofMain.has(id), priority: 3 },
        { name: 'program', test: (id) => id !== start && ofStart.has(id), priority: 2 },
        { name: 'common', minShareCount: LOADED_BY_MOST, priority: 1 },
      ],
    },
  });
  writeFileSync(join(out, 'package.json'), '{ "type": "commonjs" }\n');
  rmSync(cli, { recursive: true });
  renameSync(out, cli);
}

/** Adds a module and all that it imports statically. */
function collect(graph, id, found) {
  if (found.has(id)) return;
  found.add(id);
  for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) collect(graph, imported, found);
}
