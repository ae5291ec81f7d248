import { type Command, Option } from 'commander';
import { failuresLately, heldBack, type SeenStatus, seenStatus, statusContent } from '../../documents/status.ts';
import { worksAll } from '../../documents/workers-alive.ts';
import type { Counts, QueueSince, WorkerRecord } from '../../store/store.ts';
import { SIGN_OF_ATTENTION } from '../../views/attention-signs.ts';
import { type ShownState, signOf, stateWords } from '../../views/glyphs.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { clockTime, lasting, until } from '../../views/times.ts';
import { shortened, visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import { padded, widthOf, wrapped } from '../terminal/width.ts';
import { printSummary } from './status-summary.ts';
import { processWords } from './workers.ts';

interface Flags {
  readonly check?: boolean;
  readonly summary?: boolean;
}

export function declare(command: Command): void {
  command
    .option('--check', 'for monitoring: exit 8 with a line for each thing that needs attention')
    .addOption(
      new Option('--summary', 'totals by state, and what needs a person, by reason and with what to do').conflicts(
        'check',
      ),
    );
  act<Flags>(command, status);
}

async function status(cli: Cli, _: readonly string[], flags: Flags): Promise<number> {
  if (flags.summary) return summary(cli);
  const config = await readConfig(cli);
  return withStore(cli, {}, async (holdfast, { name }) => {
    const seen = await seenStatus(cli, holdfast, config?.refused, flags.check === true);
    const { attention } = seen;
    const exit = flags.check && attention.length > 0 ? EXIT.unhealthy : EXIT.done;
    if (cli.terminal.json) cli.terminal.document(documentOf('status', { exit, ...statusContent(name, seen) }));
    else if (flags.check) for (const { text } of attention) cli.terminal.result(text);
    else for (const line of screen(cli, name, seen)) cli.terminal.result(line);
    return exit;
  });
}

async function summary(cli: Cli): Promise<number> {
  return withStore(cli, {}, async (holdfast, { name }) => {
    const [counts, now] = [await holdfast.counts(), holdfast.now()];
    const behind = await heldBack(cli, holdfast, now);
    printSummary(
      cli,
      name,
      counts,
      behind.map(({ text }) => text),
      now,
    );
    return EXIT.done;
  });
}

/** The lines of `status`, also for `top`. */
export function screen(cli: Cli, store: string, seen: SeenStatus): string[] {
  const { out } = cli.terminal;
  const { counts, alive, attention, muted, oldest, now } = seen;
  const totals = Object.entries(totalsOf(counts)).flatMap(([state, count]) => {
    const { text, style } = signOf(state as ShownState);
    const words = `${text} ${count} ${stateWords(state as ShownState)}`;
    return count === 0 ? [] : [{ text: words, painted: out.paint(style, words) }];
  });
  const age = (words: string, since: readonly QueueSince[]) => {
    const [first] = since.toSorted((a, b) => a.since - b.since);
    return first ? [`${words} ${lasting(first.since, now)} (queue ${visible(first.queue)})`] : [];
  };
  const ages = [...age('ready for', oldest.ready), ...age('running for', oldest.running)];
  const lines = [
    attention.length === 0 ? 'Nothing needs attention.' : 'Attention',
    ...attention.flatMap(({ kind, text, command }) => [
      `  ${out.glyph(SIGN_OF_ATTENTION[kind])} ${text}`,
      `      ${out.paint('idle', command)}`,
    ]),
    ...totalLines(totals, out.columns).map((line, i) => `${i === 0 ? 'Tasks  ' : '       '}  ${line}`),
    `Due      ${dueLine(counts, now)}`,
    ...failingLine(seen),
    ...(ages.length > 0 ? [`Oldest   ${ages.join(', ')}`] : []),
    ...(muted > 0
      ? [`Muted    ${plural(muted, 'group', 'groups')} of failures: ${cli.command('failures --all')}`]
      : []),
    ...workerLines(alive, now).map((line, i) => `${i === 0 ? 'Workers' : '       '}  ${line}`),
    `Store    ${visible(store)}`,
  ];
  return lines.flatMap((line) => wrapped(line, out.columns));
}

/** What fails and is retried: without it, a screen of retries looks as if nothing were wrong. */
function failingLine({ counts, failing, now }: SeenStatus): string[] {
  if (counts.retrying === 0 || !failing) return [];
  const { type, reason, message, lastAt } = failing;
  const lately = failuresLately(failing, now);
  const last = clockTime(lastAt, now);
  const since = clockTime(Math.max(lately.since, failing.firstAt), now);
  const often =
    lately.count === 1 ? `1 failure at ${last}` : `${lately.count} failures since ${since}, the last at ${last}`;
  const what = `${visible(type)} with ${visible(reason)}, ${often}`;
  return [`Failing  ${what}: ${shortened(visible(message), LONGEST_MESSAGE)}`];
}

const LONGEST_MESSAGE = 100;

/** The totals by state in one line, without words: `○18 ▶3 ✕5`. */
export function shortTotals({ counts }: SeenStatus): string {
  return Object.entries(totalsOf(counts))
    .filter(([state, count]) => count > 0 && state !== 'succeeded' && state !== 'cancelled')
    .map(([state, count]) => `${signOf(state as ShownState).text}${count}`)
    .join(' ');
}

const GAP = '   ';

/** As many on a line as a terminal of so many columns has room for. */
function totalLines(totals: readonly Total[], columns: number): string[] {
  const lines: Total[][] = [[]];
  for (const total of totals) {
    const line = lines.at(-1) as Total[];
    const width = line.reduce((sum, { text }) => sum + widthOf(text) + GAP.length, 0) + widthOf(total.text);
    if (line.length > 0 && width > columns - 'Workers  '.length) lines.push([total]);
    else line.push(total);
  }
  return totals.length === 0 ? ['none'] : lines.map((line) => line.map(({ painted }) => painted).join(GAP));
}

interface Total {
  readonly text: string;
  readonly painted: string;
}

/** In the order in which they are shown. */
function totalsOf({ byState, retrying }: Counts): Readonly<Record<ShownState, number>> {
  const { running, ready, held, needs_manual, dead, succeeded, cancelled } = byState;
  const scheduled = byState.scheduled - retrying;
  return { running, ready, retrying, scheduled, held, needs_manual, dead, succeeded, cancelled };
}

function dueLine({ due, nextDueAt }: Counts, now: number): string {
  const next = nextDueAt !== undefined && nextDueAt > now ? `next ${until(nextDueAt, now)}` : '';
  return [`${due} now`, next].filter((part) => part !== '').join(', ');
}

function workerLines(alive: readonly WorkerRecord[], now: number): string[] {
  if (alive.length === 0) return ['none'];
  const width = Math.max(...alive.map(({ name }) => widthOf(visible(name))));
  return alive.map((worker) => {
    const only = worksAll(worker) ? '' : ', only its own tasks';
    const paused = worker.trouble ? `, claims nothing: ${visible(worker.trouble.reason)}` : '';
    return `${padded(visible(worker.name), width)}  ${worker.running} running, up for ${lasting(worker.joinedAt, now)} (${processWords(worker)}${only}${paused})`;
  });
}
