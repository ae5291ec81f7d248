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
import { hintAtWorkersFor } from '../flags/record-flags.ts';
import { mayBeNew, unknownName } from '../flags/unknown-name.ts';
import { withStore } from '../opening/open-store.ts';
import { declareSubcommands } from '../subcommands.ts';
import { table } from '../terminal/table.ts';

/** How many sources are listed that are not held: those with the most tasks. */
const MOST_OTHERS = 50;

interface Flags {
  readonly note?: string;
}

/** A source as this command shows it. */
interface Source extends SourceCounts {
  readonly held?: DoneBy;
}

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, list, [
    {
      name: 'hold',
      arguments: 'NAME [--note TEXT]',
      summary: 'hold a source: none of its tasks starts; running tasks go on',
      alsoCalled: ['shut', 'close', 'pause', 'stop'],
      declare: (hold) => hold.argument('<name>').option('--note <text>', 'a note about why'),
      action: (cli, [name], flags) => hold(cli, name as string, flags),
    },
    {
      name: 'release',
      arguments: 'NAME',
      summary: 'release a source: its tasks go on, in the order of their queues',
      alsoCalled: ['open', 'resume', 'unhold'],
      declare: (release) => release.argument('<name>'),
      action: (cli, [name]) => release(cli, name as string),
    },
  ]);
  command.addHelpText(
    'after',
    `
Lists the held sources: since when, by whom, and how many ready tasks wait for each. Then the ${MOST_OTHERS} other sources with the most
ready or running tasks.
A source is what a task touches, such as imap:INBOX or cmd:rsync; \`holdfast list source:NAME\` lists its tasks.`,
  );
}

// ── List ──

async function list(cli: Cli): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const all = await sourcesOf(holdfast, MOST_OTHERS + 1);
    const held = all.filter((source) => source.held);
    const others = all.filter((source) => !source.held);
    const shown = [...held, ...others.slice(0, MOST_OTHERS)];
    const more = others.length > MOST_OTHERS;
    if (cli.terminal.json) cli.terminal.document(documentOf('sources', { items: shown.map(sourceJson), more }));
    else print(cli, shown, more, holdfast.now());
    return EXIT.done;
  });
}

async function sourcesOf(holdfast: Holdfast, mostOthers: number): Promise<Source[]> {
  const held = await heldSources(holdfast);
  return (await holdfast.administration.countsBySource(mostOthers)).map((counts) => {
    const by = held.get(counts.name);
    return { ...counts, ...(by && { held: by }) };
  });
}

function print(cli: Cli, sources: readonly Source[], more: boolean, now: number): void {
  const { terminal } = cli;
  if (sources.length === 0) {
    terminal.note('No source is held, and none has ready or running tasks.');
    return;
  }
  const rows = sources.map(({ name, ready, running, held }) => [
    { text: held ? GLYPHS.held : '', paint: (text: string) => terminal.out.paint('waiting', text) },
    { text: visible(name) },
    { text: String(ready) },
    { text: String(running) },
    { text: held ? doneByWords(held, now) : '' },
  ]);
  const columns = [
    { title: '' },
    { title: 'SOURCE', least: 12 },
    { title: 'READY' },
    { title: 'RUNNING' },
    { title: 'HELD', least: 12 },
  ];
  for (const line of table(columns, rows, terminal.out.columns)) terminal.result(line);
  if (more) terminal.note(`Of the other sources, the ${MOST_OTHERS} with the most tasks are shown.`);
  const first = sources.find(({ held }) => held);
  if (first) terminal.note(`Release one: ${cli.command(`sources release ${quoted(first.name)}`)}`);
}

function sourceJson({ name, ready, running, held }: Source): object {
  return { name, held: doneByJson(held), ready, running };
}

// ── Hold and release ──

async function hold(cli: Cli, name: string, { note }: Flags): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const before = (await heldSources(holdfast)).get(name);
    if (!before) {
      const known = await holdfast.administration.sourceNames();
      if (!(await mayBeNew(cli, { kind: 'source', name, known }, 'hold'))) return EXIT.failed;
    }
    await holdfast.sources.hold(name, { actor: cli.actor, ...(note !== undefined && { note }) });
    const source = await sourceOf(holdfast, name);
    const { terminal } = cli;
    if (terminal.json) {
      terminal.document(documentOf('sources.hold', { exit: EXIT.done, changed: !before, source: sourceJson(source) }));
      return EXIT.done;
    }
    const glyph = terminal.out.paint('waiting', GLYPHS.held);
    const words = before ? `was held already: ${doneByWords(before, holdfast.now())}` : 'is held';
    terminal.result(
      `${glyph} ${visible(name)} ${words}, ${plural(source.ready, 'ready task waits', 'ready tasks wait')}`,
    );
    const goesOn =
      source.running > 0 ? `${plural(source.running, 'running task goes on', 'running tasks go on')}. ` : '';
    terminal.note(`${goesOn}Release it: ${cli.command(`sources release ${quoted(name)}`)}`);
    return EXIT.done;
  });
}

async function release(cli: Cli, name: string): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const before = (await heldSources(holdfast)).get(name);
    if (!before) await refuseUnknown(cli, holdfast, name);
    await holdfast.sources.release(name);
    const source = await sourceOf(holdfast, name);
    const { terminal } = cli;
    if (terminal.json) {
      const content = { exit: EXIT.done, changed: before !== undefined, source: sourceJson(source) };
      terminal.document(documentOf('sources.release', content));
      return EXIT.done;
    }
    const goesOn = source.ready > 0 ? `: ${plural(source.ready, 'ready task goes', 'ready tasks go')} on` : '';
    const words = before ? `is released${goesOn}` : 'was not held';
    terminal.result(`${terminal.out.paint('idle', GLYPHS.ready)} ${visible(name)} ${words}`);
    if (before && source.ready > 0) await hintAtWorkersFor(cli, holdfast, { sources: [name] });
    return EXIT.done;
  });
}

/** A name without a held source may be a slip for one that is held, which would stay held. */
async function refuseUnknown(cli: Cli, holdfast: Holdfast, name: string): Promise<void> {
  const held = [...(await heldSources(holdfast)).keys()];
  const known = [...new Set([...held, ...(await holdfast.administration.sourceNames())])];
  if (!known.includes(name)) throw unknownName(cli, { kind: 'source', name, known });
}

async function heldSources(holdfast: Holdfast): Promise<ReadonlyMap<string, DoneBy>> {
  const sources = await holdfast.sources.list();
  return new Map(sources.flatMap(({ name, hold }) => (hold ? [[name, hold]] : [])));
}

/** Whatever it holds: one that is open may not be among the fullest. */
async function sourceOf(holdfast: Holdfast, name: string): Promise<Source> {
  const all = await sourcesOf(holdfast, Number.MAX_SAFE_INTEGER);
  return all.find((source) => source.name === name) ?? { name, ready: 0, running: 0 };
}
