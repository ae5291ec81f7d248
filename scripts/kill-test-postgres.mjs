// Kills workers, and the whole server, with SIGKILL at random moments while tasks are enqueued, executed and settled on
// PostgreSQL, and checks what a witness file outside of the database says against what the database says.
//   npm run kill-test:postgres -- [--tasks 20000] [--kills 12] [--server-kills 3] [--seed N]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openHoldfast } from '../dist/index.js';
import { postgres } from '../dist/store/postgres/index.js';
import { startCluster } from '../test/postgres/cluster.mjs';
import { Crew } from './kill-test/crew.mjs';
import { dice } from './kill-test/dice.mjs';
import { drawInput, taskThatNotes } from './kill-test/handlers.mjs';
import { judge } from './kill-test/judge.mjs';
import { noteAnswers, openWitness, readWitness } from './kill-test/witness.mjs';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '20000' },
    kills: { type: 'string', default: '12' },
    'server-kills': { type: 'string', default: '3' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    worker: { type: 'string' },
    url: { type: 'string' },
    witness: { type: 'string' },
  },
});

const WORKERS = 4;
const CONCURRENCY = 10;
/** Tasks that are enqueued at once, and that wait at most. */
const BATCH = 50;
const BACKLOG = 500;
/** After a kill was asked for it falls within this. */
const KILL_WITHIN_MS = 150;
const SERVER_AWAY_MS = 2_500;
/** All of it is over by then, or has failed. */
const LONGEST_MS = 300_000;
const SHOWN = 10;

/** A worker process: works until it is told to end. */
async function work(name, url, witness) {
  const note = openWitness(witness);
  const holdfast = await openHoldfast({ store: postgres(url), tasks: [taskThatNotes(note)], workerName: name });
  const worker = holdfast.work({ concurrency: CONCURRENCY, onEvent: noteAnswers(note) });
  process.once('SIGTERM', () => void worker.stop());
  process.stdout.write('working\n');
  await worker.finished;
  await holdfast.close();
}

/** Where in the enqueueing each kill falls. */
function drawKills({ tasks, kills, serverKills }, random) {
  const draw = (count, what) =>
    Array.from({ length: count }, () => ({ what, at: Math.floor(random() * Math.max(1, tasks - BATCH)) }));
  return [...draw(kills, 'worker'), ...draw(serverKills, 'server')].sort((a, b) => a.at - b.at);
}

async function campaign(asked, random) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'));
  const witness = join(folder, 'witness.log');
  const cluster = await startCluster({ fsync: true });
  const crew = new Crew(fileURLToPath(import.meta.url), (name) => [
    ...['--worker', name],
    ...['--url', cluster.url()],
    ...['--witness', witness],
  ]);
  try {
    const holdfast = await openHoldfast({ store: postgres(cluster.url()), tasks: [taskThatNotes(() => {})] });
    await crew.start(WORKERS);
    const kills = new Kills(drawKills(asked, random), { cluster, crew, random });
    await enqueueAll(holdfast, asked.tasks, openWitness(witness), kills, random);
    const inTime = await allEnded(holdfast);
    await crew.end(30_000);
    const found = await compare(holdfast, readWitness(witness), crew);
    await holdfast.close();
    return { ...found, inTime, serverKills: kills.serverKills, crew };
  } finally {
    await crew.end(0);
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
}

/** Does what was drawn, one after the other, as the enqueueing comes by. */
class Kills {
  #drawn;
  #around;
  #under = Promise.resolve();
  serverKills = 0;

  constructor(drawn, around) {
    this.#drawn = drawn;
    this.#around = around;
  }

  /** Resolves when the one before is done: meanwhile the enqueueing goes on. */
  async comeBy(number) {
    while (this.#drawn[0]?.at <= number) {
      await this.#under;
      this.#under = this.#kill(this.#drawn.shift().what);
    }
  }

  done() {
    return this.#under;
  }

  async #kill(what) {
    const { cluster, crew, random } = this.#around;
    await delay(random() * KILL_WITHIN_MS);
    if (what === 'server') {
      await cluster.kill();
      this.serverKills += 1;
      await delay(random() * SERVER_AWAY_MS);
      await cluster.start();
    } else {
      await crew.killOne(random);
      await crew.add();
    }
  }
}

async function enqueueAll(holdfast, tasks, note, kills, random) {
  for (let from = 0; from < tasks; from += BATCH) {
    await kills.comeBy(from);
    const numbers = Array.from({ length: Math.min(BATCH, tasks - from) }, (_, i) => from + i);
    await Promise.all(
      numbers.map(async (number) => {
        note('asked', 0, number);
        const { id } = await holdfast.enqueue('work', drawInput(number, random));
        note('acknowledged', id, number);
      }),
    );
    await waitFor(async () => (await holdfast.counts()).byState.ready < BACKLOG);
  }
  await kills.done();
}

/** Whether all came to an end in time. */
function allEnded(holdfast) {
  return waitFor(async () => {
    const { scheduled, ready, running } = (await holdfast.counts()).byState;
    return scheduled + ready + running === 0;
  });
}

async function waitFor(condition) {
  while (performance.now() < LONGEST_MS) {
    if (await condition()) return true;
    await delay(20);
  }
  return false;
}

async function compare(holdfast, lines, crew) {
  const tasks = await everyTask(holdfast);
  const eventful = tasks.filter(({ state, executions }) => state !== 'succeeded' || executions > 1);
  const histories = new Map();
  for (const { id } of eventful) histories.set(id, await holdfast.history(id));
  const checks = judge({ lines, tasks, histories, killed: crew.killed });
  const { byState } = await holdfast.counts();
  return { checks, broken: await holdfast.store.upkeep.verify(), byState, tasks, lines };
}

async function everyTask(holdfast) {
  const tasks = [];
  for (let before; ; before = tasks.at(-1).id) {
    const page = await holdfast.list({ limit: 1_000, ...(before !== undefined && { before }) });
    tasks.push(...page);
    if (page.length < 1_000) return tasks;
  }
}

function told({ lines, tasks, byState, serverKills, crew }) {
  const count = (wanted) => lines.filter(({ what }) => what === wanted).length;
  const states = Object.entries(byState).filter(([, number]) => number > 0);
  return (
    `${crew.killed.size} workers and ${serverKills} times the server killed (seed ${values.seed}): ` +
    `${tasks.length} tasks, ${count('start')} starts, ${count('answered')} answered; ` +
    states.map(([state, number]) => `${number} ${state}`).join(', ')
  );
}

if (values.worker) {
  await work(values.worker, values.url, values.witness);
} else {
  const asked = {
    tasks: Number(values.tasks),
    kills: Number(values.kills),
    serverKills: Number(values['server-kills']),
  };
  const result = await campaign(asked, dice(Number(values.seed)));
  console.log(told(result));
  const { checks, broken, inTime, crew, serverKills } = result;
  const missed = crew.killed.size < asked.kills || serverKills < asked.serverKills;
  checks.push(
    ['the store says of itself that it is sound', broken],
    ['no worker ended that nobody killed', crew.unexpected],
    ['it was over in time', inTime ? [] : [`It was not within ${LONGEST_MS} ms.`]],
    ['every kill hit what it was meant for', missed ? ['Some hit nothing.'] : []],
  );
  for (const [promise, violations] of checks) {
    console.log(`${violations.length === 0 ? 'passed' : 'FAILED'}: ${promise}`);
    for (const violation of violations.slice(0, SHOWN)) console.log(`  ${violation}`);
    if (violations.length > SHOWN) console.log(`  and ${violations.length - SHOWN} more`);
  }
  const failed = checks.filter(([, violations]) => violations.length > 0).length;
  console.log(`It took ${(performance.now() / 1_000).toFixed(1)} s.`);
  console.log(`${checks.length - failed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}
