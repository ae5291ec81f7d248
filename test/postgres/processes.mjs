// Ends servers whole: a PostgreSQL backend leads a process group of its own, so a signal to the server's group misses it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const GONE_WITHIN_MS = 10_000;

/** Kills a process and its children at once, and resolves when none of them runs any more. */
export async function killTree(pid) {
  // Stopped first, so that it starts no child that is not in the list.
  if (!signal(pid, 'SIGSTOP')) return;
  const tree = [pid, ...childrenOf(pid)];
  for (const one of tree) signal(one, 'SIGKILL');
  await gone(tree);
}

/** Asks a process to end, and kills it and its children when it does not within five seconds. */
export async function quitOrKill(pid) {
  const tree = [pid, ...childrenOf(pid)];
  if (!signal(pid, 'SIGQUIT')) return;
  await gone(tree, 5_000).catch(() => killTree(pid));
}

/** Whether it runs: one that has ended, and was not asked for its status yet, does not. */
export function isRunning(pid) {
  return processes().some((one) => one.pid === pid);
}

/** Those that a process started and that still run. */
export function childrenOf(pid) {
  return processes()
    .filter(({ parent }) => parent === pid)
    .map((child) => child.pid);
}

async function gone(pids, withinMs = GONE_WITHIN_MS) {
  const until = performance.now() + withinMs;
  for (;;) {
    const running = new Set(processes().map(({ pid }) => pid));
    const left = pids.filter((pid) => running.has(pid));
    if (left.length === 0) return;
    if (performance.now() > until) throw new Error(`These processes do not end: ${left.join(', ')}.`);
    await delay(5);
  }
}

function processes() {
  const rows = process.platform === 'linux' ? rowsOfProc() : rowsOfPs();
  return rows.filter(({ state }) => !state.startsWith('Z'));
}

function rowsOfProc() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        // The name, in brackets, may hold spaces and brackets itself.
        const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return [{ pid: Number(pid), parent: Number(parent), state }];
      } catch {
        // It ended between the listing and the look.
        return [];
      }
    });
}

function rowsOfPs() {
  const listing = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' });
  return listing
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parent, state = ''] = line.trim().split(/\s+/);
      return { pid: Number(pid), parent: Number(parent), state };
    });
}

function signal(pid, name) {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
    return false;
  }
}
