import { nearest } from '../nearest.ts';

export { nearest } from '../nearest.ts';

/** Words that people type for a command with another name, if the letters are too different for a suggestion. */
const INTENTS: readonly (readonly [words: string, meant: string])[] = [
  ['restart rerun redo requeue', 'retry (due now; a new round if it had ended)'],
  ['replay', 'redrive (many ended tasks), or retry (some)'],
  ['rm remove delete del', 'cancel (a task that waits or runs ends; its history stays)'],
  ['kill abort', 'cancel'],
  ['stop', 'cancel (for one task), or hold (to put it aside)'],
  ['pause', 'hold (tasks), sources hold, or queues pause'],
  ['suspend stash', 'hold'],
  ['unpause', 'release (tasks), sources release, or queues resume'],
  ['unhold', 'release'],
  ['continue', 'resume (work it here), or release (after hold)'],
  ['start work', 'worker (work everything), or resume (work some tasks here)'],
  ['daemon serve', 'worker'],
  ['ps running', 'list state:running'],
  ['dead', 'list state:dead'],
  ['jobs tasks', 'list'],
  ['queue', 'list, or queues'],
  ['connectors connector', 'sources'],
  ['groups group errors issues problems', 'failures (groups of alike failures)'],
  ['info inspect describe history', 'show'],
  ['why', 'explain'],
  ['policy', 'policies'],
  ['config configuration', 'policies (how failures are answered), or db (which store is used)'],
  ['validate', 'policies validate'],
  ['check', 'policies validate'],
  ['prune clean vacuum', 'db prune'],
  ['log output', 'logs'],
  ['tail', 'events -f, or logs ID -f'],
  ['exec', 'run -- CMD…'],
  ['add submit push', 'enqueue TYPE JSON (for a program of yours), or run -- CMD…'],
  ['export dump', 'list --all --json, or db backup'],
  ['backup restore', 'db backup, or db restore'],
  ['dashboard web', 'ui'],
  ['alerts health monitor', 'status --check'],
  ['ops operations', 'redrives'],
  ['curl fetch request', 'http METHOD URL'],
  ['post webhook', 'http POST URL'],
  ['load bring', 'import'],
  ['move rename', 'mv'],
  ['answer decide fix', 'resolve'],
  ['follow', 'events -f (what happens), logs ID -f (what it prints), or wait (its end)'],
];

/** Flags of other tools. */
const FLAGS: readonly (readonly [words: string, meant: string])[] = [
  ['--retry --retries --max-attempts --max-retries --tries', '--attempts, which counts the first attempt too'],
  ['--delay --in --after --wait', '--at, such as --at +5m'],
  ['--rate --rps', '--pace, such as --pace 10/s'],
];
const FILTER_FLAGS: typeof FLAGS = [
  ['--state --states --status', 'a term of the filter, such as state:dead'],
  ['--type --types', 'a term of the filter, such as type:file_move'],
  ['--reason --reasons', 'a term of the filter, such as reason:fs.locked'],
];

/** The flag that a person may have meant by an unknown one, if its letters are too different for a suggestion. */
export function flagLike(flag: string, takesFilter: boolean): string | undefined {
  const known = takesFilter ? [...FLAGS, ...FILTER_FLAGS] : FLAGS;
  return known.find(([words]) => words.split(' ').includes(flag))?.[1];
}

/** The command that a person may have meant by an unknown word: by its meaning first, then by its letters. */
export function commandsLike(word: string, commands: readonly string[]): string[] {
  const intent = INTENTS.find(([words]) => words.split(' ').includes(word.toLowerCase()));
  return intent ? [intent[1]] : nearest(word, commands);
}
