import type { Command } from 'commander';
import type { RedriveFlags } from '../flags/redrive-flags.ts';
import { declareSubcommands } from '../subcommands.ts';
import { declareListFlags, type ListFlags, list } from './list.ts';
import { declareRedriveFlags, redrive } from './redrive.ts';
import { show } from './show.ts';

export function declare(command: Command): void {
  declareSubcommands<ListFlags & RedriveFlags>(command, (cli) => list(cli, quarantined([]), {}), [
    {
      usage: 'list [FILTER]',
      summary: 'what is dead or needs a person, the newest first',
      alsoCalled: ['ls'],
      declare: (of) => declareListFlags(of),
      action: (cli, terms, flags) => list(cli, quarantined(terms), flags),
    },
    {
      usage: 'show ID',
      summary: 'everything about one of them',
      declare: (of) => of.argument('<id>'),
      action: (cli, [id]) => show(cli, id as string),
    },
    {
      usage: 'retry FILTER --note TEXT',
      summary: 'put them back, each in a new round: a few first, then at a rate',
      alsoCalled: ['redrive', 'release'],
      declare: (of) => declareRedriveFlags(of),
      action: (cli, terms, flags) => redrive(cli, terms.length === 0 ? [] : quarantined(terms), flags),
    },
  ]);
  command.addHelpText(
    'after',
    `
A filter names the connector, the reason or the source: type:imap_mailbox reason:auth.invalid 'source:imap:ada@mail.example/INBOX'
Without a state it means what is dead or needs a person. One task alone: holdfast retry ID.`,
  );
}

/** Both states in which a task waits for a person's decision, unless the filter names a state. */
function quarantined(terms: readonly string[]): readonly string[] {
  return terms.some((term) => term.includes('state:')) ? terms : [...terms, 'state:dead,needs_manual'];
}
