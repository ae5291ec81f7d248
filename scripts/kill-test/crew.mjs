import { setTimeout as delay } from 'node:timers/promises';
import { startWorker } from './worker-process.mjs';

/** Worker processes, of which any may be killed and is then replaced. One that ends by itself is remembered. */
export class Crew {
  #startOne;
  #working = new Map();
  #started = 0;
  killed = new Set();
  /** A sentence for each that ended although nobody killed it, or did not end well when it was told to. */
  unexpected = [];

  /** `argsOf(name)` are the arguments of a worker with that name. */
  constructor(script, argsOf) {
    this.#startOne = (name) => startWorker(script, argsOf(name));
  }

  async start(count) {
    await Promise.all(Array.from({ length: count }, () => this.add()));
  }

  /** Resolves when it works. */
  async add() {
    const name = `worker-${++this.#started}`;
    const worker = this.#startOne(name);
    this.#working.set(name, worker);
    void worker.exited.then(({ code, signal }) => {
      const wasTold = !this.#working.delete(name);
      if (!wasTold) this.unexpected.push(`${name} ended by itself, with ${signal ?? code}.`);
      else if (signal !== 'SIGKILL' && code !== 0)
        this.unexpected.push(`${name} was told to end, and did so with ${code}.`);
    });
    await worker.working;
  }

  /** Kills one of them by chance; resolves when it is gone. */
  async killOne(random) {
    const names = [...this.#working.keys()];
    const name = names[Math.floor(random() * names.length)];
    if (name === undefined) return;
    const { child, exited } = this.#tell(name);
    child.kill('SIGKILL');
    if ((await exited).signal === 'SIGKILL') this.killed.add(name);
  }

  /** Tells all of them to end, and kills those that have not within that time. */
  async end(withinMs) {
    const told = [...this.#working.keys()].map((name) => [name, this.#tell(name)]);
    for (const [, { child }] of told) child.kill('SIGTERM');
    const late = new AbortController();
    const all = Promise.all(told.map(([, { exited }]) => exited));
    const inTime = await Promise.race([all, delay(withinMs, undefined, { signal: late.signal })]);
    late.abort();
    if (inTime) return;
    for (const [name, { child }] of told) {
      if (child.exitCode !== null) continue;
      child.kill('SIGKILL');
      this.unexpected.push(`${name} was told to end, and did not within ${withinMs} ms.`);
    }
    await all;
  }

  #tell(name) {
    const worker = this.#working.get(name);
    this.#working.delete(name);
    return worker;
  }
}
