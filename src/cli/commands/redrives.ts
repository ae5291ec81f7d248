import type { Command } from 'commander';
import { printFilter } from '../../filter.ts';
import type { Operations } from '../../queue/operations.ts';
import type { RedriveRecord } from '../../store/redrives.ts';
import { leftOf, redriveJson, redriveLines, redriveStateWords, redriveStyle } from '../../views/redrive-text.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { withStore } from '../opening/open-store.ts';
import { declareSubcommands } from '../subcommands.ts';
import type { Column } from '../terminal/table.ts';

interface Flags {
  readonly note?: string;
}

type Change = 'pause' | 'resume' | 'cancel';

const WITH_NOTE = (command: Command) => command.argument('<id>').option('--note <text>', 'a note about why');

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, list, [
    {
      usage: 'show ID',
      summary: 'everything about one redrive',
      alsoCalled: ['status', 'progress', 'info'],
      declare: (show) => show.argument('<id>'),
      action: (cli, [id]) => showOne(cli, id as string),
    },
    {
      usage: 'pause ID [--note TEXT]',
      summary: 'put nothing more back until it is resumed',
      alsoCalled: ['hold', 'stop'],
      declare: WITH_NOTE,
      action: (cli, [id], flags) => change(cli, 'pause', id as string, flags),
    },
    {
      usage: 'resume ID [--note TEXT]',
      summary: 'go on with a paused redrive',
      alsoCalled: ['continue', 'release', 'start'],
      declare: WITH_NOTE,
      action: (cli, [id], flags) => change(cli, 'resume', id as string, flags),
    },
    {
      usage: 'cancel ID [--note TEXT]',
      summary: 'end a redrive: what was put back stays so, the rest is left as it is',
      alsoCalled: ['abort', 'end', 'delete'],
      declare: WITH_NOTE,
      action: (cli, [id], flags) => change(cli, 'cancel', id as string, flags),
    },
  ]);
  command.addHelpText(
    'after',
    '\nLists redrives that run, and those that ended in the last 30 days, the newest first.',
  );
}

// ── List and show ──

async function list(cli: Cli): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const all = await holdfast.redrives.list();
    cli.terminal.answer('redrives', { items: all.map(redriveJson) }, () => print(cli, all));
  });
}

function print({ terminal }: Cli, redrives: readonly RedriveRecord[]): void {
  const rows = redrives.map((redrive) => [
    redrive.id,
    { text: redrive.state, style: redriveStyle(redrive) },
    `${redrive.putBack}/${redrive.selected}`,
    redrive.succeeded,
    redrive.failedAgain,
    leftOf(redrive),
    visible(printFilter(redrive.filter)),
    `${visible(redrive.note)} (${visible(redrive.actor)})`,
  ]);
  const columns: Column[] = ['#', 'STATE', 'PUT BACK', 'OK', 'AGAIN', 'LEFT', ['FILTER', 12], ['NOTE', 12]];
  terminal.table(columns, rows, 'There are no redrives.');
}

async function showOne(cli: Cli, text: string): Promise<void> {
  const id = idFrom(text);
  return withStore(cli, {}, async (holdfast) => {
    const redrive = await holdfast.redrives.get(id);
    const skips = await holdfast.redrives.skips(id);
    const { terminal } = cli;
    terminal.answer('redrives.show', { redrive: redriveJson(redrive), skipped_by: skips }, () => {
      terminal.result(terminal.out.paint('strong', `redrive ${id}`));
      const filter = printFilter(redrive.filter);
      for (const line of redriveLines(redrive, skips, filter, holdfast.now())) terminal.result(line);
      if (redrive.state === 'running') terminal.note(`Pause it: ${cli.command(`redrives pause ${id}`)}`);
      if (redrive.state === 'paused') terminal.note(`Go on: ${cli.command(`redrives resume ${id}`)}`);
    });
  });
}

// ── Pause, resume and cancel ──

async function change(cli: Cli, verb: Change, text: string, { note }: Flags): Promise<void> {
  const id = idFrom(text);
  return withStore(cli, {}, async (holdfast: Operations) => {
    const redrive = await holdfast.redrives[verb](id, { actor: cli.actor, ...(note !== undefined && { note }) });
    const words = redriveStateWords(redrive, holdfast.now());
    cli.terminal.answer(`redrives.${verb}`, { exit: EXIT.done, redrive: redriveJson(redrive) }, () =>
      cli.terminal.result(`redrive ${id}: ${words}; ${redrive.putBack} of ${redrive.selected} put back`),
    );
  });
}

/** @throws Problem for what is not a number. */
function idFrom(text: string): number {
  return wholeNumberFlag(text.replace(/^#/, ''), 'the number of a redrive', 1);
}
