import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A worker that was told to stop has its grace of a second, and so much more to end. */
const STOPS_WITHIN_MS = 15_000;

/** What a process ends with in a pid namespace of its own, where it cannot kill itself. */
export const KILLED_ITSELF = 99;

const pathOf = (script) => fileURLToPath(new URL(script, import.meta.url));

/** The processes of a storm by name. Each that is killed or told to end is replaced; one that ends by itself is remembered. */
export class Crew {
  #note;
  #argumentsOf;
  #random;
  #running = new Map();
  #started = 0;
  #endings = [];
  /** A sentence for each process that did what nobody asked of it. */
  wrong = [];
  counts = { killed: 0, stopped: 0, told: 0, died: 0 };

  /** `argumentsOf(name)` is what a process is told beside its name. */
  constructor({ note, argumentsOf, random }) {
    this.#note = note;
    this.#argumentsOf = argumentsOf;
    this.#random = random;
  }

  /** Starts a process of a script, in a pid namespace of its own if that is asked for; resolves when it works. */
  async start(script, { foreign = false } = {}) {
    const name = `${script.replace('.mjs', '')}-${++this.#started}`;
    const command = [process.execPath, pathOf(script), JSON.stringify({ name, ...this.#argumentsOf(name) })];
    const [program, ...rest] = foreign ? ['unshare', '--pid', '--fork', '--kill-child', ...command] : command;
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
    // What the process itself says; unshare complains of how it was ended.
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (!line.startsWith('unshare: ')) console.error(line);
    });
    const one = { name, script, foreign, child, working: false, told: false, killed: false, stopped: false };
    one.ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
    this.#running.set(name, one);
    this.#endings.push(one.ended.then((ending) => this.#heed(one, ending)));
    await Promise.race([new Promise((resolve) => child.stdout.once('data', resolve)), one.ended]);
    one.working = true;
  }

  /** All that run and were not told to end. */
  all(script) {
    return [...this.#running.values()].filter((one) => one.script === script && !one.told && !one.killed);
  }

  /** Those that work, and are not stopped or on their way out. */
  free(script) {
    return [...this.#running.values()].filter(
      (one) => one.script === script && one.working && !one.told && !one.killed && !one.stopped,
    );
  }

  #draw(script) {
    const free = this.free(script);
    return free[Math.floor(this.#random() * free.length)];
  }

  async kill(script) {
    const one = this.#draw(script);
    if (!one) return;
    one.killed = true;
    this.#note('killing', { process: one.name });
    signal(one, 'SIGKILL');
    await one.ended;
    this.counts.killed += 1;
  }

  /** Stops a process for so long. A child of it that was killed meanwhile is replaced as any other. */
  async freeze(script, ms) {
    const one = this.#draw(script);
    if (!one) return;
    one.stopped = true;
    this.#note('stopping', { process: one.name });
    signal(one, 'SIGSTOP');
    await delay(ms);
    this.#note('continuing', { process: one.name });
    signal(one, 'SIGCONT');
    one.stopped = false;
    this.counts.stopped += 1;
  }

  /** Tells a process to end, as a deploy does; one that loses patience kills it after so long. */
  async tell(script, patience) {
    const one = this.#draw(script);
    if (one) await this.#tell(one, patience);
  }

  async #tell(one, patience) {
    one.told = true;
    this.#note('told', { process: one.name });
    signal(one, 'SIGTERM');
    if (patience !== undefined) {
      await Promise.race([one.ended, delay(patience)]);
      one.killed = true;
      this.#note('killing', { process: one.name });
      signal(one, 'SIGKILL');
    }
    const late = new AbortController();
    const inTime = await Promise.race([one.ended, delay(STOPS_WITHIN_MS, undefined, { signal: late.signal })]);
    late.abort();
    if (!inTime) {
      this.wrong.push(`${one.name} was told to end, and did not within ${STOPS_WITHIN_MS} ms.`);
      one.killed = true;
      signal(one, 'SIGKILL');
      await one.ended;
    }
    this.counts.told += 1;
  }

  /** Tells all of a script to end, and resolves when nothing runs and nothing is started any more. */
  async end(script) {
    await Promise.all(
      [...this.#running.values()].filter((one) => one.script === script && !one.told).map((one) => this.#tell(one)),
    );
  }

  /** Kills what is left, whatever it does. */
  async abandon() {
    for (const one of this.#running.values()) {
      one.killed = true;
      signal(one, 'SIGKILL');
    }
    await Promise.all(this.#endings);
  }

  #heed({ name, killed, told }, { code, signal }) {
    this.#running.delete(name);
    if (killed || (told && code === 0)) return;
    if (signal === 'SIGKILL' || code === KILLED_ITSELF) this.counts.died += 1;
    else this.wrong.push(`${name} ended with ${signal ?? code}${told ? ' when it was told to' : ' by itself'}.`);
  }
}

/** `unshare` waits for the process, which is its only child. */
function signal({ child, foreign }, what) {
  if (!foreign) return child.kill(what);
  try {
    const [inner] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ');
    if (inner) process.kill(Number(inner), what);
    else child.kill('SIGKILL');
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error;
  }
}
