import { useState } from 'preact/hooks';
import { formatDuration } from '../../src/duration.ts';
import { summaryOf } from '../../src/views/task-text.ts';
import { visible, visibleOutput } from '../../src/views/visible.ts';
import { addressOf, segment } from '../data/address.ts';
import type {
  ActionJson,
  ExecutionJson,
  ExplainDocument,
  HistoryJson,
  ShowDocument,
  StrayJson,
  TaskJson,
} from '../data/documents.ts';
import { actOnTask, verbsFor } from '../data/task-acts.ts';
import { attemptsIn } from '../data/timeline.ts';
import { useDocument } from '../data/use-document.ts';
import { open } from '../parts/act.tsx';
import { Decision } from '../parts/decision.tsx';
import { JsonText, Text } from '../parts/json.tsx';
import { NameLink } from '../parts/links.tsx';
import { Facts, Page, Section } from '../parts/page.tsx';
import { Glyph, Sign, TaskSign } from '../parts/sign.tsx';
import { Loaded } from '../parts/states.tsx';
import { TaskActs, Why } from '../parts/task-parts.tsx';
import { DueTime, Time } from '../parts/time.tsx';
import { useKeys } from '../shell/keys.ts';
import { TaskOutput } from './task-output.tsx';
import { endWords, styleOf, TaskTimeline, thenWords } from './task-timeline.tsx';
import { WhatIf } from './what-if.tsx';

/** Why is it in its state, what happened, and what happens next? */
export function TaskPage({ id }: { readonly id: string }) {
  const path = `tasks/${segment(id)}`;
  const shown = useDocument<ShowDocument>(path);
  const { document } = shown;
  const again = () => {
    void shown.again();
  };
  const task = document?.task;
  useKeys([
    {
      keys: 'r',
      does: 'retry now',
      run: () => task && verbsFor(task.state).includes('retry') && open(actOnTask('retry', task, again)),
    },
    { keys: 'y', does: 'copy the number', run: () => void navigator.clipboard?.writeText(id) },
  ]);
  return (
    <Page
      title={task ? `#${task.id} ${visible(task.type)}` : `#${id}`}
      heading={task ? <Heading task={task} /> : `#${id}`}
      back={{ to: 'tasks', words: 'Tasks' }}
      actions={task && <TaskActs task={task} again={again} />}
    >
      <Loaded shown={shown}>
        {(known) => (
          <>
            {known.explain && <Why task={known.task} explained={known.explain} />}
            {known.task.state === 'needs_manual' && (
              <Section title="Your answer">
                <Decision task={known.task} choices={known.choices} onDone={again} />
              </Section>
            )}
            <TaskTimeline document={known} />
            <div class="columns task-columns">
              <div>
                <TaskOutput task={known.task} />
                <Executions history={known.history} task={known.task} />
              </div>
              <div>
                <AboutTask document={known} />
                <Section title="Input">
                  <JsonText value={known.task.input} name="input" isHidden={known.task.hidden} />
                </Section>
                {known.task.result !== null && (
                  <Section title="Result">
                    <JsonText value={known.task.result} name="result" />
                  </Section>
                )}
                {known.explain?.next_failure && <NextFailure of={known.explain.next_failure} />}
                {known.history.length > 0 && <WhatIf id={id} />}
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Heading({ task }: { readonly task: TaskJson }) {
  return (
    <>
      <span class="mono">#{task.id}</span> <bdi>{summaryOf(task)}</bdi> <TaskSign task={task} />
    </>
  );
}

// ── What happened ──

const FIRST = 5;

/** Executions and acts, the newest first. Failures that follow each other and are the same are one entry. */
function Executions({ history, task }: { readonly history: readonly HistoryJson[]; readonly task: TaskJson }) {
  const [isWhole, setWhole] = useState(false);
  const numbers = attemptsIn(history);
  const runs = inRuns(history).toReversed();
  const shown = isWhole ? runs : runs.slice(0, FIRST);
  return (
    <Section title="History" aside={<span class="muted">newest first</span>}>
      {runs.length === 0 && (
        <p class="muted">
          {task.executions === 0
            ? 'It has not run yet.'
            : 'It succeeded at the first attempt: there is nothing to tell.'}
        </p>
      )}
      <ol class="history">
        {shown.map((run, i) => (
          <li key={keyOf(run[0] as HistoryJson)}>
            <Entry run={run} numbers={numbers} isOpen={i === 0} />
          </li>
        ))}
      </ol>
      {runs.length > shown.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {runs.length}
        </button>
      )}
      <p class="muted recorded">
        recorded <Time at={task.created_at} />
      </p>
    </Section>
  );
}

function keyOf(entry: HistoryJson): string {
  return entry.kind === 'execution'
    ? `${entry.kind} ${entry.execution} ${entry.started_at}`
    : `${entry.kind} ${entry.at}`;
}

/** Entries that follow each other and say the same. */
function inRuns(history: readonly HistoryJson[]): HistoryJson[][] {
  const runs: HistoryJson[][] = [];
  for (const entry of history) {
    const last = runs.at(-1)?.at(-1);
    if (last && isSame(last, entry)) runs.at(-1)?.push(entry);
    else runs.push([entry]);
  }
  return runs;
}

function isSame(one: HistoryJson, other: HistoryJson): boolean {
  if (one.kind !== 'execution' || other.kind !== 'execution') return false;
  const print = ({ failure, charge, next }: ExecutionJson) =>
    failure && [failure.reason, failure.fingerprint, failure.message, charge, next].join('\n');
  return one.failure !== null && print(one) === print(other);
}

function Entry({
  run,
  numbers,
  isOpen,
}: {
  readonly run: readonly HistoryJson[];
  readonly numbers: ReadonlyMap<HistoryJson, number>;
  readonly isOpen: boolean;
}) {
  const last = run.at(-1) as HistoryJson;
  if (last.kind === 'action') return <Action entry={last} />;
  if (last.kind === 'stray') return <Stray entry={last} />;
  const [first, count] = [run[0] as ExecutionJson, run.length];
  return (
    <details open={isOpen}>
      <summary>
        <ExecutionSign entry={last} />
        <strong>{nameOf(first, last, numbers)}</strong>
        <span class="muted">
          {count > 1 ? `same ${count} times, last ` : ''}
          <Time at={last.ended_at} />
          {` · ${formatDuration(last.duration_ms)} on ${visible(last.worker)}`}
        </span>
        <span class="then">→ {thenWords(last)}</span>
      </summary>
      <ExecutionBody entry={last} />
    </details>
  );
}

function nameOf(first: ExecutionJson, last: ExecutionJson, numbers: ReadonlyMap<HistoryJson, number>): string {
  const name = (entry: ExecutionJson) => numbers.get(entry);
  const [from, to] = [name(first), name(last)];
  if (from === undefined || to === undefined) {
    return first === last ? `Execution ${last.execution}` : `Executions ${first.execution} to ${last.execution}`;
  }
  return from === to ? `Attempt ${to}` : `Attempts ${from} to ${to}`;
}

function ExecutionSign({ entry }: { readonly entry: ExecutionJson }) {
  const [glyph = '', ...words] = endWords(entry).split(' ');
  return <Sign glyph={glyph} style={styleOf(entry)} words={words.join(' ')} />;
}

function ExecutionBody({
  entry: { failure, message, because, started_at: began, charge },
}: {
  readonly entry: ExecutionJson;
}) {
  return (
    <div class="entry-body">
      {because && <p>{visible(because.text)}</p>}
      {failure && <Text text={failure.message} name="error" />}
      {message !== null && !failure && <Text text={message} name="message" />}
      <Facts
        of={[
          ['Began', <Time key="began" at={began} exact />],
          ['Error', failure && `${visible(failure.name)}${failure.code === null ? '' : ` (${visible(failure.code)})`}`],
          [
            'Kind',
            failure &&
              `${failure.kind}, fault of the ${failure.fault}${failure.ambiguous ? ', may have happened' : ''}`,
          ],
          [
            'Recognised by',
            failure &&
              `${failure.evidence.rule}${failure.evidence.field === null ? '' : `, read in ${failure.evidence.field}`}`,
          ],
          ['Retry-After', failure && failure.retry_after_ms !== null && formatDuration(failure.retry_after_ms)],
          ['Charged to', charge],
          [
            'Rule',
            because && `${visible(because.rule)}${because.formula === null ? '' : `: ${visible(because.formula)}`}`,
          ],
          ['Count', because && because.count !== null && `${because.count} of ${because.limit ?? 'no limit'}`],
          ['Wait drawn', because?.jitter && jitterWords(because.jitter)],
          ['Policy', because && <span class="mono">{because.policy_version}</span>],
        ]}
      />
      {failure && failure.causes.length > 0 && (
        <ul class="causes">
          {failure.causes.map(({ path, name, message: words }) => (
            <li key={path}>
              {visible(path)}: {visible(name)}: {visibleOutput(words.slice(0, 1_000), false)}
            </li>
          ))}
        </ul>
      )}
      {failure?.stack && (
        <details class="stack">
          <summary>Where it was thrown</summary>
          <Text text={failure.stack} name="stack" />
        </details>
      )}
    </div>
  );
}

function jitterWords({
  low_ms: low,
  high_ms: high,
  roll,
}: NonNullable<NonNullable<ExecutionJson['because']>['jitter']>): string {
  if (low === high) return formatDuration(low);
  return `between ${formatDuration(low)} and ${formatDuration(high)}, at ${Math.round(roll * 100)} %`;
}

function Action({ entry: { at, actor, verb, note, from, to } }: { readonly entry: ActionJson }) {
  return (
    <div class="action-entry">
      <Sign glyph="" style="active" words={visible(verb)} />
      <span>
        by <bdi>{visible(actor)}</bdi> <Time at={at} />, from {from.replace('_', ' ')} to {to.replace('_', ' ')}
        {note !== null && <q class="note">{visible(note)}</q>}
      </span>
    </div>
  );
}

function Stray({ entry: { at, worker, execution, failure } }: { readonly entry: StrayJson }) {
  return (
    <div class="action-entry">
      <Sign glyph="✕" style="idle" words={failure ? visible(failure.reason) : 'unreadable'} />
      <span>
        thrown by execution {execution} on {visible(worker)} <Time at={at} />, where nobody waited for it. It changed
        nothing.
        {failure && <span class="block muted">{visible(failure.message)}</span>}
      </span>
    </div>
  );
}

// ── What it is ──

function AboutTask({ document: { task, budget } }: { readonly document: ShowDocument }) {
  const {
    key,
    priority,
    category,
    needs,
    deadline,
    due_at: due,
    progress,
    progress_at: progressAt,
    ended_at: ended,
  } = task;
  return (
    <Section title="About this task">
      <Facts
        of={[
          ['Type', <NameLink key="type" of="types" name={task.type} />],
          ['Queue', <NameLink key="queue" of="queues" name={task.queue} />],
          [
            'Source',
            <a key="source" href={addressOf(`sources/${segment(task.source)}`)}>
              <bdi>{visible(task.source)}</bdi>
            </a>,
          ],
          ['Reason', task.reason !== null && <NameLink of="reasons" name={task.reason} />],
          ['Attempts', budget ? `${budget.attempts} of ${budget.max_attempts}` : task.attempts],
          ['Executions', task.executions],
          ['Deferrals', task.deferrals > 0 && task.deferrals],
          ['Recoveries', task.recoveries > 0 && task.recoveries],
          ['Waited in all', budget && budget.total_delay_ms > 0 && formatDuration(budget.total_delay_ms)],
          ['Due', due !== null && <DueTime at={due} />],
          ['Recorded', <Time key="recorded" at={task.submitted_at} />],
          ['Ended', ended !== null && <Time at={ended} />],
          ['Until', deadline !== null && <DueTime at={deadline} />],
          ['Priority', priority !== 0 && priority],
          ['Category', category !== null && visible(category)],
          ['Key', key !== null && <bdi>{visible(key)}</bdi>],
          ['Needs', needs !== null && visible(JSON.stringify(needs))],
          ['May run twice', task.idempotent ? 'yes' : 'no: it is not idempotent'],
          ['Runs on', task.running && visible(task.running.worker)],
          [
            'Progress',
            progressAt !== null && visible(typeof progress === 'string' ? progress : JSON.stringify(progress)),
          ],
        ]}
      />
      <p class="card-foot">
        <a
          href={addressOf(`policies/${segment(task.type)}`, { source: task.source, reason: task.reason ?? undefined })}
        >
          The policy for it, and where each value was set
        </a>
      </p>
    </Section>
  );
}

/** What its next failure would lead to, if it is like the last one. */
function NextFailure({
  of: { next, delay_ms: delay, min_ms: low, max_ms: high, because, ends, from, rule },
}: {
  readonly of: NonNullable<ExplainDocument['next_failure']>;
}) {
  const wait = delay === null ? '' : ` after ${formatDuration(delay)}`;
  const range =
    low !== null && high !== null && low !== high ? ` (${formatDuration(low)} to ${formatDuration(high)})` : '';
  return (
    <Section title="If it fails like that again">
      <p>
        <Glyph of={next === 'scheduled' ? '↻' : '✕'} />{' '}
        {next === 'scheduled' ? `It is retried${wait}${range}.` : `It is ${next.replace('_', ' ')}.`}
      </p>
      {because && <p class="muted">{visible(because.text)}</p>}
      <Facts
        of={[
          ['Rule', `${visible(rule)}, set by ${visible(from)}`],
          ['It ends', ends.length > 0 && visible(ends.join('; '))],
        ]}
      />
    </Section>
  );
}
