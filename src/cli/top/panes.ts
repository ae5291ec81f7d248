import { pageOf } from '../../documents/list.ts';
import { shownTask } from '../../documents/show.ts';
import {
  holdSource,
  listedSources,
  probeSource,
  releaseSource,
  shownSource,
  sourceOf,
} from '../../documents/sources.ts';
import type { SeenTask } from '../../queue/operate.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { failureGroupLines } from '../../views/failure-text.ts';
import { summaryOf } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { explanationLines } from '../commands/explain.ts';
import { groupTable, isPutAside } from '../commands/failures.ts';
import { COLUMNS, rowsOf } from '../commands/list.ts';
import { refuseDuplicate } from '../commands/retry.ts';
import { page } from '../commands/show.ts';
import { SOURCE_COLUMNS, sourceLines, sourceRow } from '../commands/sources.ts';
import { WORKER_COLUMNS, workerRow } from '../commands/workers.ts';
import type { Cell, Column } from '../terminal/table.ts';

export const PANES = ['tasks', 'failures', 'sources', 'workers'] as const;
export type PaneName = (typeof PANES)[number];

/** What the panes read from and act on. */
export interface PaneContext {
  readonly cli: Cli;
  readonly holdfast: Operations;
  /** Of the tasks that are listed. */
  readonly filter: string;
  readonly columns: number;
}

/** A line of a pane, and what it is about: the number of a task or worker, the id of a group, the name of a source. */
interface Row {
  readonly key: string;
  readonly cells: readonly Cell[];
}

export interface Listed {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Said if there are none. */
  readonly none: string;
}

/** What a key does with the selected line, after a person was asked. */
interface Action {
  readonly key: string;
  /** What the last line of the screen says of it. */
  readonly words: string;
  /** Reads what the line is about again: the line may be old. @throws Problem or an error of the store if it cannot be done. */
  readonly ask: (context: PaneContext, key: string) => Promise<Question>;
}

/** What a person is asked, and what a yes does. */
export interface Question {
  readonly text: string;
  /** Returns what was done. @throws Problem or an error of the store, also if what was asked about has changed meanwhile. */
  readonly yes: () => Promise<string>;
}

/** Other lines about what is selected. */
interface Look {
  readonly key: string;
  readonly words: string;
  readonly lines: (context: PaneContext, key: string) => Promise<readonly string[]>;
}

export interface Pane {
  readonly title: string;
  readonly list: (context: PaneContext) => Promise<Listed>;
  /** What Enter shows. */
  readonly show: (context: PaneContext, key: string) => Promise<readonly string[]>;
  readonly looks: readonly Look[];
  readonly actions: readonly Action[];
  /** The filter of the tasks that belong to what is selected. */
  readonly tasksOf?: (key: string) => string;
}

/** How many lines a pane has. */
const MOST_ROWS = 100;

/** Without a filter: what is over and needs nobody is left out. */
const NOT_OVER = 'state:running,ready,scheduled,held,needs_manual,dead';

export const PANE: Readonly<Record<PaneName, Pane>> = {
  tasks: {
    title: 'Tasks',
    list: listTasks,
    show: async ({ cli, holdfast }, key) =>
      page(cli, holdfast, await shownTask(holdfast, await holdfast.get(Number(key)))),
    looks: [
      {
        key: 'e',
        words: 'explain',
        lines: async ({ cli, holdfast }, key) => explanationLines(cli, await holdfast.explain(Number(key))),
      },
    ],
    actions: [
      { key: 'r', words: 'retry', ask: retry },
      { key: 'c', words: 'cancel', ask: cancel },
      { key: 'h', words: 'hold or release', ask: holdOrReleaseTask },
    ],
  },
  failures: {
    title: 'Failures',
    list: async ({ holdfast, columns }) => {
      const groups = (await holdfast.failures.list()).filter((group) => !isPutAside(group)).slice(0, MOST_ROWS);
      const { rows, ...rest } = groupTable(groups, holdfast.now(), columns);
      const none = 'There are no open groups of failures.';
      return { ...rest, rows: rows.map((cells, i) => ({ key: (groups[i] as { id: string }).id, cells })), none };
    },
    show: async ({ holdfast }, key) => {
      const group = await holdfast.failures.get(key);
      return [`${group.id} ${group.state}`, ...failureGroupLines(group, holdfast.now())];
    },
    looks: [],
    actions: [
      { key: 'a', words: 'acknowledge', ask: aboutGroup('acknowledge', (id) => `Acknowledge ${id}?`) },
      { key: 'm', words: 'mute', ask: aboutGroup('mute', (id) => `Mute ${id}, which leaves it out of the list?`) },
      { key: 'd', words: 'resolve', ask: aboutGroup('resolve', (id) => `Resolve ${id}: is its cause mended?`) },
    ],
    tasksOf: (key) => `fingerprint:${key}`,
  },
  sources: {
    title: 'Sources',
    list: async ({ holdfast }) => {
      const { sources } = await listedSources(holdfast);
      const rows = sources.slice(0, MOST_ROWS).map((source) => ({ key: source.name, cells: sourceRow(source) }));
      return { columns: SOURCE_COLUMNS, rows, none: 'No source has ready or running tasks.' };
    },
    show: async ({ cli, holdfast }, key) => sourceLines(cli, key, await shownSource(holdfast, key)),
    looks: [],
    actions: [
      { key: 'h', words: 'hold or release', ask: holdOrReleaseSource },
      { key: 'x', words: 'probe', ask: probe },
    ],
    tasksOf: (key) => `source:${JSON.stringify(key)}`,
  },
  workers: {
    title: 'Workers',
    list: async ({ holdfast }) => {
      const [workers, now] = [await holdfast.workers(), holdfast.now()];
      const rows = workers
        .slice(0, MOST_ROWS)
        .map((worker) => ({ key: String(worker.id), cells: workerRow(worker, now) }));
      return { columns: WORKER_COLUMNS, rows, none: 'No worker is there.' };
    },
    show: workerLines,
    looks: [],
    actions: [],
  },
};

/** Those that run first; then the newest that match. */
async function listTasks({ holdfast, filter }: PaneContext): Promise<Listed> {
  const running = filter === '' ? await holdfast.list({ states: ['running'], limit: MOST_ROWS }) : [];
  const known = new Set(running.map(({ id }) => id));
  const { tasks } = await pageOf(holdfast, { filter: filter === '' ? NOT_OVER : filter, limit: MOST_ROWS });
  const all = [...running, ...tasks.filter(({ id }) => !known.has(id))].slice(0, MOST_ROWS);
  const rows = await rowsOf(holdfast, all);
  return {
    columns: COLUMNS,
    rows: rows.map((cells, i) => ({ key: String((all[i] as Task).id), cells })),
    none: filter === '' ? 'No task waits, runs or needs a person, and none is dead.' : 'No task matches.',
  };
}

async function workerLines({ cli, holdfast }: PaneContext, key: string): Promise<readonly string[]> {
  const worker = (await holdfast.workers()).find(({ id }) => String(id) === key);
  if (!worker) return [`worker ${key} has left`];
  const running = (await holdfast.list({ states: ['running'], limit: 1_000 })).filter(
    (task) => task.running?.worker === worker.name,
  );
  const rows = await rowsOf(holdfast, running.slice(0, MOST_ROWS));
  const { out } = cli.terminal;
  return [
    `${out.paint('strong', `worker ${visible(worker.name)}`)} (ID ${worker.id}, pid ${worker.pid} on ${visible(worker.host)})`,
    ...(worker.trouble
      ? [`cannot work properly: ${visible(worker.trouble.reason)}. ${visible(worker.trouble.message)}`]
      : []),
    `takes  ${worker.takes.types ? worker.takes.types.map(visible).join(', ') : 'any type'}`,
    running.length === 0 ? 'It runs nothing now.' : 'It runs',
    ...rows.map(
      ([glyph, id, task, , , , when]) => `  ${textOf(glyph)} #${textOf(id)} ${textOf(task)}  ${textOf(when)}`,
    ),
    ...(worker.keepsTasks ? [] : [`It is lost. Do not wait for its lease: ${cli.command(`workers end ${worker.id}`)}`]),
  ];
}

function textOf(cell: Cell | undefined): string {
  return typeof cell === 'object' ? cell.text : String(cell ?? '');
}

// ── Actions ──

async function retry({ cli, holdfast }: PaneContext, key: string): Promise<Question> {
  const task = await holdfast.get(Number(key));
  await refuseDuplicate(cli, holdfast, task, {});
  return {
    text: `Retry #${key} now?`,
    yes: async () => {
      await holdfast.retry(task.id, { actor: cli.actor, ifStill: asSeen(task) });
      return `#${key} ${summaryOf(task)} is due now${task.state === 'scheduled' ? '' : ', in a new round'}`;
    },
  };
}

async function cancel({ cli, holdfast }: PaneContext, key: string): Promise<Question> {
  const task = await holdfast.get(Number(key));
  return {
    text: `Cancel #${key}, which is ${task.state}?`,
    yes: async () => {
      await holdfast.cancel(task.id, { actor: cli.actor, ifStill: asSeen(task) });
      const { state } = await holdfast.get(task.id);
      return state === 'running' ? `#${key} is asked to stop` : `#${key} is ${state}`;
    },
  };
}

async function holdOrReleaseTask({ cli, holdfast }: PaneContext, key: string): Promise<Question> {
  const task = await holdfast.get(Number(key));
  const options = { actor: cli.actor, ifStill: asSeen(task) };
  if (task.state === 'held') {
    return {
      text: `Release #${key}?`,
      yes: () => holdfast.release(task.id, options).then(() => `#${key} is released`),
    };
  }
  return { text: `Hold #${key}?`, yes: () => holdfast.hold(task.id, options).then(() => `#${key} is held`) };
}

function asSeen({ state, executions }: Task): SeenTask {
  return { state, executions };
}

function aboutGroup(verb: 'acknowledge' | 'mute' | 'resolve', text: (id: string) => string): Action['ask'] {
  return async ({ cli, holdfast }, key) => ({
    text: text(key),
    yes: async () => `${key} is ${(await holdfast.failures[verb](key, { actor: cli.actor })).state}`,
  });
}

async function holdOrReleaseSource({ cli, holdfast }: PaneContext, key: string): Promise<Question> {
  const seen = await sourceOf(holdfast, key);
  const name = visible(key);
  return {
    text: seen.holdsTasks ? `Release ${name} (${seen.words})?` : `Hold ${name}?`,
    yes: async () => {
      const now = await sourceOf(holdfast, key);
      if (now.state !== seen.state) return `${name} has changed: it is ${now.words} now. Nothing was done.`;
      await (now.holdsTasks ? releaseSource : holdSource)(holdfast, now, { actor: cli.actor });
      return `${name} is ${now.holdsTasks ? 'released' : 'held'}`;
    },
  };
}

async function probe({ cli, holdfast }: PaneContext, key: string): Promise<Question> {
  const name = visible(key);
  return {
    text: `Test ${name} with its next task?`,
    yes: async () => {
      const { changed } = await probeSource(holdfast, await sourceOf(holdfast, key), { actor: cli.actor });
      return changed ? `${name} is tested with its next task` : `${name} is not tested: it is not down`;
    },
  };
}
