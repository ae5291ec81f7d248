// Measures how long it takes from `npm install` of the packed package to a task that was worked: with better-sqlite3 on this Node, which npm may
// have to compile, and on Node 24 with its own SQLite. Fails if the way without a compiler takes a minute.
//   npm run install-time
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const LONGEST_SECONDS = 60;

const root = fileURLToPath(new URL('..', import.meta.url));
const npm = process.env.npm_execpath;
if (npm === undefined) throw new Error('Run it with npm: npm run install-time');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-install-'));
try {
  const [{ filename }] = JSON.parse(
    run(process.execPath, [npm, 'pack', '--json', '--pack-destination', folder], root).stdout,
  );
  const node24 = nodeOf24();
  const ways = [
    { what: `Node ${process.versions.node}, better-sqlite3`, node: process.execPath, flags: [] },
    { what: 'Node 24, node:sqlite', node: node24, flags: ['--omit=optional'], limit: LONGEST_SECONDS },
    {
      what: 'Node 24, node:sqlite, scripts blocked',
      node: node24,
      flags: ['--ignore-scripts'],
      limit: LONGEST_SECONDS,
    },
  ];
  for (const way of ways) report(way, join(folder, filename));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The five lines of the README, from an empty folder. */
function report({ what, node, flags, limit = Number.POSITIVE_INFINITY }, tarball) {
  const at = mkdtempSync(join(folder, 'app-'));
  const [, five] = /^```js\n(.*?)^```/ms.exec(readFileSync(join(root, 'README.md'), 'utf8'));
  writeFileSync(
    join(at, 'package.json'),
    '{ "private": true, "type": "module", "allowScripts": { "better-sqlite3": true } }',
  );
  writeFileSync(join(at, 'five.js'), five);
  const from = performance.now();
  run(node, [npm, 'install', '--no-audit', '--no-fund', ...flags, tarball], at);
  const installed = performance.now();
  const { stdout } = run(node, ['five.js'], at);
  const seconds = (ms) => (ms / 1_000).toFixed(1);
  const [first, second] = [installed - from, performance.now() - installed];
  const isWorked = stdout === 'Hello, world!\n';
  const isFast = (first + second) / 1_000 <= limit;
  if (!isWorked || !isFast) process.exitCode = 1;
  const answer = isWorked ? '' : ` It printed: ${stdout}`;
  console.log(
    `${what}: ${seconds(first + second)} s (install ${seconds(first)} s, first task ${seconds(second)} s).${answer}`,
  );
}

function nodeOf24() {
  const at = mkdtempSync(join(folder, 'node-'));
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  run(process.execPath, [npm, 'install', '--no-audit', '--no-fund', `${name}@24`], at);
  return join(at, 'node_modules', name, 'bin/node');
}

function run(program, args, cwd) {
  const done = spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 50_000_000 });
  if (done.status !== 0) throw new Error(`${args.join(' ')} ended with ${done.status}.\n${done.stderr}`);
  return done;
}
