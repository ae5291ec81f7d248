import { readFileSync } from 'node:fs';

/** How a process is looked up: `/proc` of Linux. */
export type ReadProcess = (pid: number, file: 'cmdline' | 'stat') => string;

const SHELLS = /^(?:sh|ash|dash|bash|zsh|busybox)$/;
const PACKAGE_MANAGERS = /\b(npm|npx|yarn|pnpm)\b/;

/**
 * What stands between the container and this process and passes no signals on: a shell or package manager that is PID 1 and started
 * it, itself or through one shell more. Undefined where there is none.
 */
export function holdsBackSignals(parent: number, read: ReadProcess = readProc): string | undefined {
  try {
    if (parent !== 1 && parentOf(read(parent, 'stat')) !== 1) return undefined;
    const words = read(1, 'cmdline').split('\0');
    const command = words[0]?.split('/').at(-1) ?? '';
    return SHELLS.test(command) ? command : PACKAGE_MANAGERS.exec(words.slice(0, 2).join(' '))?.[1];
  } catch {
    // No /proc, as outside of Linux, or one that may not be read.
    return undefined;
  }
}

/** The name of a process, in parentheses, may hold anything. */
function parentOf(stat: string): number {
  return Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]);
}

function readProc(pid: number, file: string): string {
  return readFileSync(`/proc/${pid}/${file}`, 'utf8');
}
