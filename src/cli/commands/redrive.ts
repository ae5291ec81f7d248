import type { Command } from 'commander';
import { formatDuration } from '../../duration.ts';
import type { Operations } from '../../queue/operations.ts';
import type { RedriveOptions, RedrivePlan } from '../../queue/redrives.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { planJson, redriveJson } from '../../views/redrive-text.ts';
import { act, type Exit } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { FILTER_HELP } from '../flags/filter.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { type RedriveFlags, redriveFilter } from '../flags/redrive-flags.ts';
import { withStore } from '../opening/open-store.ts';
import { usage } from '../problem.ts';
import { mayGoOn } from '../terminal/prompt.ts';

export function declare(command: Command): void {
  declareRedriveFlags(command).addHelpText('after', HELP);
  act<RedriveFlags>(command, redrive);
}

/** The arguments and flags of a redrive, also of `quarantine retry`. */
export function declareRedriveFlags(command: Command): Command {
  return command
    .argument('[filter...]')
    .option('--note <text>', 'why: kept with the redrive and in the history of each task (required)')
    .option('--rate <rate>', 'how fast: 10/s (default), 100/m, 5000/h')
    .option('--ended-after <time>', 'only what ended at this time or later')
    .option('--ended-before <time>', 'only what ended before this time')
    .option('--accept-duplicate', 'also what must not run twice and may have happened already')
    .option('--dry-run', 'only say how many tasks it would put back, how long it takes, and how many may run twice');
}

const HELP = `
${FILTER_HELP}
Without a state it means what is dead.
Workers put back 1 task, then 5, then 25, each when it is known how those before went; the rest follows at the rate. The redrive
stops itself when half of the tasks of a stage fail again as before, and leaves the rest as it is.
See it with: holdfast redrives`;

export async function redrive(cli: Cli, terms: readonly string[], flags: RedriveFlags): Promise<Exit> {
  if (terms.length === 0) {
    throw usage('a filter is missing', {
      hints: ['for everything that is dead: holdfast redrive state:dead --note TEXT'],
    });
  }
  const { note, rate, acceptDuplicate, dryRun } = flags;
  if (note === undefined && !dryRun) {
    throw usage('--note is missing', { hints: ['say why: --note "the host is fixed"'] });
  }
  return withStore(cli, {}, async (holdfast) => {
    const filter = redriveFilter(terms, flags, new Date(holdfast.now()));
    const selection = { filter, ...(rate !== undefined && { rate }) };
    const plan = await holdfast.redrives.preview(selection);
    if (dryRun) return tellPlan(cli, plan, acceptDuplicate === true);
    if (plan.matches === 0) return tellNothing(cli, plan);
    if (plan.matches > 1 && cli.asks) {
      for (const line of planLines(plan, acceptDuplicate === true)) cli.terminal.note(line);
      if (!(await mayGoOn(cli, `Put ${plan.matches} tasks back?`))) return EXIT.failed;
    }
    return start(cli, holdfast, {
      ...selection,
      note: note as string,
      actor: cli.actor,
      ...(acceptDuplicate && { acceptDuplicate }),
    });
  });
}

function tellPlan({ terminal }: Cli, plan: RedrivePlan, acceptsDuplicate: boolean): void {
  terminal.answer('redrive', { exit: EXIT.done, dry_run: true, plan: planJson(plan), redrive: null }, () => {
    for (const line of planLines(plan, acceptsDuplicate)) terminal.result(line);
    terminal.note('Nothing was changed.');
  });
}

function planLines(
  { matches, mayRunTwice, mustNotRunTwice, takesAtLeast }: RedrivePlan,
  acceptsDuplicate: boolean,
): string[] {
  const lines = [
    `${plural(matches, 'task matches', 'tasks match')}${takesAtLeast === 0 ? '' : `, which takes ${formatDuration(takesAtLeast)} at least`}`,
  ];
  if (mayRunTwice > 0) {
    lines.push(`${plural(mayRunTwice, 'task', 'tasks')} of them may have happened already and would run a second time`);
  }
  if (mustNotRunTwice > 0) {
    const what = acceptsDuplicate ? 'but are put back' : 'and are skipped, unless you say --accept-duplicate';
    lines.push(`${mustNotRunTwice} of these must not run twice ${what}`);
  }
  return lines;
}

function tellNothing({ terminal }: Cli, plan: RedrivePlan): void {
  terminal.answer('redrive', { exit: EXIT.done, dry_run: false, plan: planJson(plan), redrive: null }, () =>
    terminal.note('No task matches, so nothing was started.'),
  );
}

async function start(cli: Cli, holdfast: Operations, options: RedriveOptions): Promise<void> {
  const started = await holdfast.redrive(options);
  const { terminal } = cli;
  if (terminal.json) {
    const plan = null;
    terminal.document(documentOf('redrive', { exit: EXIT.done, dry_run: false, plan, redrive: redriveJson(started) }));
    return;
  }
  const { id, selected } = started;
  const glyph = terminal.out.glyph('retrying');
  terminal.result(`${glyph} redrive ${id} puts ${plural(selected, 'task', 'tasks')} back`);
  terminal.note(
    `Look at it: ${cli.command(`redrives show ${id}`)}        stop it: ${cli.command(`redrives cancel ${id}`)}`,
  );
  const ready = await holdfast.list({ states: ['ready'], limit: 1_000 });
  await hintAtWorkers(cli, holdfast, 'resume', ready);
}
