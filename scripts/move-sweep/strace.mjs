// Runs one execution of `move` in a process of its own, kills it before one of its system calls, and says which calls there are.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const DRIVER = fileURLToPath(new URL('../../test/process/move-driver.mjs', import.meta.url));

/** Every call by which a move changes something or makes it durable. `?`: not every processor has them all. */
const CALLS = [
  ...['link', 'linkat', 'symlink', 'symlinkat', 'unlink', 'unlinkat', 'rename', 'renameat', 'renameat2'],
  ...['mkdir', 'mkdirat', 'rmdir', 'open', 'openat', 'write', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate'],
  ...['chmod', 'fchmod', 'fchmodat', 'chown', 'fchown', 'fchownat', 'lchown', 'utimensat', 'futimesat'],
];

/** What it answered, or undefined where it was killed. */
export async function execute(dist, place, execution, kill) {
  const { said, stderr } = await run(dist, place, execution, kill && ['-o', '/dev/null', '-e', injected(kill)]);
  if (said !== '') return JSON.parse(said);
  if (kill) return undefined;
  throw new Error(`The execution said nothing: ${stderr}`);
}

function injected({ name, number }) {
  return `inject=${name}:signal=SIGKILL:when=${number}`;
}

/** The changing calls of an execution that nobody disturbs. */
export async function callsOf(dist, place, execution) {
  const log = join(place.root, 'calls');
  await run(dist, place, execution, ['-o', log]);
  const lines = readFileSync(log, 'utf8').split('\n');
  rmSync(log);
  // One thread does all file work. strace counts the calls of each thread apart, and `cp` is another process.
  const parsed = lines.flatMap((line) => {
    const [, thread, name] = /^(\d+) +(\w+)\(/.exec(line) ?? [];
    return CALLS.includes(name) ? [{ thread, name, line }] : [];
  });
  const counts = new Map();
  return parsed.flatMap(({ thread, name, line }) => {
    if (thread !== parsed[0].thread) return [];
    const number = (counts.get(name) ?? 0) + 1;
    counts.set(name, number);
    return name.startsWith('open') && !line.includes('O_CREAT') ? [] : [{ name, number }];
  });
}

async function run(dist, { from, to, folders, checkpoint }, execution, strace) {
  const command = [process.execPath, DRIVER, from, to, String(execution), `${dist}handlers/move.js`];
  const temporaries = Array.from({ length: execution }, (_, n) => join(dirname(to), `.moved.holdfast-7-${n + 1}`));
  const paths = [...folders, from, to, ...temporaries.flatMap((path) => [path, `${path}.link`])];
  const trace = `trace=${CALLS.map((name) => `?${name}`).join()}`;
  const traced = ['strace', '-f', '-y', '-qq', ...paths.flatMap((path) => ['-P', path]), '-e', trace];
  const [program, ...args] = strace ? [...traced, ...strace, ...command] : command;
  const child = spawn(program, args, {
    env: { ...process.env, UV_THREADPOOL_SIZE: '1', CHECKPOINT: checkpoint },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [said, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { said, stderr };
}
