import type { Command } from 'commander';
import { type Queue, queueJson, queueNamed, queuesOf } from '../../documents/queues.ts';
import type { Operations } from '../../queue/operations.ts';
import { QUEUE_ORDERS, type QueueOrder } from '../../task.ts';
import { doneByWords } from '../../views/done-by.ts';
import { type ShownState, signOf } from '../../views/glyphs.ts';
import { plural } from '../../views/plural.ts';
import { limitWords } from '../../views/source-state.ts';
import { lasting } from '../../views/times.ts';
import { quoted, visible } from '../../views/visible.ts';
import type { Exit } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { declareLimits, type LimitFlags, limitsFrom } from '../flags/limit-flags.ts';
import { hintAtWorkersFor } from '../flags/record-flags.ts';
import { mayBeNew, unknownName } from '../flags/unknown-name.ts';
import { withStore } from '../opening/open-store.ts';
import { usage } from '../problem.ts';
import { declareSubcommands } from '../subcommands.ts';
import { nearest } from '../suggest.ts';
import type { Column } from '../terminal/table.ts';

interface Flags extends LimitFlags {
  readonly note?: string;
  readonly fair?: boolean;
  readonly exact?: boolean;
}

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, list, [
    {
      usage: 'pause NAME [--note TEXT]',
      summary: 'pause a queue: none of its tasks starts, on any worker, and what runs goes on',
      alsoCalled: ['hold', 'stop', 'shut'],
      declare: (pause) => pause.argument('<name>').option('--note <text>', 'a note about why'),
      action: (cli, [name], flags) => pause(cli, name as string, flags),
    },
    {
      usage: 'resume NAME [--note TEXT]',
      summary: 'resume a paused queue',
      alsoCalled: ['release', 'unpause', 'start', 'continue'],
      declare: (resume) => resume.argument('<name>').option('--note <text>', 'a note about why'),
      action: (cli, [name], flags) => resume(cli, name as string, flags),
    },
    {
      usage: `order NAME ${QUEUE_ORDERS.join('|')} [--fair|--exact]`,
      summary: 'set the order of a queue; its waiting tasks are put into it',
      alsoCalled: ['sort', 'reorder'],
      declare: (order) =>
        order
          .argument('<name>')
          .argument('<order>')
          .option('--fair', 'serve its sources in turn; the order then holds inside each source')
          .option('--exact', 'the order holds over all of its sources, as unless set')
          .addHelpText('after', ORDERS),
      action: (cli, [name, order], flags) => reorder(cli, name as string, orderFrom(order as string), fairFrom(flags)),
    },
    {
      usage: 'limit NAME [--pace 10/s] [--concurrency 4] | --none',
      summary: 'limit how often the tasks of a queue start, and how many run at the same time',
      alsoCalled: ['throttle', 'limits', 'pace', 'rate'],
      declare: declareLimits,
      action: (cli, [name], flags) => limit(cli, name as string, flags),
    },
  ]);
  command.addHelpText(
    'after',
    '\nLists the queues that were ever used: their order and limits, what is in them, and who paused them.',
  );
}

const ORDERS = `
  fifo             the oldest first (default)
  lifo             the newest first
  priority         the highest priority first, then the oldest
  weighted_random  drawn by chance, in proportion to the priority
A program that says the order of a queue when it opens the store sets it again.`;

// ── List ──

async function list(cli: Cli): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const queues = await queuesOf(holdfast);
    cli.terminal.answer('queues', { items: queues.map(queueJson) }, () => print(cli, queues, holdfast.now()));
  });
}

function print(cli: Cli, queues: readonly Queue[], now: number): void {
  const { terminal } = cli;
  const age = (since: number | undefined) => (since === undefined ? '' : lasting(since, now));
  const rows = queues.map(({ name, order, fair, ready, running, scheduled, exact, paused, ...queue }) => [
    paused ? signOf('held') : '',
    visible(name),
    wordsOf(order, fair),
    ready,
    age(queue.oldestReady),
    running,
    age(queue.oldestRunning),
    exact ? scheduled : `${scheduled}+`,
    limitWords(queue),
    paused ? doneByWords(paused, now) : '',
  ]);
  const columns: Column[] = [
    '',
    ['QUEUE', 12],
    'ORDER',
    'READY',
    'FOR',
    'RUNNING',
    'FOR',
    'SCHEDULED',
    'AT MOST',
    ['PAUSED', 12],
  ];
  terminal.table(columns, rows, 'No queue was ever used.');
  const first = queues.find(({ paused }) => paused);
  if (first) terminal.note(`Resume one: ${cli.command(`queues resume ${quoted(first.name)}`)}`);
}

// ── Change ──

async function pause(cli: Cli, name: string, { note }: Flags): Promise<Exit> {
  return withStore(cli, {}, async (holdfast) => {
    const before = await queueNamed(holdfast, name);
    if (!(await mayBeNew(cli, { kind: 'queue', name, known: await namesOf(holdfast) }, 'pause'))) return EXIT.failed;
    await holdfast.pauseQueue(name, { actor: cli.actor, ...(note !== undefined && { note }) });
    const queue = await queueNamed(holdfast, name);
    const words = before?.paused ? `was paused already: ${doneByWords(before.paused, holdfast.now())}` : 'is paused';
    tell(cli, 'pause', queue, {
      changed: !before?.paused,
      glyph: 'held',
      words: `${words}, ${plural(queue?.ready ?? 0, 'ready task waits', 'ready tasks wait')}`,
    });
    const goesOn =
      queue && queue.running > 0 ? `${plural(queue.running, 'running task goes on', 'running tasks go on')}. ` : '';
    cli.terminal.note(`${goesOn}Resume it: ${cli.command(`queues resume ${quoted(name)}`)}`);
  });
}

async function resume(cli: Cli, name: string, { note }: Flags): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const before = await queueNamed(holdfast, name);
    if (!before) throw unknownName(cli, { kind: 'queue', name, known: await namesOf(holdfast) });
    await holdfast.resumeQueue(name, { actor: cli.actor, ...(note !== undefined && { note }) });
    const queue = await queueNamed(holdfast, name);
    const ready = queue?.ready ?? 0;
    tell(cli, 'resume', queue, {
      changed: before.paused !== undefined,
      glyph: 'ready',
      words: before.paused ? `goes on, with ${plural(ready, 'ready task', 'ready tasks')}` : 'was not paused',
    });
    if (before.paused && ready > 0) await hintAtWorkersFor(cli, holdfast, { queues: [name] });
  });
}

async function reorder(cli: Cli, name: string, order: QueueOrder, asked: boolean | undefined): Promise<Exit> {
  return withStore(cli, {}, async (holdfast) => {
    const before = await queueNamed(holdfast, name);
    if (!(await mayBeNew(cli, { kind: 'queue', name, known: await namesOf(holdfast) }, 'order'))) return EXIT.failed;
    const fair = asked ?? before?.fair ?? false;
    await holdfast.setQueueOrder(name, order);
    if (asked !== undefined) await holdfast.setQueueFair(name, asked);
    const [is, was] = [wordsOf(order, fair), before && wordsOf(before.order, before.fair)];
    const changed = is !== was;
    tell(cli, 'order', await queueNamed(holdfast, name), {
      changed,
      glyph: 'succeeded',
      words: changed ? `is ${is} from now on${was ? `, and was ${was}` : ''}` : `was ${is} already`,
    });
  });
}

async function limit(cli: Cli, name: string, flags: Flags): Promise<Exit> {
  const limits = limitsFrom(flags, cli.command('queues limit'));
  return withStore(cli, {}, async (holdfast) => {
    const before = await queueNamed(holdfast, name);
    if (!(await mayBeNew(cli, { kind: 'queue', name, known: await namesOf(holdfast) }, 'limit'))) return EXIT.failed;
    await holdfast.limitQueue(name, limits);
    const queue = await queueNamed(holdfast, name);
    const is = limitWords(queue ?? {});
    tell(cli, 'limit', queue, {
      changed: is !== limitWords(before ?? {}),
      glyph: 'succeeded',
      words: is === '' ? 'has no limits' : `starts at most ${is}`,
    });
  });
}

function wordsOf(order: QueueOrder, fair: boolean): string {
  return fair ? `${order}, fair` : order;
}

function fairFrom({ fair, exact }: Flags): boolean | undefined {
  if (fair && exact) throw usage('a queue is either --fair or --exact, not both');
  return fair || exact ? fair === true : undefined;
}

interface Telling {
  readonly changed: boolean;
  readonly glyph: ShownState;
  readonly words: string;
}

function tell({ terminal }: Cli, step: string, queue: Queue | undefined, { changed, glyph, words }: Telling): void {
  if (!queue) return;
  terminal.answer(`queues.${step}`, { exit: EXIT.done, changed, queue: queueJson(queue) }, () =>
    terminal.result(`${terminal.out.glyph(glyph)} ${visible(queue.name)} ${words}`),
  );
}

function orderFrom(text: string): QueueOrder {
  const order = QUEUE_ORDERS.find((each) => each === text);
  if (order) return order;
  const [like] = nearest(text, QUEUE_ORDERS);
  throw usage(`the order of a queue is one of ${QUEUE_ORDERS.join(', ')}, got "${visible(text)}"`, {
    hints: like === undefined ? [] : [`did you mean "${like}"?`],
  });
}

async function namesOf(holdfast: Operations): Promise<string[]> {
  return (await holdfast.queues()).map((queue) => queue.name);
}
