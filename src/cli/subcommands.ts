import type { Command } from 'commander';
import { isFilter } from '../filter.ts';
import { visible } from '../views/visible.ts';
import { type Action, act, type Exit } from './action.ts';
import type { Cli } from './cli.ts';
import { usage as refused } from './problem.ts';
import { nearest } from './suggest.ts';

/** A command below another one, such as `hold` in `holdfast sources hold NAME`. */
export interface Subcommand<Flags extends object> {
  /** Its name and its arguments: `hold NAME`. */
  readonly usage: string;
  readonly summary: string;
  readonly declare?: (command: Command) => void;
  readonly action: Action<Flags>;
  /** Other words that people type for it. */
  readonly alsoCalled?: readonly string[];
}

/** Gives a command its subcommands. Without one of them it lists: all, or what fits a filter if it takes one. */
export function declareSubcommands<Flags extends object>(
  command: Command,
  list: (cli: Cli, terms: readonly string[], flags: Flags) => Promise<Exit>,
  subcommands: readonly Subcommand<Flags>[],
  { takesFilter = false } = {},
): void {
  // Takes any word, so that our own error names an unknown one.
  command.argument('[word...]').enablePositionalOptions().helpCommand(false);
  act<Flags>(command, async (cli, words, flags) => {
    const [word] = words;
    if (word !== undefined && !(takesFilter && isFilter(word)))
      throw unknownSubcommand(command.name(), word, subcommands);
    return list(cli, words, flags);
  });
  for (const { usage, summary, declare, action } of subcommands) {
    const [name, ...words] = usage.split(' ') as [string, ...string[]];
    const subcommand = command.command(name).summary(summary).description(summary).usage(words.join(' '));
    declare?.(subcommand);
    act<Flags>(subcommand, action);
  }
}

function unknownSubcommand<Flags extends object>(command: string, word: string, known: readonly Subcommand<Flags>[]) {
  const names = known.map(({ usage }) => usage.split(' ')[0] as string);
  const meant = known.findIndex(({ alsoCalled }) => alsoCalled?.includes(word.toLowerCase()));
  const likely = meant >= 0 ? [names[meant]] : nearest(word, names);
  return refused(`there is no "holdfast ${command} ${visible(word)}"`, {
    hints: [
      ...(likely.length > 0 ? [`did you mean: holdfast ${command} ${likely.join(`, or holdfast ${command} `)}?`] : []),
      `there is: ${known.map(({ usage }) => `holdfast ${command} ${usage}`).join(', ')}`,
    ],
  });
}
