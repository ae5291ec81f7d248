import type { Command } from 'commander';
import { knownValues } from '../documents/completion.ts';
import { FILTER_KEYS } from '../filter.ts';
import { Cli } from './cli.ts';
import { withStore } from './opening/open-store.ts';
import { argumentsOf, commandNames, flagsAmong, programFor } from './program.ts';

/** The words that may stand at the end of a command line, for a shell. Whatever goes wrong, there are none. */
export async function complete(shell: string, line: string): Promise<string[]> {
  try {
    const words = line.trimStart().split(/\s+/).slice(1);
    const last = words.at(-1) ?? '';
    const found = (await candidates(words)).filter((word) => word.startsWith(last));
    // Bash takes a colon for the end of a word.
    const kept = shell === 'bash' ? last.lastIndexOf(':') + 1 : 0;
    return [...new Set(found)].map((word) => word.slice(kept));
  } catch {
    return [];
  }
}

async function candidates(words: readonly string[]): Promise<string[]> {
  const [name = '', ...rest] = words;
  const last = rest.at(-1);
  if (last === undefined || name.startsWith('-')) return commandNames();
  const program = await programFor([name], () => {});
  const command = program.commands.find((one) => one.name() === name || one.aliases().includes(name));
  if (!command) return [];
  const subcommand = command.commands.find((one) => one.name() === rest[0]);
  const called = subcommand && rest.length > 1 ? subcommand : command;
  if (last.startsWith('-')) return called.options.map(({ long }) => long ?? '');
  const before = rest.at(-2) ?? '';
  const names = rest.length === 1 ? command.commands.map((one) => one.name()) : [];
  return [...names, ...(await fromStore(words, called, name, before, last))];
}

/** Names and numbers that the store knows. */
async function fromStore(
  words: readonly string[],
  command: Command,
  name: string,
  flag: string,
  last: string,
): Promise<string[]> {
  const usage = `${argumentsOf(name)} ${command.usage()}`;
  const key = /^(-?\w+):/.exec(last)?.[1];
  const kind = key?.replace('-', '') ?? (flag.startsWith('--') ? flag.slice(2) : KINDS[name]);
  if (key === undefined && kind === undefined) {
    const keys = usage.includes('FILTER') ? FILTER_KEYS.map((each) => `${each}:`) : [];
    return [...keys, ...(/\bID\b/.test(usage) ? await values(words, 'id') : [])];
  }
  const word = key === undefined ? last : last.slice(key.length + 1);
  const found = kind === undefined ? [] : await values(words, kind, word);
  return key === undefined ? found : found.map((value) => `${key}:${value}`);
}

/** What the names after these commands are. */
const KINDS: Readonly<Record<string, string | undefined>> = {
  queues: 'queue',
  sources: 'source',
  schedules: 'schedule',
  workers: 'worker',
  redrives: 'redrive',
};

async function values(words: readonly string[], kind: string, word = ''): Promise<string[]> {
  const at = words.findIndex((word) => word === '-s' || word === '--store');
  const store = at < 0 ? undefined : words[at + 1];
  const cli = new Cli({ ...flagsAmong(words), ...(store !== undefined && { store }) });
  return withStore(cli, {}, (holdfast) => knownValues(holdfast, kind, word));
}
