// One scenario: what came of earlier executions, where the last one was killed, what somebody did then, and what must be true of the next.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { callsOf, execute } from './strace.mjs';

const OURS = Buffer.from('ours '.repeat(30_000));

const THINGS = {
  file: {
    make: (path) => writeFileSync(path, OURS),
    isOurs: (path) => lstatSync(path).isFile() && readFileSync(path).equals(OURS),
  },
  folder: {
    make: (path) => {
      mkdirSync(path);
      writeFileSync(join(path, 'leaf'), OURS);
    },
    isOurs: (path) => existsSync(join(path, 'leaf')) && readFileSync(join(path, 'leaf')).equals(OURS),
  },
  link: {
    make: (path) => symlinkSync('../ours', path),
    isOurs: (path) => lstatSync(path).isSymbolicLink() && readlinkSync(path) === '../ours',
  },
};

/** What came of executions before the one that is killed. Each leaves the place as it found it. */
const EARLIER = {
  none: [],
  // Its worker was told to stop before its handler began.
  'handed back': [async () => {}],
  'source missing': [
    async ({ dist, place, execution }) => {
      renameSync(place.from, `${place.from}.away`);
      await execute(dist, place, execution);
      renameSync(`${place.from}.away`, place.from);
    },
  ],
  'destination taken': [
    async ({ dist, place, execution }) => {
      writeFileSync(place.to, 'theirs');
      await execute(dist, place, execution);
      unlinkSync(place.to);
    },
  ],
  'no folder for it': [
    async ({ dist, place, execution }) => {
      const folder = dirname(place.to);
      renameSync(folder, `${folder}.away`);
      await execute(dist, place, execution);
      renameSync(`${folder}.away`, folder);
    },
  ],
};

const SOURCE = {
  'as it was left': () => {},
  removed: ({ from }) => rmSync(from, { recursive: true, force: true }),
  'not mounted': ({ from }) => renameSync(dirname(from), `${dirname(from)}.away`),
};

/** What somebody else puts at the destination, in place of what may be there. Answers whether it did. */
const DESTINATION = {
  'as it was left': () => false,
  'another file': ({ to }) => put(to, () => writeFileSync(to, 'theirs')),
  'a copy of the source': ({ from, to, spare }) => put(to, () => cpSync(spare, to, COPY), from),
  'an empty private folder': ({ to }) => put(to, () => mkdirSync(to, 0o700)),
  'another file with the same inode number': (place) => put(place.to, () => reuse(place)),
};

const COPY = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true };

function put(to, make) {
  rmSync(to, { recursive: true, force: true });
  make();
  return true;
}

/**
 * File systems give the numbers of removed files out again, mostly in the same folder. Where this one does not, it is just another file.
 */
function reuse({ from, to, other, inode }) {
  const folder = other === dirname(dirname(from)) && existsSync(dirname(from)) ? dirname(from) : other;
  const tried = Array.from({ length: 300 }, (_, n) => join(folder, `tried-${n}`));
  for (const path of tried) writeFileSync(path, 'theirs');
  const found = tried.find((path) => lstatSync(path, { bigint: true }).ino === inode);
  linkSync(found ?? tried[0], to);
  for (const path of tried) unlinkSync(path);
}

const PLACES = [
  ['file', 'one'],
  ['file', 'two'],
  ['folder', 'one'],
  ['link', 'one'],
  ['link', 'two'],
];

/** All scenarios. `killed` is the call before which the last execution was killed; or it never began, or was never killed. */
export async function allScenarios(dist, atOnce) {
  const scenarios = [];
  const waiting = PLACES.flatMap((place) => Object.keys(EARLIER).map((earlier) => [...place, earlier])).values();
  const next = async () => {
    for (const [thing, device, earlier] of waiting) {
      const calls = await recorded(dist, thing, device, earlier);
      for (const killed of ['before it began', ...calls, 'never']) {
        for (const source of Object.keys(SOURCE)) {
          for (const destination of Object.keys(DESTINATION)) {
            scenarios.push({ thing, device, earlier, killed, source, destination });
          }
        }
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  return scenarios.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

async function recorded(dist, thing, device, earlier) {
  const place = placeFor(thing, device);
  try {
    const execution = await begin(dist, place, earlier);
    return await callsOf(dist, place, execution);
  } finally {
    remove(place);
  }
}

export function nameOf({ thing, device, earlier, killed, source, destination }) {
  const where = typeof killed === 'string' ? killed : `before ${killed.name} number ${killed.number}`;
  return `${thing} on ${device} device(s); earlier: ${earlier}; killed ${where}; then source ${source}, destination ${destination}`;
}

/** Plays it, and answers what is wrong with what was done and said: nothing, if all is well. */
export async function play(dist, scenario) {
  const { thing, device, earlier, killed, source, destination } = scenario;
  const place = placeFor(thing, device);
  try {
    const execution = await begin(dist, place, earlier);
    if (killed !== 'before it began') {
      await execute(dist, place, execution, typeof killed === 'string' ? undefined : killed);
    }
    const isOurs = (path) => isThere(path) && THINGS[thing].isOurs(path);
    const wasAt = { from: isOurs(place.from), to: isOurs(place.to) };
    SOURCE[source](place);
    const put = DESTINATION[destination](place);
    const theirs = put ? lstatSync(place.to, { bigint: true }).ino : undefined;

    const { result, error } = await execute(dist, place, execution + 1);
    return judge({ place, isOurs, wasAt, source, theirs, result, error });
  } finally {
    remove(place);
  }
}

function judge({ place, isOurs, wasAt, source, theirs, result, error }) {
  const wrong = [];
  const target = isThere(place.to) ? lstatSync(place.to, { bigint: true }).ino : undefined;
  const left = existsSync(dirname(place.to)) ? readdirSync(dirname(place.to)) : [];
  if (theirs !== undefined && target !== theirs) wrong.push('what somebody else put there is gone');
  if (result && (theirs !== undefined || !isOurs(place.to))) wrong.push(`it says ${result.how}, and did not move it`);
  if (result && isOurs(place.from)) wrong.push('it says that it moved, and the source is still there');
  if (result && left.some((name) => name !== 'moved')) wrong.push(`it left ${left} behind`);
  const kept = source === 'as it was left' || (wasAt.to && theirs === undefined);
  const away = join(`${dirname(place.from)}.away`, 'thing');
  const whole = isOurs(place.from) || isOurs(place.to) || isOurs(away);
  if ((kept || source === 'not mounted') && (wasAt.from || theirs === undefined) && !whole)
    wrong.push('the source is lost');
  const mustMove = theirs === undefined && (wasAt.to || (wasAt.from && source === 'as it was left'));
  if (mustMove && !result)
    wrong.push(`it could have gone on, and says ${error?.code ?? error?.reason}: ${error?.message}`);
  if (error && !/^(ENOENT|EEXIST|ENOTEMPTY)$/.test(error.code ?? '') && !/^fs\./.test(error.reason ?? '')) {
    wrong.push(`it failed with ${JSON.stringify(error)}`);
  }
  return wrong;
}

/** The earlier executions. Answers the number of the next one. */
async function begin(dist, place, earlier) {
  let execution = 1;
  for (const act of EARLIER[earlier]) {
    await act({ dist, place, execution });
    execution += 1;
  }
  return execution;
}

/** /dev/shm is the other device. */
function placeFor(thing, device) {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-sweep-'));
  const other = device === 'two' ? mkdtempSync('/dev/shm/holdfast-sweep-') : root;
  const folders = [join(root, 'from'), join(other, 'to')];
  for (const folder of folders) mkdirSync(folder);
  const place = { root, other, folders, from: join(folders[0], 'thing'), to: join(folders[1], 'moved') };
  THINGS[thing].make(place.from);
  const spare = join(other, 'spare');
  execFileSync('cp', ['-a', place.from, spare]);
  return { ...place, spare, checkpoint: join(root, 'checkpoint'), inode: lstatSync(place.from, { bigint: true }).ino };
}

function remove({ root, other }) {
  for (const folder of [root, other]) rmSync(folder, { recursive: true, force: true });
}

function isThere(path) {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
