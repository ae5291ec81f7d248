import { hostname } from 'node:os';
import type { Command } from 'commander';
import { someoneWorks, worksAll } from '../../documents/workers-alive.ts';
import { WorkerNotFoundError } from '../../errors.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Takes, WorkerRecord } from '../../store/store.ts';
import { signOf } from '../../views/glyphs.ts';
import { workerJson } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { ago, clockTime, until } from '../../views/times.ts';
import { quoted, visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import { Problem, usage } from '../problem.ts';
import { declareSubcommands } from '../subcommands.ts';
import { nearest } from '../suggest.ts';
import { mayGoOn } from '../terminal/prompt.ts';
import type { Cell, Column } from '../terminal/table.ts';

export function declare(command: Command): void {
  declareSubcommands(command, list, [
    {
      usage: 'end WORKER…',
      summary: 'end the leases of workers that live but are stuck',
      alsoCalled: ['stop', 'kill', 'rm', 'remove', 'terminate', 'evict'],
      declare: (end) => end.argument('<workers...>').addHelpText('after', ENDING),
      action: end,
    },
  ]);
  command.addHelpText(
    'after',
    `
Lists the workers that share the store: which live, until when their leases last, what they run and what they take.
To stop one in good order, send its process SIGTERM. \`end\` is for one that does not listen any more.`,
  );
}

const ENDING = `
WORKER is its ID in \`holdfast workers\`, or its name if no other has it.
What it holds can be taken over at once, as if its process had died: no attempt is counted, and tasks that must not run twice
wait for a person. If it lives, it hears of that at once or within two renewals, stops what it runs, and works on as a new one. Nothing
is done to its process.`;

// ── List ──

async function list(cli: Cli): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const [workers, now] = [await holdfast.workers(), holdfast.now()];
    const items = workers.map((worker) => workerJson(worker, worker.keepsTasks));
    cli.terminal.answer('workers', { items }, () => print(cli, workers, now));
  });
}

function print(cli: Cli, workers: readonly WorkerRecord[], now: number): void {
  const { terminal } = cli;
  const rows = workers.map((worker) => workerRow(worker, now));
  terminal.table(WORKER_COLUMNS, rows, `No worker is there. Start one: ${cli.command('worker')}`);
  for (const { name, trouble } of workers) {
    if (!trouble) continue;
    const what = `${visible(name)} cannot work properly and claims only single tasks to test, since ${clockTime(trouble.since, now)}`;
    terminal.note(`${what}: ${visible(trouble.reason)}. ${visible(trouble.message)}`);
  }
  const stale = workers.find((worker) => worker.running > 0 && !worker.keepsTasks);
  if (!stale) return;
  const holds = plural(stale.running, 'task', 'tasks');
  terminal.note(`${visible(stale.name)} still holds ${holds}. A running worker takes over by itself, when it is sure;`);
  terminal.note(`  do not wait for that: ${cli.command(`workers end ${stale.id}`)}`);
}

/** The columns of workers in a list. */
export const WORKER_COLUMNS: readonly Column[] = [
  '',
  'ID',
  ['NAME', 8],
  ['WHERE', 10],
  'JOINED',
  'LEASE',
  'RUNNING',
  ['TAKES', 12],
];

/** A worker in a list. */
export function workerRow(worker: WorkerRecord, now: number): Cell[] {
  return [
    signOf(worker.keepsTasks ? 'running' : 'dead'),
    worker.id,
    visible(worker.name),
    processWords(worker),
    clockTime(worker.joinedAt, now),
    leaseWords(worker, now),
    worker.running,
    takesWords(worker),
  ];
}

/** `pid 731`, and its host if that is another one. */
export function processWords({ host, pid }: WorkerRecord): string {
  return host === hostname() ? `pid ${pid}` : `pid ${pid} on ${visible(host)}`;
}

/** How long its lease lasts. After that, another worker watches it for a while before it takes its tasks over. */
function leaseWords(worker: WorkerRecord, now: number): string {
  if (worker.leaseUntil <= now) return `ended ${ago(worker.leaseUntil, now)}`;
  return worker.keepsTasks ? `ends ${until(worker.leaseUntil, now)}` : 'no such process';
}

function takesWords(worker: WorkerRecord): string {
  if (!worksAll(worker)) return 'only its own tasks';
  const { types, queues, categories, capabilities } = worker.takes;
  const listed = (what: string, names: Takes['types']) => (names ? [`${what} ${names.map(visible).join(', ')}`] : []);
  const able = Object.entries(capabilities).map(([name, value]) => `${visible(name)}=${visible(String(value))}`);
  const parts = [
    types ? types.map(visible).join(', ') : 'any type',
    ...listed('queues', queues),
    ...listed('categories', categories),
    ...(able.length > 0 ? [`with ${able.join(', ')}`] : []),
  ];
  return parts.join('; ');
}

// ── End ──

async function end(cli: Cli, texts: readonly string[]): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const workers = findWorkers(cli, texts, await holdfast.workers());
    if (workers.some(({ running }) => running > 0) && !(await mayGoOn(cli, questionAbout(workers)))) return EXIT.failed;
    const ended: WorkerRecord[] = [];
    for (const worker of workers) if (await endOne(holdfast, worker)) ended.push(worker);
    await tell(cli, holdfast, workers, ended);
    return EXIT.done;
  });
}

/** False for a worker that has ended by itself meanwhile. */
async function endOne(holdfast: Operations, { id }: WorkerRecord): Promise<boolean> {
  try {
    await holdfast.endWorker(id);
    return true;
  } catch (error) {
    if (error instanceof WorkerNotFoundError) return false;
    throw error;
  }
}

/** The workers that a person means by their ids or names, each once. A number is an id first. */
function findWorkers(cli: Cli, texts: readonly string[], workers: readonly WorkerRecord[]): WorkerRecord[] {
  const found = texts.map((text) => {
    const byId = workers.find(({ id }) => String(id) === text);
    const named = byId ? [byId] : workers.filter(({ name }) => name === text);
    if (named.length === 0) throw unknownWorker(cli, text, workers);
    if (named.length > 1) throw ambiguous(cli, text, named);
    return named[0] as WorkerRecord;
  });
  return [...new Set(found)];
}

function unknownWorker(cli: Cli, text: string, workers: readonly WorkerRecord[]): Problem {
  const likely = nearest(text, [...new Set(workers.map(({ name }) => name))]).map(quoted);
  return new Problem('worker_not_found', `there is no worker ${visible(text)}`, {
    why: workers.length === 0 ? ['No worker is there.'] : [],
    hints: [
      ...(likely.length > 0 ? [`did you mean ${likely.join(', or ')}?`] : []),
      `all of them: ${cli.command('workers')}`,
    ],
  });
}

function ambiguous(cli: Cli, text: string, workers: readonly WorkerRecord[]): Problem {
  const each = workers.map(
    ({ id, host, pid, running }) => `${id} (pid ${pid} on ${visible(host)}, ${running} running)`,
  );
  return usage(`${workers.length} workers are called ${visible(text)}`, {
    why: [`Their IDs: ${each.join(', ')}.`],
    hints: [`end the one that is meant: ${cli.command(`workers end ${workers[0]?.id}`)}`],
  });
}

function questionAbout(workers: readonly WorkerRecord[]): string {
  const running = workers.reduce((sum, worker) => sum + worker.running, 0);
  const names = workers.map(({ id, name }) => `${visible(name)} (ID ${id})`).join(', ');
  return `End ${names}? ${plural(running, 'task that runs is', 'tasks that run are')} taken away.`;
}

async function tell(
  cli: Cli,
  holdfast: Operations,
  workers: readonly WorkerRecord[],
  ended: readonly WorkerRecord[],
): Promise<void> {
  const { terminal } = cli;
  const items = workers.map(({ id, name, running }) => ({
    id,
    name,
    running,
    ended: ended.some((one) => one.id === id),
  }));
  terminal.answer('workers.end', { exit: EXIT.done, items }, () => {
    for (const item of items) {
      const words = item.ended
        ? `is ended, ${plural(item.running, 'task', 'tasks')} to be taken over`
        : 'has left already';
      terminal.result(`${terminal.out.glyph('cancelled')} ${visible(item.name)} (ID ${item.id}) ${words}`);
    }
  });
  if (!ended.some(({ running }) => running > 0) || (await someoneWorks(holdfast))) return;
  terminal.note(`No other worker is running to take over: start ${cli.command('worker')}`);
}
