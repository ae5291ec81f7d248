// Records what a workload writes to its files, and replays it up to random moments, as a disk may hold it when the power goes: what
// was synced is there, and what was written since is dropped, torn or garbage, sector by sector. The library opens each image:
// every task that was acknowledged by then must be there, in the state that was acknowledged, and `verify` must find nothing.
//   npm run power-loss -- [--images 500] [--full] [--seed N]
// Then the same with a disk that ignores two syncs, and with a store that does not sync each commit: both must lose something.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { dice } from '../dist/testing/dice.js';
import { Disk, MODES } from './power-loss/disk.mjs';
import { note, wrongWith } from './power-loss/judge.mjs';
import { record } from './power-loss/recording.mjs';

const { values } = parseArgs({
  options: {
    images: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '90' },
    full: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

const images = values.full ? 10_000 : Number(values.images);
const seed = Number(values.seed);
const dist = new URL('../dist/', import.meta.url).href;
/** Images need no disk of their own. */
const fast = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-power-loss-')));
let passed = 0;
let failed = 0;

try {
  const events = await recorded('full');
  const found = await replay(events, images, {});
  report(`${images} images of a sound disk`, found.length === 0, found);
  const slice = Math.min(images, 300);
  const ignoring = await replay(events, slice, { ignoreSyncs: 2, until: 1 });
  report('a disk that ignores two syncs is caught', ignoring.length > 0, ignoring);
  const lazy = await replay(await recorded('process'), slice, { until: 1 });
  report('a store that does not sync each commit is caught', lazy.length > 0, lazy);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`seed ${seed}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

async function recorded(durability) {
  const own = join(folder, durability);
  mkdirSync(own);
  const events = await record({ dist, folder: own, rounds: values.rounds, durability });
  const checkpoints = events.filter(({ kind, file }) => kind === 'sync' && file === 'tasks.db').length;
  const count = (kind) => events.filter((event) => event.kind === kind).length;
  console.log(
    `recorded with durability ${durability}: ${count('write')} writes, ${count('sync')} syncs, ${checkpoints} checkpoints, ` +
      `${count('acknowledged')} acknowledgements`,
  );
  return events;
}

function report(what, isGood, found) {
  if (isGood) passed += 1;
  else failed += 1;
  console.log(`${isGood ? 'passed' : 'failed'}: ${what}`);
  for (const line of found.slice(0, 3)) console.log(`  ${line}`);
}

/** What was wrong with images at random moments; it ends early when `until` of them were. */
async function replay(events, count, { ignoreSyncs = 0, until = Number.POSITIVE_INFINITY }) {
  const random = dice(seed + ignoreSyncs);
  const moments = Array.from({ length: count }, () => Math.floor(random() * events.length)).sort((a, b) => a - b);
  const disk = new Disk({ ignoreSyncs });
  const acknowledged = new Map();
  const found = [];
  let at = 0;
  for (const [n, moment] of moments.entries()) {
    for (; at <= moment; at += 1) {
      if (events[at].kind === 'acknowledged') note(acknowledged, events[at].text);
      else disk.apply(events[at]);
    }
    // A planted bug must lose what was acknowledged; that it breaks the very making of the file would prove less.
    if (acknowledged.size === 0 && until < count) continue;
    const mode = MODES[n % MODES.length];
    const wrong = await judge(disk.image(mode, random), acknowledged);
    if (wrong !== undefined) found.push(`after event ${moment} of ${events.length}, ${mode}: ${wrong}`);
    if (found.length >= until) break;
  }
  return found;
}

/** What is wrong with an image; undefined where nothing is. */
async function judge(image, acknowledged) {
  const own = mkdtempSync(join(fast, 'holdfast-image-'));
  try {
    for (const [name, bytes] of image) writeFileSync(join(own, name), bytes);
    return await wrongWith(join(own, 'tasks.db'), acknowledged);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}
