import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { QUEUES, SOURCES } from './plans.mjs';

const pick = (random, from) => from[Math.floor(random() * from.length)];

/** Where a task may be when an operator names it. */
const SHORTEST_HELD_MS = 200;

const VERBS = ['cancel', 'hold', 'cancel', 'release', 'retry', 'sources.hold', 'cancel', 'pauseQueue', 'hold'];

/** What an operator does to a store while the storm goes on: by the API, and by the command line. */
export class Operator {
  #holdfast;
  #note;
  #random;
  #main;
  #where;
  #verbs = [...VERBS];
  counts = { operated: 0, commands: 0, pruned: 0 };
  /** A sentence for each command that broke. */
  wrong = [];

  constructor({ holdfast, note, random, dist, where }) {
    this.#holdfast = holdfast;
    this.#note = note;
    this.#random = random;
    this.#main = fileURLToPath(new URL('cli/main.js', dist));
    this.#where = where;
  }

  async operate() {
    const random = this.#random;
    // However short the storm is, each verb is among it.
    const verb = this.#verbs.shift() ?? pick(random, VERBS);
    this.counts.operated += 1;
    const holdfast = this.#holdfast;
    if (verb === 'sources.hold') {
      const source = pick(random, SOURCES);
      return this.#forAWhile(
        () => holdfast.sources.hold(source),
        () => holdfast.sources.release(source),
      );
    }
    if (verb === 'pauseQueue') {
      const queue = pick(random, QUEUES);
      return this.#forAWhile(
        () => holdfast.pauseQueue(queue),
        () => holdfast.resumeQueue(queue),
      );
    }
    const tasks = await holdfast.list({ states: statesFor(verb), limit: 20 });
    const task = pick(random, tasks);
    if (!task) return;
    this.#note(verb, { task: task.id });
    try {
      await holdfast[verb](task.id);
    } catch (error) {
      if (!EXPECTED.has(error.code)) throw error;
    }
  }

  async #forAWhile(shut, open) {
    await shut();
    await new Promise((resolve) => setTimeout(resolve, SHORTEST_HELD_MS + this.#random() * 800));
    await open();
  }

  async prune() {
    this.counts.pruned += await this.#holdfast.prune({ succeeded: '3s', cancelled: '3s', dead: 'never' });
  }

  /** A command of the CLI, which must end with one of its documented exit codes and never break. */
  async command() {
    const [task] = await this.#holdfast.list({ limit: 1 });
    const id = String(Math.ceil(this.#random() * (task?.id ?? 1)));
    const args = pick(this.#random, [
      ['status'],
      ['list'],
      ['list', '--state', 'ready'],
      ['workers'],
      ['queues'],
      ['sources'],
      ['show', id],
      ['explain', id],
      ['hold', id],
      ['release', id],
    ]);
    this.counts.commands += 1;
    const { code, output } = await run([this.#main, ...args, '--store', this.#where]);
    if (code > 9 || /at .*\.js:\d+/.test(output)) {
      this.wrong.push(`holdfast ${args.join(' ')} ended with ${code}: ${output.slice(0, 300)}`);
    }
  }

  /** Nothing is held or paused any more. */
  async calm() {
    for (const source of SOURCES) await this.#holdfast.sources.release(source);
    for (const queue of QUEUES) await this.#holdfast.resumeQueue(queue);
    for (;;) {
      const held = await this.#holdfast.list({ states: ['held'], limit: 1_000 });
      if (held.length === 0) return;
      for (const { id } of held) await this.#holdfast.release(id);
    }
  }
}

const EXPECTED = new Set(['state_conflict', 'task_not_found', 'unique_conflict']);

function statesFor(verb) {
  if (verb === 'release') return ['held'];
  if (verb === 'hold') return ['ready', 'scheduled'];
  if (verb === 'retry') return ['dead', 'scheduled'];
  return ['ready', 'scheduled', 'running'];
}

function run(args) {
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', LANG: 'C.UTF-8' };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env }, (error, stdout, stderr) => {
      resolve({ code: error ? (error.code ?? 128) : 0, output: `${stdout}${stderr}` });
    });
  });
}
