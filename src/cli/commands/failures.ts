import type { Command } from 'commander';
import { FAILURE_VERBS, type FailureVerb } from '../../failure/groups.ts';
import type { FailureGroupView } from '../../queue/failures.ts';
import { failureGroupJson, failureGroupLines, retryHelpsWords, trendOf } from '../../views/failure-text.ts';
import { ago } from '../../views/times.ts';
import { shortened, visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { filterFrom } from '../flags/filter.ts';
import { span } from '../flags/moment.ts';
import { withStore } from '../opening/open-store.ts';
import { declareSubcommands } from '../subcommands.ts';
import type { Cell, Column } from '../terminal/table.ts';

interface Flags {
  readonly note?: string;
  readonly all?: boolean;
  readonly for?: string;
}

const SUMMARIES: Readonly<Record<FailureVerb, string>> = {
  acknowledge: 'say that somebody knows of it',
  mute: 'leave it out of the list',
  resolve: 'say that it is mended; it is `regressed` if it fails again',
  reopen: 'take back what was said of it',
  note: 'say something of it; its state stays',
};

const ALSO_CALLED: Readonly<Record<FailureVerb, readonly string[]>> = {
  acknowledge: ['ack', 'assign'],
  mute: ['ignore', 'silence', 'snooze'],
  resolve: ['done', 'fix', 'fixed', 'close'],
  reopen: ['open', 'unmute', 'unresolve'],
  note: ['comment', 'say'],
};

export function declare(command: Command): void {
  declareSubcommands<Flags>(
    command,
    list,
    [
      {
        usage: 'show ID',
        summary: 'everything about one group',
        alsoCalled: ['info', 'get'],
        declare: (show) => show.argument('<id>'),
        action: (cli, [id]) => show(cli, id as string),
      },
      ...FAILURE_VERBS.map((verb) => ({
        usage:
          verb === 'note' ? 'note ID --note TEXT' : `${verb} ID [--note TEXT]${verb === 'mute' ? ' [--for TIME]' : ''}`,
        summary: SUMMARIES[verb],
        alsoCalled: ALSO_CALLED[verb],
        declare: (one: Command) => declareVerb(one, verb),
        action: (cli: Cli, [id]: readonly string[], flags: Flags) => change(cli, verb, id as string, flags),
      })),
    ],
    { takesFilter: true },
  );
  command.option('--all', 'also muted and resolved groups').addHelpText(
    'after',
    `
Lists groups of alike failures: those of one type that were thrown at the same place with alike messages. They stay when their tasks
are removed; the thousand that failed last are kept. Muted and resolved groups are counted below the list; --all and --json show them.
A filter: type:sync reason:http.* 'source:imap:*' 'error:timed out' fingerprint:ID since:2h (it failed since then)

  TREND  the failures of each of the last 24 hours; in terminals of at least ${WIDE} columns
  RETRY  how many of the retries after such a failure succeeded, with the range in which the true share lies in 19 of 20 cases`,
  );
}

function declareVerb(command: Command, verb: FailureVerb): void {
  command.argument('<id>');
  if (verb === 'note') command.requiredOption('--note <text>', 'what is to be said');
  else command.option('--note <text>', 'a note about why');
  if (verb === 'mute') command.option('--for <duration>', 'how long, such as 24h (default: until it is reopened)');
}

async function list(cli: Cli, terms: readonly string[], { all = false }: Flags): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const groups = await holdfast.failures.list({ filter: filterFrom(terms) });
    cli.terminal.answer('failures', { items: groups.map(failureGroupJson) }, () =>
      print(cli, groups, holdfast.now(), all),
    );
  });
}

/** From so many columns on, the table has the trend and the range of the share. */
const WIDE = 116;

function print({ terminal }: Cli, groups: readonly FailureGroupView[], now: number, all: boolean): void {
  const isHidden = (group: FailureGroupView) => !all && isPutAside(group);
  const shown = groups.filter((group) => !isHidden(group));
  const { columns, rows } = groupTable(shown, now, terminal.out.columns);
  terminal.table(columns, rows, 'There are no open groups of failures.');
  for (const state of ['muted', 'resolved'] as const) {
    const hidden = groups.filter((group) => group.state === state && isHidden(group)).length;
    if (hidden > 0) terminal.note(`${hidden} ${state}: --all shows them`);
  }
}

/** Whether a list leaves it out. */
export function isPutAside({ state }: FailureGroupView): boolean {
  return state === 'muted' || state === 'resolved';
}

/** The columns and rows of groups, in a terminal of so many columns. */
export function groupTable(
  groups: readonly FailureGroupView[],
  now: number,
  available: number,
): { readonly columns: readonly Column[]; readonly rows: readonly Cell[][] } {
  // 80 columns have no room for them.
  const isWide = available >= WIDE;
  const rows = groups.map((group) => [
    group.id,
    group.state,
    group.count,
    ago(group.lastAt, now),
    ...(isWide ? [trendOf(group, now)] : []),
    group.retryHelps
      ? retryHelpsWords(group)
          .replace('retry helps ', '')
          .replace(isWide ? '' : / \(.*/, '')
      : '',
    visible(group.type),
    visible(group.reason),
    shortened(visible(group.message)),
  ]);
  const columns: Column[] = [
    'ID',
    'STATE',
    'COUNT',
    'LAST',
    ...(isWide ? ['TREND'] : []),
    'RETRY',
    ['TYPE', 8, 12],
    ['REASON', 8, 12],
    ['ERROR', 10, 24],
  ];
  return { columns, rows };
}

async function show(cli: Cli, id: string): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const group = await holdfast.failures.get(id);
    cli.terminal.answer('failures.show', { group: failureGroupJson(group) }, () => {
      cli.terminal.result(`${cli.terminal.out.paint('strong', group.id)} ${group.state}`);
      for (const line of failureGroupLines(group, holdfast.now())) cli.terminal.result(line);
    });
  });
}

async function change(cli: Cli, verb: FailureVerb, id: string, { note, for: lasts }: Flags): Promise<void> {
  // A duration that is not valid is refused with the name of the flag.
  if (lasts !== undefined) span(lasts, '--for');
  const muted = lasts === undefined ? {} : { for: lasts };
  return withStore(cli, {}, async (holdfast) => {
    const by = { actor: cli.actor, ...(note !== undefined && { note }) };
    const { failures } = holdfast;
    const group = verb === 'mute' ? await failures.mute(id, { ...by, ...muted }) : await failures[verb](id, by);
    cli.terminal.answer(`failures.${verb}`, { exit: EXIT.done, group: failureGroupJson(group) }, () =>
      cli.terminal.result(`${group.id} is ${group.state}`),
    );
  });
}
