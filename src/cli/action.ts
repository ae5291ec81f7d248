import type { Command } from 'commander';
import { Cli } from './cli.ts';
import { EXIT } from './exit-codes.ts';
import { GLOBAL_FLAGS, type GlobalFlags } from './flags/global-flags.ts';
import { problemOf } from './problem.ts';
import { report } from './report.ts';

/** The exit code of a command. None means 0. */
// biome-ignore lint/suspicious/noConfusingVoidType: a command that is always done returns nothing
export type Exit = number | void;

/** What a command does, once its flags are read. */
export type Action<Flags> = (cli: Cli, args: readonly string[], flags: Flags) => Promise<Exit>;

/** Gives a command its action, which gets all arguments as one list. */
export function act<Flags extends object>(command: Command, action: Action<Flags>): void {
  command.action(async () => {
    const cli = new Cli(globalFlagsOf(command));
    try {
      process.exitCode = (await action(cli, command.args, command.opts<Flags>())) ?? EXIT.done;
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
        // `--json=SHAPE` is JSON too.
        if (attribute === 'json') flags.json = true;
      }
    }
  }
  return flags;
}

/** The program, the command, and its subcommand. */
function levelsOf(command: Command): Command[] {
  return command.parent ? [...levelsOf(command.parent), command] : [command];
}
