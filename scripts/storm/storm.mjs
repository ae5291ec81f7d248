import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startCluster } from '../../test/postgres/cluster.mjs';
import { Crew } from './crew.mjs';
import { judge } from './judge.mjs';
import { Operator } from './operator.mjs';
import { openPackage } from './store.mjs';
import { openWitness, readWitness } from './witness.mjs';

const WORKERS = 8;
/** Of those, the ones in a pid namespace of their own, where that is asked for. */
const FOREIGN = 2;
const ENQUEUERS = 2;
/** Enqueuers number their tasks from where nobody else does. */
const NUMBERS_EACH = 1_000_000;
/** Where a process can be seen to live it keeps its tasks; from another namespace it is judged by a lease that a busy machine keeps. */
const LEASE = { seen: '1s', judged: '3s' };
const LONGEST_FREEZE_MS = 4_000;
const SERVER_AWAY_MS = 1_500;

/** Runs a storm of so many seconds over a new store, and answers each promise with what was found against it. */
export async function runStorm({ dist, kind, folder, seconds, calmMs, foreign, random }) {
  const cluster = kind === 'postgres' ? await startCluster({ fsync: true }) : undefined;
  try {
    const where = cluster ? cluster.url() : join(folder, 'tasks.db');
    const witness = join(folder, 'witness.log');
    return await new Storm({ dist, kind, where, cluster, witness, calmMs, foreign, random }).run(seconds);
  } finally {
    await cluster?.stop();
  }
}

class Storm {
  #options;
  #random;
  #note;
  #crew;
  #enqueuers = 0;
  #wrong = [];
  #serverKills = 0;
  #underWay = new Set();
  #enqueues = true;

  constructor(options) {
    const { dist, kind, where, witness, random, foreign } = options;
    this.#options = options;
    this.#random = random;
    this.#note = openWitness(witness);
    this.#crew = new Crew({
      note: this.#note,
      random,
      argumentsOf: (name) => ({
        ...{ dist, kind, where, witness },
        leaseFor: foreign ? LEASE.judged : LEASE.seen,
        ...(name.startsWith('enqueuer') && {
          first: ++this.#enqueuers * NUMBERS_EACH,
          seed: Math.floor(random() * 2 ** 31),
        }),
      }),
    });
  }

  async run(seconds) {
    const { opened } = await openPackage(this.#options);
    const holdfast = await opened();
    const operator = new Operator({ ...this.#options, holdfast, note: this.#note });
    await holdfast.setQueueFair('fair', true);
    await holdfast.setQueueOrder('urgent', 'priority');
    try {
      await this.#keepUp();
      await this.#rage(operator, seconds * 1_000);
      this.#enqueues = false;
      await this.#crew.end('enqueuer.mjs');
      await operator.calm();
      const took = await this.#calm(holdfast);
      await this.#crew.end('worker.mjs');
      return await this.#compare({ holdfast, operator, took });
    } finally {
      await this.#crew.abandon();
      await holdfast.close();
    }
  }

  /** Starts what is missing of the crew. */
  async #keepUp() {
    const missing = (script, wanted) => Math.max(0, wanted - this.#crew.all(script).length);
    const foreign = this.#options.foreign
      ? FOREIGN - this.#crew.all('worker.mjs').filter((one) => one.foreign).length
      : 0;
    await Promise.all([
      ...Array.from({ length: missing('worker.mjs', WORKERS) }, (_, i) =>
        this.#crew.start('worker.mjs', { foreign: i < foreign }),
      ),
      ...Array.from({ length: this.#enqueues ? missing('enqueuer.mjs', ENQUEUERS) : 0 }, () =>
        this.#crew.start('enqueuer.mjs'),
      ),
    ]);
  }

  async #rage(operator, ms) {
    const acts = this.#acts(operator);
    const once = acts.map(([, act]) => act);
    const servers = this.#options.cluster ? [ms / 3, (2 * ms) / 3] : [];
    const from = performance.now();
    while (performance.now() - from < ms) {
      if (performance.now() - from > servers[0]) {
        servers.shift();
        await this.#killServer();
      }
      // However short the storm is, each kind of attack is among it.
      const act = once.shift() ?? pickByWeight(acts, this.#random());
      this.#begin(act());
      await delay(50 + this.#random() * 250);
      this.#begin(this.#keepUp());
    }
    await Promise.all(this.#underWay);
  }

  #acts(operator) {
    const [crew, random] = [this.#crew, this.#random];
    return [
      [20, () => crew.kill('worker.mjs')],
      [3, () => crew.kill('enqueuer.mjs')],
      [15, () => crew.freeze('worker.mjs', random() * LONGEST_FREEZE_MS)],
      [8, () => crew.tell('worker.mjs')],
      [6, () => crew.tell('worker.mjs', random() * 500)],
      [35, () => operator.operate()],
      [6, () => operator.command()],
      [4, () => operator.prune()],
    ];
  }

  /** Nothing waits for it but the end of the storm. */
  #begin(act) {
    const done = act.catch((error) => {
      // While the server is away what was asked of it may fail.
      if (!this.#options.cluster || error.code !== 'store_unavailable')
        this.#wrong.push(`${error.code}: ${error.message}`);
    });
    this.#underWay.add(done);
    done.then(() => this.#underWay.delete(done));
  }

  async #killServer() {
    const { cluster } = this.#options;
    await cluster.kill();
    this.#serverKills += 1;
    await delay(this.#random() * SERVER_AWAY_MS);
    await cluster.start();
  }

  /** Until everything has ended, or nothing more comes of it; poison kills workers to the end. */
  async #calm(holdfast) {
    const from = performance.now();
    while (performance.now() - from < this.#options.calmMs) {
      const { scheduled, ready, running } = (await holdfast.counts()).byState;
      if (scheduled + ready + running === 0) break;
      await this.#keepUp();
      await delay(100);
    }
    return performance.now() - from;
  }

  async #compare({ holdfast, operator, took }) {
    const tasks = await everyTask(holdfast);
    const histories = new Map();
    for (const { id, state, executions } of tasks) {
      if (state !== 'succeeded' || executions > 1) histories.set(id, await holdfast.history(id));
    }
    const lines = readWitness(this.#options.witness);
    const checks = judge({ lines, tasks, histories, foreign: this.#options.foreign });
    const { counts } = this.#crew;
    const calm = counts.killed > 0 && counts.stopped > 0 && counts.told > 0;
    checks.push(
      ['the store says of itself that it is sound', await holdfast.store.upkeep.verify()],
      ['no process broke, and each ended when it was told to', this.#crew.wrong],
      ['no command and no call broke', [...operator.wrong, ...this.#wrong]],
      ['it was a storm', calm ? [] : ['Nothing was killed, stopped or told to end.']],
    );
    return { told: this.#told(lines, tasks, operator, took), checks };
  }

  #told(lines, tasks, operator, took) {
    const count = (wanted) => lines.filter(({ what }) => what === wanted).length;
    const { killed, stopped, told, died } = this.#crew.counts;
    const server = this.#options.cluster ? `, the server ${this.#serverKills} times` : '';
    const { operated, commands, pruned } = operator.counts;
    return [
      `${count('acknowledged')} tasks acknowledged, ${count('start')} executions, ${count('end')} ended`,
      `${killed} processes killed${server}, ${stopped} stopped for a while, ${told} told to end, ${died} killed by a task`,
      `${operated} acts of an operator, ${commands} commands, ${pruned} tasks pruned of ${pruned + tasks.length}`,
      `all at rest ${(took / 1_000).toFixed(1)} s after the storm`,
    ].join('; ');
  }
}

function pickByWeight(acts, roll) {
  let left = roll * acts.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, act] of acts) {
    left -= weight;
    if (left < 0) return act;
  }
}

async function everyTask(holdfast) {
  const tasks = [];
  for (let before; ; before = tasks.at(-1).id) {
    const page = await holdfast.list({ limit: 1_000, ...(before !== undefined && { before }) });
    tasks.push(...page);
    if (page.length < 1_000) return tasks;
  }
}
