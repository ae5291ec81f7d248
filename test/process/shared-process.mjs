// Runs commands of the built CLI one after another in this process, each with arguments, a folder, an environment and streams of
// its own. What a command leaves open is reported, because it would keep the command's own process alive.
import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { main } from '../../dist/cli/start.js';

/** The CLI ends its process so long after the end of its command, whatever is open. */
const LINGER_MS = 2_000;

const commands = new AsyncLocalStorage();
let current;

class Kept extends Writable {
  #chunks = [];

  _write(chunk, _, done) {
    this.#chunks.push(chunk);
    done();
  }

  get text() {
    return Buffer.concat(this.#chunks).toString();
  }
}

for (const name of ['stdin', 'stdout', 'stderr']) Object.defineProperty(process, name, { get: () => current[name] });
// A timer of a former command may call it too, and ends nothing.
process.exit = () => commands.getStore()?.exit();
process.on('warning', ({ name, message }) => current?.stderr.write(`(node:${process.pid}) ${name}: ${message}\n`));
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('message', async (command) => process.send(await run(command)));
const listeners = new Map(process.eventNames().map((name) => [name, process.listeners(name)]));
const alwaysOpen = process.getActiveResourcesInfo();
process.send('ready');

async function run({ args, cwd, env }) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  const [stdout, stderr] = [new Kept(), new Kept()];
  await new Promise((exit) => {
    current = { stdin: Readable.from([]), stdout, stderr, exit };
    commands.run(current, () => main(args).then(exit));
  });
  const leftOpen = await leftAfter(LINGER_MS);
  const exit = process.exitCode ?? 0;
  process.exitCode = undefined;
  process.chdir('/');
  removeListeners();
  return { exit, stdout: stdout.text, stderr: stderr.text, leftOpen };
}

/** The kinds of what is still open after so long, besides what always is. */
async function leftAfter(ms) {
  const until = performance.now() + ms;
  for (;;) {
    const left = process.getActiveResourcesInfo();
    for (const kind of alwaysOpen) if (left.includes(kind)) left.splice(left.indexOf(kind), 1);
    if (left.length === 0 || performance.now() > until) return left;
    await delay(2);
  }
}

function removeListeners() {
  for (const name of process.eventNames()) {
    for (const listener of process.listeners(name)) {
      if (!listeners.get(name)?.includes(listener)) process.removeListener(name, listener);
    }
  }
}
