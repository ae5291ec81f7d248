import type { Command } from 'commander';
import {
  holdSource,
  limitSource,
  listedSources,
  MOST_OTHERS,
  probeSource,
  releaseSource,
  type SourceActedOn,
  type SourcesSeen,
  shownSource,
  shownSourceContent,
  sourceActedOnContent,
  sourceOf,
  sourcesContent,
} from '../../documents/sources.ts';
import type { Operations } from '../../queue/operations.ts';
import { GLYPHS } from '../../views/glyphs.ts';
import { plural } from '../../views/plural.ts';
import { changeWords, outageWords } from '../../views/source-history.ts';
import type { ListedSource } from '../../views/source-list.ts';
import { clockTime } from '../../views/times.ts';
import { quoted, visible } from '../../views/visible.ts';
import type { Exit } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { declareLimits, type LimitFlags, limitsFrom } from '../flags/limit-flags.ts';
import { parseMoment, span } from '../flags/moment.ts';
import { hintAtWorkersFor } from '../flags/record-flags.ts';
import { mayBeNew, unknownName } from '../flags/unknown-name.ts';
import { withStore } from '../opening/open-store.ts';
import { usage } from '../problem.ts';
import { declareSubcommands } from '../subcommands.ts';
import type { Cell, Column } from '../terminal/table.ts';

interface Flags extends LimitFlags {
  readonly note?: string;
  readonly until?: string;
  readonly for?: string;
}

export function declare(command: Command): void {
  const note = ['--note <text>', 'a note about why'] as const;
  declareSubcommands<Flags>(command, list, [
    {
      usage: 'hold NAME [--for 2h|--until 14:30] [--note TEXT]',
      summary: 'hold a source: none of its tasks starts; running tasks go on',
      alsoCalled: ['shut', 'close', 'pause', 'stop'],
      declare: (hold) =>
        hold
          .argument('<name>')
          .option('--for <time>', 'the hold ends by itself after so long, such as 2h')
          .option('--until <time>', "the hold ends by itself then: 14:30, 'tomorrow 9:00', +2h, 2026-01-31T09:00:00Z")
          .option(...note),
      action: (cli, [name], flags) => hold(cli, name as string, flags),
    },
    {
      usage: 'show NAME',
      summary: 'the state of one source, its outages of the last 7 days, and who held or released it',
      alsoCalled: ['status', 'info', 'history', 'outages'],
      declare: (show) => show.argument('<name>'),
      action: (cli, [name]) => show(cli, name as string),
    },
    {
      usage: 'release NAME [--note TEXT]',
      summary: 'release a source that is held, down, asked to wait or needs a person',
      alsoCalled: ['open', 'resume', 'unhold'],
      declare: (release) =>
        release
          .argument('<name>')
          .option(...note)
          .addHelpText(
            'after',
            '\nThe tasks of a held source go on in the order of their queues. Those of one that was down are released slowly, and one that\nneeded a person is tested first, with one task at a time.',
          ),
      action: (cli, [name], flags) => release(cli, name as string, flags),
    },
    {
      usage: 'probe NAME [--note TEXT]',
      summary: 'test a source that is down with its next task, now',
      alsoCalled: ['test', 'check', 'try'],
      declare: (probe) => probe.argument('<name>').option(...note),
      action: (cli, [name], flags) => probe(cli, name as string, flags),
    },
    {
      usage: 'limit NAME [--pace 10/s] [--concurrency 4] | --none',
      summary: 'limit how often the tasks of a source start, and how many run at the same time',
      alsoCalled: ['throttle', 'limits', 'pace', 'rate'],
      declare: (limit) => declareLimits(limit).option(...note),
      action: (cli, [name], flags) => limit(cli, name as string, flags),
    },
  ]);
  command.addHelpText(
    'after',
    `
Lists the sources that are not in their normal state: why, since when, how many ready tasks wait, and what happens next. Then the
${MOST_OTHERS} other sources with the most ready or running tasks.

  held            an operator holds it          needs a person  only \`sources release\` opens it again
  down            tasks of it failed            asked to wait   it sent a Retry-After
  probing         one task at a time tests it   ramping         it works again, and its tasks are released slowly
  limited         a person, the code or holdfast.yaml set a limit
  watched         it failed lately; it counts as down if another task fails too

A source is what a task touches, such as imap:INBOX or cmd:rsync; \`holdfast list source:NAME\` lists its tasks.`,
  );
}

// ── List ──

async function list(cli: Cli): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const seen = await listedSources(holdfast);
    cli.terminal.answer('sources', sourcesContent(seen), () => print(cli, seen));
  });
}

function print(cli: Cli, { sources, more }: SourcesSeen): void {
  const { terminal } = cli;
  terminal.table(
    SOURCE_COLUMNS,
    sources.map(sourceRow),
    'Every source is in its normal state, and none has ready or running tasks.',
  );
  if (more) terminal.note(`Of the other sources, the ${MOST_OTHERS} with the most tasks are shown.`);
  const first = sources.find(({ state }) => state === 'needs_person' || state === 'held');
  if (first) terminal.note(`Release one: ${cli.command(`sources release ${quoted(first.name)}`)}`);
  const down = sources.find(({ state }) => state === 'down');
  if (down) terminal.note(`Test one now: ${cli.command(`sources probe ${quoted(down.name)}`)}`);
}

/** The columns of sources in a list. */
export const SOURCE_COLUMNS: readonly Column[] = [
  '',
  ['SOURCE', 12],
  'STATE',
  'READY',
  'RUNNING',
  'BUDGET',
  ['NEXT', 16],
  ['WHY', 16],
];

/** A source in a list. */
export function sourceRow(source: ListedSource): Cell[] {
  const { name, state, glyph, style, words, ready, running, budget, next, cause } = source;
  const said = state === 'normal' ? '' : words;
  return [{ text: glyph, style }, visible(name), said, ready, running, budget, next, visible(cause)];
}

// ── Show ──

/** How many outages and changes are printed. */
const MOST_PRINTED = 20;

async function show(cli: Cli, name: string): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    await knownSource(cli, holdfast, name);
    const shown = await shownSource(holdfast, name);
    cli.terminal.answer('sources.show', shownSourceContent(shown), () => {
      for (const line of sourceLines(cli, name, shown)) cli.terminal.result(line);
    });
  });
}

/** The lines of `sources show`. */
export function sourceLines(
  { terminal }: Cli,
  name: string,
  { source, outages, changes, now }: Awaited<ReturnType<typeof shownSource>>,
): string[] {
  const { glyph, style, words, cause, next, ready, running, limits, budget } = source;
  const lines: readonly (readonly [label: string, words: string])[] = [
    ['state', `${terminal.out.paint(style, glyph)} ${words}`.trim()],
    ['why', visible(cause)],
    ['next', next],
    ['tasks', `${ready} ready, ${running} running`],
    ['limits', limits],
    ['budget', budget],
    ...outages
      .toReversed()
      .slice(0, MOST_PRINTED)
      .map((outage, i) => [i === 0 ? 'outages' : '', outageWords(outage, now)] as const),
    ...changes
      .filter(({ by }) => by !== undefined)
      .slice(0, MOST_PRINTED)
      .map((change, i) => [i === 0 ? 'actions' : '', `${clockTime(change.at, now)}  ${changeWords(change)}`] as const),
  ];
  return [
    terminal.out.paint('strong', `source ${visible(name)}`),
    ...lines.filter(([, text]) => text !== '').map(([label, text]) => `${label.padEnd(8)} ${text}`),
  ];
}

// ── Hold, release, probe, limit ──

async function hold(cli: Cli, name: string, { note, until, for: time }: Flags): Promise<Exit> {
  if (until !== undefined && time !== undefined) throw usage('--for and --until contradict each other');
  const length = time === undefined ? undefined : span(time, '--for');
  return withStore(cli, {}, async (holdfast) => {
    const end = until === undefined ? undefined : parseMoment(until, new Date(holdfast.now()), '--until');
    const before = await sourceOf(holdfast, name);
    if (before.state === 'normal') {
      const known = await holdfast.administration.sourceNames();
      if (!(await mayBeNew(cli, { kind: 'source', name, known }, 'hold'))) return EXIT.failed;
    }
    const done = await holdSource(holdfast, before, {
      ...by(cli, note),
      ...(length !== undefined && { for: `${length}ms` }),
      ...(end !== undefined && { until: end }),
    });
    const { source } = done;
    const words = before.state === 'held' ? `was held already: ${visible(before.cause)}` : 'is held';
    const waits = plural(source.ready, 'ready task waits', 'ready tasks wait');
    const ends = source.record.hold?.until === undefined ? '' : `, ${source.next}`;
    tell(cli, holdfast, 'hold', done, `${words}${ends}, ${waits}`);
    const goesOn =
      source.running > 0 ? `${plural(source.running, 'running task goes on', 'running tasks go on')}. ` : '';
    cli.terminal.note(`${goesOn}Release it: ${cli.command(`sources release ${quoted(name)}`)}`);
  });
}

async function release(cli: Cli, name: string, { note }: Flags): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const before = await knownSource(cli, holdfast, name);
    const done = await releaseSource(holdfast, before, by(cli, note));
    const { source } = done;
    const words = before.holdsTasks ? `is released${afterRelease(source)}` : 'was not held';
    tell(cli, holdfast, 'release', done, words);
    if (before.holdsTasks && source.ready > 0 && !cli.terminal.json) {
      await hintAtWorkersFor(cli, holdfast, { sources: [name] });
    }
  });
}

function afterRelease({ state, ready }: ListedSource): string {
  if (state === 'probing') return ': it is tested first, with one task at a time';
  const slowly = state === 'ramping' ? ', slowly at first' : '';
  return ready > 0 ? `: ${plural(ready, 'ready task goes', 'ready tasks go')} on${slowly}` : '';
}

async function probe(cli: Cli, name: string, { note }: Flags): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const before = await knownSource(cli, holdfast, name);
    const done = await probeSource(holdfast, before, by(cli, note));
    const { source, changed } = done;
    const words = changed
      ? source.ready > 0
        ? 'is tested with its next task'
        : 'is tested with the next task that is due; none is ready now'
      : `is not tested: ${before.state === 'normal' ? 'it is in its normal state' : `it is ${before.words}`}`;
    tell(cli, holdfast, 'probe', done, words);
    if (changed && source.ready > 0 && !cli.terminal.json) await hintAtWorkersFor(cli, holdfast, { sources: [name] });
  });
}

async function limit(cli: Cli, name: string, { note, ...flags }: Flags): Promise<Exit> {
  const limits = limitsFrom(flags, cli.command('sources limit'));
  return withStore(cli, {}, async (holdfast) => {
    const before = await sourceOf(holdfast, name);
    if (before.state === 'normal') {
      const known = await holdfast.administration.sourceNames();
      if (!(await mayBeNew(cli, { kind: 'source', name, known }, 'limit'))) return EXIT.failed;
    }
    const done = await limitSource(holdfast, before, { ...limits, ...by(cli, note) });
    const { source } = done;
    const words = source.limits === '' ? 'has no limits' : `starts at most ${source.limits}`;
    tell(cli, holdfast, 'limit', done, words);
  });
}

function by({ actor }: Cli, note: string | undefined): { readonly actor: string; readonly note?: string } {
  return { actor, ...(note !== undefined && { note }) };
}

function tell(cli: Cli, holdfast: Operations, verb: string, done: SourceActedOn, words: string): void {
  const { terminal } = cli;
  const { source } = done;
  const glyph = source.glyph === '' ? GLYPHS.ready : source.glyph;
  terminal.answer(`sources.${verb}`, sourceActedOnContent(holdfast, done), () =>
    terminal.result(`${terminal.out.paint(source.style, glyph)} ${visible(source.name)} ${words}`),
  );
}

/** @throws Problem for an unknown name, which may be a misspelt name of a held source. That source would stay held. */
async function knownSource(cli: Cli, holdfast: Operations, name: string): Promise<ListedSource> {
  const source = await sourceOf(holdfast, name);
  if (source.state !== 'normal') return source;
  const special = (await holdfast.sources.list()).map((record) => record.name);
  const known = [...new Set([...special, ...(await holdfast.administration.sourceNames())])];
  if (!known.includes(name)) throw unknownName(cli, { kind: 'source', name, known });
  return source;
}
