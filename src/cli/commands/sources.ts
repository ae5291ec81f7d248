import type { Command } from 'commander';
import type { Holdfast } from '../../queue/holdfast.ts';
import type { SourceCounts } from '../../store/store.ts';
import { type DoneBy, doneByJson, doneByWords } from '../../views/done-by.ts';
import { GLYPHS } from '../../views/glyphs.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { quoted, visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { mayBeNew, unknownName } from '../flags/unknown-name.ts';
import { withStore } from '../opening/open-store.ts';
import { declareSubcommands } from '../subcommands.ts';
import { table } from '../terminal/table.ts';

/** Of sources that are open, so many are listed: the fullest. */
const MOST_OPEN = 50;

interface Flags {
  readonly note?: string;
}

/** A source as this command shows it. */
interface Source extends SourceCounts {
  readonly shut?: DoneBy;
}

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, list, [
    {
      name: 'hold',
      arguments: 'NAME [--note TEXT]',
      summary: 'shut a source: none of its tasks starts, and what runs goes on',
      alsoCalled: ['shut', 'close', 'pause', 'stop'],
      declare: (hold) => hold.argument('<name>').option('--note <text>', 'a word about why, for whoever looks'),
      action: (cli, [name], flags) => hold(cli, name as string, flags),
    },
    {
      name: 'release',
      arguments: 'NAME',
      summary: 'open a source: its tasks go on, in the order of their queues',
      alsoCalled: ['open', 'resume', 'unhold'],
      declare: (release) => release.argument('<name>'),
      action: (cli, [name]) => release(cli, name as string),
    },
  ]);
  command.addHelpText(
    'after',
    `
Lists the sources that are shut: since when, by whom, and how many ready tasks wait behind each. Then those that have
anything ready or running, the fullest ${MOST_OPEN}.
A source is what a task touches, such as imap:INBOX or cmd:rsync; \`holdfast list source:NAME\` lists its tasks.`,
  );
}

// ── List ──

async function list(cli: Cli): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const all = await sourcesOf(holdfast, MOST_OPEN + 1);
    const shut = all.filter((source) => source.shut);
    const open = all.filter((source) => !source.shut);
    const shown = [...shut, ...open.slice(0, MOST_OPEN)];
    const more = open.length > MOST_OPEN;
    if (cli.terminal.json) cli.terminal.document(documentOf('sources', { items: shown.map(sourceJson), more }));
    else print(cli, shown, more, holdfast.now());
    return EXIT.done;
  });
}

async function sourcesOf(holdfast: Holdfast, mostOpen: number): Promise<Source[]> {
  const shut = await shutSources(holdfast);
  return (await holdfast.administration.countsBySource(mostOpen)).map((counts) => {
    const by = shut.get(counts.name);
    return { ...counts, ...(by && { shut: by }) };
  });
}

function print(cli: Cli, sources: readonly Source[], more: boolean, now: number): void {
  const { terminal } = cli;
  if (sources.length === 0) {
    terminal.note('No source is shut, and none has anything ready or running.');
    return;
  }
  const rows = sources.map(({ name, ready, running, shut }) => [
    { text: shut ? GLYPHS.held : '', paint: (text: string) => terminal.out.paint('waiting', text) },
    { text: visible(name) },
    { text: String(ready) },
    { text: String(running) },
    { text: shut ? doneByWords(shut, now) : '' },
  ]);
  const columns = [
    { title: '' },
    { title: 'SOURCE', least: 12 },
    { title: 'READY' },
    { title: 'RUNNING' },
    { title: 'SHUT', least: 12 },
  ];
  for (const line of table(columns, rows, terminal.out.columns)) terminal.result(line);
  if (more) terminal.note(`Of those that are open, the fullest ${MOST_OPEN}.`);
  const first = sources.find(({ shut }) => shut);
  if (first) terminal.note(`Open one: ${cli.command(`sources release ${quoted(first.name)}`)}`);
}

function sourceJson({ name, ready, running, shut }: Source): object {
  return { name, shut: doneByJson(shut), ready, running };
}

// ── Shut and open ──

async function hold(cli: Cli, name: string, { note }: Flags): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const before = (await shutSources(holdfast)).get(name);
    if (!before) {
      const known = await holdfast.administration.sourceNames();
      if (!(await mayBeNew(cli, { kind: 'source', name, known }, 'shut'))) return EXIT.failed;
    }
    await holdfast.holdSource(name, { actor: cli.actor, ...(note !== undefined && { note }) });
    const source = await sourceOf(holdfast, name);
    const { terminal } = cli;
    if (terminal.json) {
      terminal.document(documentOf('sources.hold', { exit: EXIT.done, changed: !before, source: sourceJson(source) }));
      return EXIT.done;
    }
    const glyph = terminal.out.paint('waiting', GLYPHS.held);
    const words = before ? `was shut already: ${doneByWords(before, holdfast.now())}` : 'is shut';
    terminal.result(
      `${glyph} ${visible(name)} ${words}, ${plural(source.ready, 'ready task waits', 'ready tasks wait')}`,
    );
    const goesOn = source.running > 0 ? `${plural(source.running, 'task runs', 'tasks run')} on. ` : '';
    terminal.note(`${goesOn}Open it: ${cli.command(`sources release ${quoted(name)}`)}`);
    return EXIT.done;
  });
}

async function release(cli: Cli, name: string): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const before = (await shutSources(holdfast)).get(name);
    if (!before) await refuseUnknown(cli, holdfast, name);
    await holdfast.releaseSource(name);
    const source = await sourceOf(holdfast, name);
    const { terminal } = cli;
    if (terminal.json) {
      const content = { exit: EXIT.done, changed: before !== undefined, source: sourceJson(source) };
      terminal.document(documentOf('sources.release', content));
      return EXIT.done;
    }
    const goesOn = source.ready > 0 ? `: ${plural(source.ready, 'ready task goes', 'ready tasks go')} on` : '';
    const words = before ? `is open${goesOn}` : 'was not shut';
    terminal.result(`${terminal.out.paint('idle', GLYPHS.ready)} ${visible(name)} ${words}`);
    if (before && source.ready > 0) await hintAtWorkers(cli, holdfast, 'resume');
    return EXIT.done;
  });
}

/** A name that is not shut may be a slip for one that is, which would stay shut. */
async function refuseUnknown(cli: Cli, holdfast: Holdfast, name: string): Promise<void> {
  const shut = [...(await shutSources(holdfast)).keys()];
  const known = [...new Set([...shut, ...(await holdfast.administration.sourceNames())])];
  if (!known.includes(name)) throw unknownName(cli, { kind: 'source', name, known });
}

async function shutSources(holdfast: Holdfast): Promise<ReadonlyMap<string, DoneBy>> {
  return new Map((await holdfast.sources()).map(({ name, shutAt, ...by }) => [name, { ...by, at: shutAt }]));
}

/** Whatever it holds: one that is open may not be among the fullest. */
async function sourceOf(holdfast: Holdfast, name: string): Promise<Source> {
  const all = await sourcesOf(holdfast, Number.MAX_SAFE_INTEGER);
  return all.find((source) => source.name === name) ?? { name, ready: 0, running: 0 };
}
