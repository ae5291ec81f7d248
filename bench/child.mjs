// Programs of this folder, each in a process of its own.
import { fork, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const HERE = fileURLToPath(new URL('.', import.meta.url));

/** No program takes longer than this. */
const LONGEST_MS = 30 * 60_000;

const running = new Set();

/** Runs a program and answers what it printed, one JSON object a line. */
export async function run(file, args) {
  // It leads a group, so that what it starts ends with it.
  const child = spawn(process.execPath, [file, ...args], {
    cwd: HERE,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  // What it started and left behind would keep its output open.
  child.once('exit', () => kill(child));
  const limit = setTimeout(() => kill(child), LONGEST_MS);
  const [printed, complaint] = [collect(child.stdout), collect(child.stderr)];
  const end = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal));
  }).finally(() => {
    clearTimeout(limit);
    running.delete(child);
  });
  if (end !== 0) throw new Error(`${file} ${args[0]} ended with ${end}.\n${complaint()}`);
  return printed()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** One of Holdfast's programs, with its options. */
export function runHoldfast(name, options) {
  return run('holdfast.mjs', [name, JSON.stringify(options)]);
}

/** A system's program, to exchange messages with. `next()` is its next message, `end()` ends it and waits. */
export function talkTo(system, name, options) {
  const child = fork(`${HERE}${system}.mjs`, [name, JSON.stringify(options)], { cwd: HERE });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return {
    next: () =>
      new Promise((resolve, reject) => {
        child.once('message', resolve);
        void ended.then((code) => reject(new Error(`${name} ended with ${code} before it answered.`)));
      }),
    tell: (message) => child.send(message),
    async end() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** Ends everything that runs. */
export function killAll() {
  for (const child of running) kill(child);
}

function kill(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended, and so has everything that it started.
  }
}

function collect(stream) {
  const parts = [];
  stream.setEncoding('utf8').on('data', (part) => parts.push(part));
  return () => parts.join('');
}
