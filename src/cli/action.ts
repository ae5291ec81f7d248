import type { Command } from 'commander';
import { Cli, type GlobalFlags } from './cli.ts';
import { problemOf } from './problem.ts';
import { report } from './report.ts';

/** The flags that every command has. */
export const GLOBAL_FLAGS: readonly {
  readonly flags: string;
  readonly attribute: keyof GlobalFlags;
  readonly help: string;
}[] = [
  { flags: '-s, --store <store>', attribute: 'store', help: 'the store: a path, or postgres://… (HOLDFAST_STORE)' },
  {
    flags: '-c, --config <file>',
    attribute: 'config',
    help: 'the policies: holdfast.yaml or .json (default: the one here, then your own)',
  },
  { flags: '--json', attribute: 'json', help: 'one JSON document on stdout' },
  { flags: '-q, --quiet', attribute: 'quiet', help: 'no progress and no hints' },
  { flags: '-v, --verbose', attribute: 'verbose', help: 'say more; twice: for a bug report' },
  { flags: '--no-color', attribute: 'color', help: 'no colours (NO_COLOR)' },
  { flags: '--no-input', attribute: 'input', help: 'never ask' },
  { flags: '-y, --yes', attribute: 'yes', help: 'answer yes to all questions' },
];

/** What a command does, once its flags are read. Its answer is the exit code. */
export type Action<Flags> = (cli: Cli, args: readonly string[], flags: Flags) => Promise<number>;

/** Gives a command its action: variadic or not, its arguments come as one list. */
export function act<Flags extends object>(command: Command, action: Action<Flags>): void {
  command.action(async () => {
    const cli = new Cli(globalFlagsOf(command));
    try {
      process.exitCode = await action(cli, command.args, command.opts<Flags>());
    } catch (error) {
      report(problemOf(error), cli.terminal);
    }
  });
}

/** The flags that are shared by all commands, wherever they were written: before a command's name or after it. */
function globalFlagsOf(command: Command): GlobalFlags {
  const flags: Record<string, unknown> = {};
  for (const level of levelsOf(command)) {
    for (const { attribute } of GLOBAL_FLAGS) {
      if (level.getOptionValueSource(attribute) === 'cli') {
        const value: unknown = level.getOptionValue(attribute);
        flags[attribute] = attribute === 'verbose' ? Number(flags.verbose ?? 0) + Number(value) : value;
      }
    }
  }
  return flags;
}

/** The program, its command, and the command's own. */
function levelsOf(command: Command): Command[] {
  return command.parent ? [...levelsOf(command.parent), command] : [command];
}
