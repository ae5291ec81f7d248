import type { Command } from 'commander';
import { visible } from '../views/visible.ts';
import { type Action, act } from './action.ts';
import type { Cli } from './cli.ts';
import { usage } from './problem.ts';
import { nearest } from './suggest.ts';

/** What a command can be told to do, as `hold` in `holdfast sources hold NAME`. */
export interface Subcommand<Flags extends object> {
  readonly name: string;
  readonly arguments: string;
  readonly summary: string;
  readonly declare: (command: Command) => void;
  readonly action: Action<Flags>;
  /** What people type for it, where the letters do not give it away. */
  readonly alsoCalled?: readonly string[];
}

/** Gives a command its subcommands. Without one of them it lists. */
export function declareSubcommands<Flags extends object>(
  command: Command,
  list: (cli: Cli) => Promise<number>,
  subcommands: readonly Subcommand<Flags>[],
): void {
  // So that it is ours to say what is wrong with a word that is none of them.
  command.argument('[word...]').enablePositionalOptions().helpCommand(false);
  act(command, async (cli, [word]) => {
    if (word !== undefined) throw unknownSubcommand(command.name(), word, subcommands);
    return list(cli);
  });
  for (const { name, arguments: words, summary, declare, action } of subcommands) {
    const subcommand = command.command(name).summary(summary).description(summary).usage(words);
    declare(subcommand);
    act<Flags>(subcommand, action);
  }
}

function unknownSubcommand<Flags extends object>(command: string, word: string, known: readonly Subcommand<Flags>[]) {
  const names = known.map(({ name }) => name);
  const meant = known.find(({ alsoCalled }) => alsoCalled?.includes(word.toLowerCase()));
  const likely = meant ? [meant.name] : nearest(word, names);
  return usage(`there is no "holdfast ${command} ${visible(word)}"`, {
    hints: [
      ...(likely.length > 0 ? [`did you mean: holdfast ${command} ${likely.join(`, or holdfast ${command} `)}?`] : []),
      `there is: ${known.map(({ name, arguments: words }) => `holdfast ${command} ${name} ${words}`).join(', ')}`,
    ],
  });
}
