import { readFileSync } from 'node:fs';

/** How a process is looked up: `/proc` of Linux. */
export type ReadProcess = (pid: number, file: 'cmdline' | 'stat') => string;

const SHELLS = /^(?:sh|ash|dash|bash|zsh|busybox)$/;
const PACKAGE_MANAGERS = /\b(npm|npx|yarn|pnpm)\b/;

/**
 * The shell or package manager that is PID 1 of a container and passes no signals on to this process. It started this process itself
 * or through one more shell. Undefined if there is none.
 */
export function holdsBackSignals(parent: number, read: ReadProcess = readProc): string | undefined {
  try {
    if (parent !== 1 && parentOf(read(parent, 'stat')) !== 1) return undefined;
    const words = read(1, 'cmdline').split('\0');
    const command = words[0]?.split('/').at(-1) ?? '';
    return SHELLS.test(command) ? command : PACKAGE_MANAGERS.exec(words.slice(0, 2).join(' '))?.[1];
  } catch {
    // There is no /proc outside of Linux, and it may be unreadable.
    return undefined;
  }
}

/** The name of a process, in parentheses, may contain any characters. */
function parentOf(stat: string): number {
  return Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]);
}

function readProc(pid: number, file: string): string {
  return readFileSync(`/proc/${pid}/${file}`, 'utf8');
}
