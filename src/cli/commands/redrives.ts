import type { Command } from 'commander';
import type { Holdfast } from '../../queue/holdfast.ts';
import type { RedriveRecord } from '../../store/redrives.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { leftOf, redriveJson, redriveLines, redriveStateWords, redriveStyle } from '../../views/redrive-text.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { printRedriveFilter } from '../flags/redrive-flags.ts';
import { withStore } from '../opening/open-store.ts';
import { declareSubcommands } from '../subcommands.ts';
import { table } from '../terminal/table.ts';

interface Flags {
  readonly note?: string;
}

type Change = 'pause' | 'resume' | 'cancel';

const WITH_NOTE = (command: Command) => command.argument('<id>').option('--note <text>', 'a note about why');

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, list, [
    {
      name: 'show',
      arguments: 'ID',
      summary: 'everything about one redrive',
      alsoCalled: ['status', 'progress', 'info'],
      declare: (show) => show.argument('<id>'),
      action: (cli, [id]) => showOne(cli, id as string),
    },
    {
      name: 'pause',
      arguments: 'ID [--note TEXT]',
      summary: 'put nothing more back until it is resumed',
      alsoCalled: ['hold', 'stop'],
      declare: WITH_NOTE,
      action: (cli, [id], flags) => change(cli, 'pause', id as string, flags),
    },
    {
      name: 'resume',
      arguments: 'ID [--note TEXT]',
      summary: 'go on with a paused redrive',
      alsoCalled: ['continue', 'release', 'start'],
      declare: WITH_NOTE,
      action: (cli, [id], flags) => change(cli, 'resume', id as string, flags),
    },
    {
      name: 'cancel',
      arguments: 'ID [--note TEXT]',
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

async function list(cli: Cli): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const all = await holdfast.redrives.list();
    if (cli.terminal.json) cli.terminal.document(documentOf('redrives', { items: all.map(redriveJson) }));
    else if (all.length === 0) cli.terminal.note('There are no redrives.');
    else print(cli, all);
    return EXIT.done;
  });
}

function print({ terminal }: Cli, redrives: readonly RedriveRecord[]): void {
  const rows = redrives.map((redrive) => [
    { text: String(redrive.id) },
    { text: redrive.state, paint: (text: string) => terminal.out.paint(redriveStyle(redrive), text) },
    { text: `${redrive.putBack}/${redrive.selected}` },
    { text: String(redrive.succeeded) },
    { text: String(redrive.failedAgain) },
    { text: String(leftOf(redrive)) },
    { text: visible(printRedriveFilter(redrive.filter)) },
    { text: `${visible(redrive.note)} (${visible(redrive.actor)})` },
  ]);
  const columns = [
    { title: '#' },
    { title: 'STATE' },
    { title: 'PUT BACK' },
    { title: 'OK' },
    { title: 'AGAIN' },
    { title: 'LEFT' },
    { title: 'FILTER', least: 12 },
    { title: 'NOTE', least: 12 },
  ];
  for (const line of table(columns, rows, terminal.out.columns)) terminal.result(line);
}

async function showOne(cli: Cli, text: string): Promise<number> {
  const id = idFrom(text);
  return withStore(cli, {}, async (holdfast) => {
    const redrive = await holdfast.redrives.get(id);
    const skips = await holdfast.redrives.skips(id);
    const { terminal } = cli;
    if (terminal.json) {
      terminal.document(documentOf('redrives.show', { redrive: redriveJson(redrive), skipped_by: skips }));
      return EXIT.done;
    }
    terminal.result(terminal.out.paint('strong', `redrive ${id}`));
    const filter = printRedriveFilter(redrive.filter);
    for (const line of redriveLines(redrive, skips, filter, holdfast.now())) terminal.result(line);
    if (redrive.state === 'running') terminal.note(`Pause it: ${cli.command(`redrives pause ${id}`)}`);
    if (redrive.state === 'paused') terminal.note(`Go on: ${cli.command(`redrives resume ${id}`)}`);
    return EXIT.done;
  });
}

// ── Pause, resume and cancel ──

async function change(cli: Cli, verb: Change, text: string, { note }: Flags): Promise<number> {
  const id = idFrom(text);
  return withStore(cli, {}, async (holdfast: Holdfast) => {
    const redrive = await holdfast.redrives[verb](id, { actor: cli.actor, ...(note !== undefined && { note }) });
    const { terminal } = cli;
    if (terminal.json) {
      terminal.document(documentOf(`redrives.${verb}`, { exit: EXIT.done, redrive: redriveJson(redrive) }));
      return EXIT.done;
    }
    const words = redriveStateWords(redrive, holdfast.now());
    terminal.result(`redrive ${id}: ${words}; ${redrive.putBack} of ${redrive.selected} put back`);
    return EXIT.done;
  });
}

/** @throws Problem for what is no number. */
function idFrom(text: string): number {
  return wholeNumberFlag(text.replace(/^#/, ''), 'the number of a redrive', 1);
}
