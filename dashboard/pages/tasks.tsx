import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { TaskState } from '../../src/task.ts';
import { TASK_STATES } from '../../src/task.ts';
import type { ShownState } from '../../src/views/glyphs.ts';
import { stateWords } from '../../src/views/glyphs.ts';
import { heldSentence, heldWords, summaryOf } from '../../src/views/task-text.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, ask } from '../data/address.ts';
import { post } from '../data/api.ts';
import { commandFor } from '../data/commands.ts';
import type { ListDocument, ListedTask } from '../data/documents.ts';
import { status, whyNot } from '../data/status.ts';
import {
  actOnMany,
  actOnTask,
  outcomeWords,
  statesFor,
  TASK_VERBS,
  type TaskVerb,
  verbsFor,
  WORDS,
} from '../data/task-acts.ts';
import { useDocument } from '../data/use-document.ts';
import { open } from '../parts/act.tsx';
import { Command } from '../parts/copy.tsx';
import { Icon } from '../parts/icon.tsx';
import { NameLink, PagesOfList } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { SavedViews } from '../parts/saved-views.tsx';
import { StateSign, TaskSign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { DueTime, Time } from '../parts/time.tsx';
import { announce } from '../shell/announcements.ts';
import { useKeys } from '../shell/keys.ts';
import { TaskPreview } from './task-preview.tsx';

const LIMIT = 50;

const COLUMNS: readonly (Column<ListedTask> & { readonly isUsual?: true })[] = [
  { id: 'task', title: 'Task', isUsual: true, cell: (task) => <TaskLink task={task} /> },
  { id: 'state', title: 'State', isUsual: true, cell: (task) => <TaskSign task={task} /> },
  { id: 'source', title: 'Source', isUsual: true, cell: ({ source }) => <NameLink of="sources" name={source} /> },
  {
    id: 'error',
    title: 'Last failure',
    isUsual: true,
    isWide: true,
    cell: ({ error, reason }) =>
      error ? (
        <>
          <NameLink of="reasons" name={error.reason} />
          <span class="muted two-lines">{visible(error.message)}</span>
        </>
      ) : (
        (reason ?? '')
      ),
  },
  {
    id: 'attempts',
    title: 'Attempts',
    isUsual: true,
    isNumber: true,
    cell: (task) => <Attempts task={task} />,
  },
  { id: 'when', title: 'When', isUsual: true, cell: (task) => <When task={task} /> },
  { id: 'queue', title: 'Queue', cell: ({ queue }) => <NameLink of="queues" name={queue} /> },
  { id: 'type', title: 'Type', cell: ({ type }) => <NameLink of="types" name={type} /> },
  { id: 'priority', title: 'Priority', isNumber: true, cell: ({ priority }) => priority },
  { id: 'category', title: 'Category', cell: ({ category }) => category && visible(category) },
  { id: 'key', title: 'Key', cell: ({ key }) => key && visible(key) },
  { id: 'executions', title: 'Executions', isNumber: true, cell: ({ executions }) => executions },
  { id: 'recorded', title: 'Recorded', cell: ({ submitted_at: at }) => <Time at={at} /> },
];

const FEW: readonly string[] = ['task', 'state', 'error'];

/** The marked rows of the list that is shown. */
const marked = signal<ReadonlyMap<number, ListedTask>>(new Map());

export function TasksPage() {
  const { query } = address.value;
  const filter = query.get('filter') ?? '';
  const before = query.get('before') ?? undefined;
  const use = useListInUse();
  const shown = useDocument<ListDocument>(addressOf('tasks', { filter, before, limit: String(LIMIT) }), use.isInUse);
  // Another filter shows other rows, so nothing is marked then.
  useEffect(() => {
    marked.value = new Map();
  }, [filter]);
  const columns = columnsIn(query.get('columns'));
  const previewed = previewIn(query);
  // A preview leaves room for few columns.
  const isNarrow = previewed !== undefined && !query.has('columns');
  const shownColumns = isNarrow ? columns.filter(({ id }) => FEW.includes(id)) : columns;
  useKeys([
    {
      keys: 'r',
      does: 'retry the marked rows, or the one with the focus',
      run: () => retryHere(shown.document, shown.again),
    },
    {
      keys: 'c',
      does: 'choose columns',
      run: () => document.querySelector<HTMLElement>('.column-choice summary')?.click(),
    },
  ]);
  return (
    <Page
      title="Tasks"
      actions={
        <>
          <SavedViews />
          <ColumnChoice columns={columns} />
        </>
      }
    >
      <StateCounts filter={filter} />
      <div class={previewed === undefined ? '' : 'with-preview'}>
        <Loaded shown={shown}>
          {({ items, next, total }) =>
            items.length === 0 && next !== null ? (
              <NotYet next={next} />
            ) : items.length === 0 ? (
              <NoTask filter={filter} />
            ) : (
              <LiveList use={use} shown={shown}>
                <Table
                  name="Tasks"
                  columns={shownColumns}
                  rows={items}
                  idOf={({ id }) => id}
                  marked={new Set(marked.value.keys())}
                  onMark={(ids, on) => mark(items, ids, on)}
                  previewed={previewed}
                  onPreview={(id) => ask({ task: String(id) }, { replace: true })}
                />
                <Bulk filter={filter} total={total} again={shown.again} />
                <PagesOfList next={next}>
                  <span class="muted">
                    {items.length.toLocaleString()}
                    {total.value !== null && ` of ${total.exact ? '' : 'about '}${total.value.toLocaleString()}`}
                  </span>
                </PagesOfList>
              </LiveList>
            )
          }
        </Loaded>
        {previewed !== undefined && <TaskPreview key={previewed} id={previewed} onChange={() => void shown.again()} />}
      </div>
    </Page>
  );
}

/** The task that is shown beside the list: `task` of the address. */
function previewIn(query: URLSearchParams): number | undefined {
  const id = Number(query.get('task') ?? 0);
  return Number.isSafeInteger(id) && id > 0 ? id : undefined;
}

function mark(items: readonly ListedTask[], ids: readonly (number | string)[], on: boolean): void {
  const next = new Map(marked.value);
  for (const item of items.filter(({ id }) => ids.includes(id))) {
    if (on) next.set(item.id, item);
    else next.delete(item.id);
  }
  marked.value = next;
}

// ── Rows ──

function TaskLink({ task }: { readonly task: ListedTask }) {
  const summary = summaryOf(task);
  return (
    <a href={`tasks/${task.id}`} class="task-link" title={summary}>
      <span class="mono">#{task.id}</span> <bdi>{summary}</bdi>
    </a>
  );
}

/** How many were charged, and by reason on hover. */
function Attempts({ task }: { readonly task: ListedTask }) {
  const { attempts, attempts_by_reason: byReason, deferrals } = task;
  const words = byReason.map(({ reason, count }) => `${reason} ${count}`).join(', ');
  return (
    <span
      title={
        [words, deferrals > 0 ? `${deferrals} deferred` : ''].filter((part) => part !== '').join('; ') || undefined
      }
    >
      {attempts}
      {deferrals > 0 && <span class="muted"> +{deferrals}</span>}
    </span>
  );
}

function When({ task }: { readonly task: ListedTask }) {
  const {
    due_at: due,
    ended_at: ended,
    running,
    held_by: heldBy,
    submitted_at: submitted,
    state,
    source,
    queue,
  } = task;
  const seen = { ...(heldBy && { heldBy }), source, queue };
  if (running) return <Time at={running.since} />;
  if (state === 'scheduled' && due) return <DueTime at={due} />;
  if (heldBy) return <span title={heldSentence(seen)}>waits: {heldWords(seen) || 'no worker'}</span>;
  return <Time at={ended ?? submitted} />;
}

// ── Filter by state ──

const SHOWN: readonly TaskState[] = [
  'ready',
  'running',
  'scheduled',
  'held',
  'needs_manual',
  'dead',
  'succeeded',
  'cancelled',
];

function StateCounts({ filter }: { readonly filter: string }) {
  const { by_state: byState } = status.value ?? {};
  const present = /(?:^|\s)state:(\S+)/.exec(filter)?.[1];
  const rest = filter.replace(/(^|\s)-?state:\S+/g, ' ').trim();
  const all = byState && TASK_STATES.reduce((sum, state) => sum + byState[state], 0);
  return (
    <nav aria-label="States" class="counts">
      <a
        href={addressOf('tasks', { ...columnsOfQuery(), filter: rest })}
        {...(present === undefined && { 'aria-current': 'true' })}
      >
        All {all !== undefined && <span class="muted">{all.toLocaleString()}</span>}
      </a>
      {SHOWN.map((state) => (
        <a
          key={state}
          href={addressOf('tasks', { ...columnsOfQuery(), filter: `state:${state} ${rest}`.trim() })}
          {...(present === state && { 'aria-current': 'true' })}
        >
          <StateSign state={state as ShownState} />
          {byState && <span class="muted">{byState[state].toLocaleString()}</span>}
        </a>
      ))}
    </nav>
  );
}

/** A page of answers compares the filter with a limited number of tasks; the next page goes on with older ones. */
function NotYet({ next }: { readonly next: string }) {
  return (
    <Empty title={`None of the tasks from #${next} on matches.`}>
      <button type="button" onClick={() => ask({ before: next })}>
        Look at older ones
      </button>
    </Empty>
  );
}

function NoTask({ filter }: { readonly filter: string }) {
  if (filter === '') {
    return (
      <Empty title="There is no task yet.">
        <p>Record one from a program with enqueue, or from the command line:</p>
        <Command text={commandFor('run', '--', 'echo', 'hello')} />
      </Empty>
    );
  }
  const terms = filter.match(/(?:[^\s"]|"(?:\\.|[^"\\])*")+/g) ?? [];
  return (
    <Empty title="No task matches.">
      <p>Leave out a term:</p>
      <ul class="counts">
        {terms.map((term) => (
          <li key={term}>
            <a href={addressOf('tasks', { filter: terms.filter((each) => each !== term).join(' ') })}>
              without <code>{visible(term)}</code>
            </a>
          </li>
        ))}
      </ul>
    </Empty>
  );
}

// ── Columns ──

function columnsIn(chosen: string | null): readonly Column<ListedTask>[] {
  if (!chosen) return COLUMNS.filter(({ isUsual }) => isUsual);
  const ids = ['task', ...chosen.split(',')];
  return COLUMNS.filter(({ id }) => ids.includes(id));
}

function columnsOfQuery(): { readonly columns?: string } {
  const columns = address.value.query.get('columns');
  return columns === null ? {} : { columns };
}

function ColumnChoice({ columns }: { readonly columns: readonly Column<ListedTask>[] }) {
  const ids = columns.map(({ id }) => id);
  const usual = COLUMNS.filter(({ isUsual }) => isUsual).map(({ id }) => id);
  const choose = (id: string) => {
    const next = COLUMNS.map((each) => each.id).filter((each) =>
      each === id ? !ids.includes(id) : ids.includes(each),
    );
    ask({ columns: next.join() === usual.join() ? undefined : next.join(',') }, { replace: true });
  };
  return (
    <details class="drop-down column-choice">
      <summary class="button">
        <Icon name="columns" /> Columns
      </summary>
      <fieldset class="drop-down-content">
        <legend class="unseen">Columns of the list</legend>
        {COLUMNS.filter(({ id }) => id !== 'task').map(({ id, title }) => (
          <label key={id} class="check">
            <input type="checkbox" checked={ids.includes(id)} onChange={() => choose(id)} />
            {title}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

// ── Acts on many ──

/** What can be done with the marked rows, or with all that match. */
function Bulk({
  filter,
  total,
  again,
}: {
  readonly filter: string;
  readonly total: ListDocument['total'];
  readonly again: () => Promise<void>;
}) {
  const tasks = [...marked.value.values()];
  const count = tasks.length;
  if (count === 0) {
    return (
      <div class="bulk quiet-bulk">
        <span class="muted">Mark rows, or act on all that match:</span>
        <div class="bulk-acts">
          <BulkButtons verbs={TASK_VERBS} onVerb={(verb) => askForAll(verb, filter, again)} />
          <Redrive filter={filter} />
        </div>
      </div>
    );
  }
  const verbs = TASK_VERBS.filter((verb) => tasks.some(({ state }) => isForMany(verb, state)));
  return (
    <div class="bulk">
      <span>
        {count} marked{total.value !== null && total.value > count && ` of ${total.value.toLocaleString()}`}
      </span>
      <BulkButtons verbs={verbs} onVerb={(verb) => askForMarked(verb, again)} />
      <button type="button" class="quiet" onClick={() => (marked.value = new Map())}>
        Unmark all
      </button>
    </div>
  );
}

function BulkButtons({
  verbs,
  onVerb,
}: {
  readonly verbs: readonly TaskVerb[];
  readonly onVerb: (verb: TaskVerb) => void;
}): ComponentChildren {
  return verbs.map((verb) => {
    const reason = whyNot(verb);
    return (
      <button
        key={verb}
        type="button"
        class={verb === 'cancel' ? 'severe' : ''}
        aria-disabled={reason !== undefined}
        title={reason}
        onClick={() => (reason === undefined ? onVerb(verb) : announce(reason, { isProblem: true }))}
      >
        {WORDS[verb].does}
      </button>
    );
  });
}

/** Opens the form of a redrive, which puts ended tasks back at a rate. */
function Redrive({ filter }: { readonly filter: string }) {
  return (
    <a class="button" href={addressOf('redrives/new', { filter })}>
      Redrive …
    </a>
  );
}

function retryHere(document: ListDocument | undefined, again: () => Promise<void>): void {
  if (marked.value.size > 0) {
    askForMarked('retry', again);
    return;
  }
  const row = window.document.activeElement?.closest('tr')?.querySelector<HTMLAnchorElement>('a.task-link');
  const task = document?.items.find(({ id }) => row?.href.endsWith(`/tasks/${id}`));
  if (task) open(actOnTask('retry', task, () => void again()));
  else announce('Mark rows with x, or go to one with j and k, then press r.');
}

/** Tasks that have succeeded are left out of a retry of many: their work would be done a second time. */
function isForMany(verb: TaskVerb, state: TaskState): boolean {
  return verbsFor(state).includes(verb) && !(verb === 'retry' && state === 'succeeded');
}

function askForMarked(verb: TaskVerb, again: () => Promise<void>): void {
  const tasks = [...marked.value.values()].filter(({ state }) => isForMany(verb, state));
  const left = marked.value.size - tasks.length;
  const ids = tasks.map(({ id }) => id);
  const [one] = tasks;
  if (!one) {
    announce('Nothing that is marked can be changed so.', { isProblem: true });
    return;
  }
  if (tasks.length === 1 && left === 0) {
    open(actOnTask(verb, one, () => done(again)));
    return;
  }
  open({
    title: `${WORDS[verb].does}: ${ids.length} tasks`,
    words: (
      <>
        <p>{manyWords(verb)}</p>
        {left > 0 && (
          <p class="muted">{left} of those that are marked stay as they are, for their state does not allow it.</p>
        )}
        <Sample tasks={tasks} />
      </>
    ),
    does: WORDS[verb].does,
    isSevere: verb === 'cancel',
    command: commandFor(verb, ...ids),
    run: async (note) => {
      const outcome = await actOnMany(verb, ids, { note });
      done(again);
      return outcomeWords(verb, outcome);
    },
  });
}

/** Asks the server for the numbers of all tasks that match now, and acts on exactly these: tasks that match later are not changed. */
async function askForAll(verb: TaskVerb, filter: string, again: () => Promise<void>): Promise<void> {
  let frozen: {
    readonly from: readonly TaskState[];
    readonly ids: readonly number[];
    readonly total: number;
    readonly sample: readonly ListedTask[];
  };
  try {
    const asked = address.value;
    frozen = await post('selections', { filter, verb });
    // The person has opened another list meanwhile: a dialog about this one would confuse.
    if (address.value !== asked) return;
  } catch (error) {
    return announce(error instanceof Error ? error.message : String(error), { isProblem: true });
  }
  const { from, ids, total, sample } = frozen;
  if (total === 0)
    return announce(
      `Nothing that matches can be changed so: it must be ${statesFor(verb).map(stateWords).join(', ')}.`,
    );
  open({
    title: `${WORDS[verb].does}: all ${total.toLocaleString()} that match now`,
    words: (
      <>
        <p>{manyWords(verb)} Tasks that come later, or change meanwhile, stay as they are.</p>
        <Sample tasks={sample} total={total} />
      </>
    ),
    does: WORDS[verb].does,
    isSevere: verb === 'cancel',
    ...(total > MANY && { typed: total }),
    command: commandFor(verb, ...(filter === '' ? [] : [filter])),
    run: async (note) => {
      const onProgress = (count: number) => announce(`${count.toLocaleString()} of ${total.toLocaleString()} …`);
      const outcome = await actOnMany(verb, ids, { note, from, onProgress });
      done(again);
      return outcomeWords(verb, outcome);
    },
  });
}

/** For more tasks than this, a person types their number first, as on the command line. */
const MANY = 1_000;

function manyWords(verb: TaskVerb): string {
  return WORDS[verb].means.replace(/^It (is|becomes|waits|ends)/, (_, word: string) => `Each ${word}`);
}

function done(again: () => Promise<void>): void {
  marked.value = new Map();
  void again();
}

function Sample({ tasks, total = tasks.length }: { readonly tasks: readonly ListedTask[]; readonly total?: number }) {
  const few = tasks.slice(0, 5);
  return (
    <ul class="sample">
      {few.map((task) => (
        <li key={task.id}>
          <span class="mono">#{task.id}</span> {summaryOf(task)} <TaskSign task={task} />
        </li>
      ))}
      {total > few.length && <li class="muted">and {(total - few.length).toLocaleString()} more</li>}
    </ul>
  );
}
