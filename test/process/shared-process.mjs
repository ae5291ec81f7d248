// Runs commands of the built CLI one after another in this process, each with arguments, a folder, an environment and streams of
// its own. What a command leaves open is reported, because it would keep the command's own process alive.
//   node shared-process.mjs [WORDS]: with words its streams are the terminal, and these are printed after each command.
import { AsyncLocalStorage } from 'node:async_hooks';
import { openSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { ReadStream, WriteStream } from 'node:tty';
import { main } from '../../dist/cli/start.js';

/** The CLI ends its process so long after the end of its command, whatever is open. */
const LINGER_MS = 2_000;

const [commandEnded] = process.argv.slice(2);
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
  const streams = commandEnded === undefined ? kept() : ofTerminal();
  await new Promise((exit) => {
    current = { ...streams, exit };
    commands.run(current, () => main(args).then(exit));
  });
  if (commandEnded !== undefined) {
    streams.stdout.write(commandEnded);
    for (const stream of Object.values(streams)) stream.destroy();
  }
  const leftOpen = await leftAfter(LINGER_MS);
  const exit = process.exitCode ?? 0;
  process.exitCode = undefined;
  process.chdir('/');
  removeListeners();
  return { exit, stdout: streams.stdout.text ?? '', stderr: streams.stderr.text ?? '', leftOpen };
}

function kept() {
  return { stdin: Readable.from([]), stdout: new Kept(), stderr: new Kept() };
}

function ofTerminal() {
  const open = (mode) => openSync('/dev/tty', mode);
  const stdin = new ReadStream(open('r'));
  stdin.on('resume', () => process.send('reads'));
  return { stdin, stdout: new WriteStream(open('w')), stderr: new WriteStream(open('w')) };
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
