// Runs a workload again and again, and each time another system call on the files of the store fails: a write, a sync, a read, with
// EIO or ENOSPC, once or from then on. Afterwards everything that was acknowledged must be there, `verify` must find nothing, and no
// error may have been told as damage, for nothing was damaged.
//   npm run syscall-sweep -- [--most 45] [--full] [--seed N]
// Then the same with a copy of the package that acknowledges what could not be committed: it must be caught.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { dice } from '../dist/testing/dice.js';
import { distWith } from './planted-dist.mjs';
import { note, wrongWith } from './power-loss/judge.mjs';

const { values } = parseArgs({
  options: {
    most: { type: 'string', default: '45' },
    full: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

const WORKLOAD = fileURLToPath(new URL('power-loss/workload.mjs', import.meta.url));
const ROUNDS = '3';
/** Where nothing comes to rest any more, the workload ends after this. */
const LONGEST_MS = 20_000;

/** A workload whose calls fail waits most of its time, before it tries again. */
const AT_ONCE = 4;

/** How calls fail. Reads do not meet a full disk. */
const FAULTS = [
  ['pwrite64', 'EIO'],
  ['pwrite64', 'ENOSPC'],
  ['fsync', 'EIO'],
  ['fsync', 'ENOSPC'],
  ['fdatasync', 'EIO'],
  ['ftruncate', 'EIO'],
  ['ftruncate', 'ENOSPC'],
  ['pread64', 'EIO'],
];

/** A commit that fails is acknowledged all the same. */
const LYING = [
  {
    file: 'store/sqlite/writer.js',
    find: "this.#sql.run('COMMIT');",
    replace: "try { this.#sql.run('COMMIT'); } catch { if (this.#sql.inTransaction) this.#sql.run('ROLLBACK'); }",
  },
];

const random = dice(Number(values.seed));
const counts = await countCalls();
const all = FAULTS.flatMap(([call, error]) =>
  Array.from({ length: counts.get(call) ?? 0 }, (_, n) => ({ call, error, from: n + 1, always: false })),
);
const lasting = FAULTS.flatMap(([call, error]) => {
  const count = counts.get(call) ?? 0;
  return count === 0 ? [] : [{ call, error, from: 1 + Math.floor(random() * count), always: true }];
});
// Those that fail until the end take longest.
const chosen = [...lasting, ...(values.full ? all : sample(all, Number(values.most)))];
console.log(
  `${[...counts].map(([call, count]) => `${count} ${call}`).join(', ')} in the workload; ${chosen.length} runs`,
);

let [passed, failed] = [0, 0];
const refusals = new Map();
const sound = distWith();
await runAll(chosen, async (fault) => {
  const wrong = await run(sound.dist, fault);
  if (wrong === undefined) passed += 1;
  else failed += 1;
  if (wrong !== undefined) console.log(`failed: ${nameOf(fault)}: ${wrong}`);
});
console.log(`refused: ${[...refusals].map(([code, count]) => `${count} ${code}`).join(', ') || 'nothing'}`);

const lying = distWith(LYING);
try {
  const syncs = sample(
    all.filter(({ call, error }) => call === 'fsync' && error === 'EIO'),
    30,
  );
  let caught;
  await runAll(syncs, async (fault) => {
    if (caught !== undefined) return;
    const wrong = await run(lying.dist, fault);
    if (wrong !== undefined) caught = wrong;
  });
  if (caught === undefined) failed += 1;
  else passed += 1;
  console.log(
    `${caught === undefined ? 'failed' : 'passed'}: an acknowledged commit that failed is caught (${caught ?? 'it was not'})`,
  );
} finally {
  lying.remove();
}
console.log(`seed ${values.seed}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

/** A few at once. */
async function runAll(faults, one) {
  const waiting = faults.values();
  const next = async () => {
    for (const fault of waiting) await one(fault);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

/** How often the workload makes each call on the files of the store. */
async function countCalls() {
  const folder = newFolder();
  try {
    const trace = join(folder, 'trace');
    await start(distWith().dist, folder, ['-o', trace]);
    const found = new Map();
    for (const [, call] of readFileSync(trace, 'utf8').matchAll(/^(\w+)\(/gm))
      found.set(call, (found.get(call) ?? 0) + 1);
    return found;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What was wrong after a run in which a call failed; undefined where nothing was. */
async function run(dist, { call, error, from, always }) {
  const folder = newFolder();
  try {
    const inject = `inject=${call}:error=${error}:when=${from}${always ? '+' : ''}`;
    const ended = await start(dist, folder, ['-o', '/dev/null', '-e', inject]);
    const acknowledged = new Map();
    note(acknowledged, textOf(folder, 'acknowledged'));
    const codes = textOf(folder, 'refused').split('\n').filter(Boolean);
    for (const code of codes) refusals.set(code, (refusals.get(code) ?? 0) + 1);
    if (ended.status !== 0) return `the workload ended with ${ended.status}: ${ended.stderr.slice(-300)}`;
    if (codes.includes('store_corrupt')) return 'a failing disk was told as damage';
    return await wrongWith(join(folder, 'tasks.db'), acknowledged);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function start(dist, folder, options) {
  const calls = [...new Set(FAULTS.map(([call]) => call))].join();
  const paths = ['', '-wal', '-journal'].flatMap((end) => ['-P', join(folder, `tasks.db${end}`)]);
  const program = [process.execPath, WORKLOAD, dist, folder, ROUNDS, 'full', String(LONGEST_MS)];
  const stdio = ['ignore', 'ignore', 'pipe'];
  const child = spawn('strace', [...paths, '-e', `trace=${calls}`, ...options, ...program], { stdio });
  const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return { status, stderr };
}

function newFolder() {
  return realpathSync(mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-sweep-')));
}

function textOf(folder, name) {
  const path = join(folder, name);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

function sample(list, most) {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, n) => list[Math.floor(((n + random()) * list.length) / most)]);
}

function nameOf({ call, error, from, always }) {
  return `${call} ${from}${always ? ' and all after it' : ''} with ${error}`;
}
