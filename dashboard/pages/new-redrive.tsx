import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { formatDuration } from '../../src/duration.ts';
import { plural } from '../../src/views/plural.ts';
import { summaryOf } from '../../src/views/task-text.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, ask, goTo } from '../data/address.ts';
import { type Problem, post, problemOf } from '../data/api.ts';
import { commandFor } from '../data/commands.ts';
import type { ListDocument } from '../data/documents.ts';
import { tell } from '../data/live.ts';
import type { RedriveJson, RedrivePlanDocument } from '../data/operating-documents.ts';
import { whyNot } from '../data/status.ts';
import { useDocument } from '../data/use-document.ts';
import { Command } from '../parts/copy.tsx';
import { Page, Section } from '../parts/page.tsx';
import { TaskSign } from '../parts/sign.tsx';
import { ProblemNote } from '../parts/states.tsx';
import { announce } from '../shell/announcements.ts';

const RATES = ['1/s', '10/s', '50/s', '100/m', '1000/h'] as const;
const USUAL = '10/s';
/** For more tasks than this, a person types their number first. */
const MANY = 1_000;
const SAMPLE = '5';

const note = signal('');
const typed = signal('');
const acceptsDuplicate = signal(false);

/** A form in four steps that starts a redrive: which tasks, what would happen, how fast, and why. */
export function NewRedrivePage() {
  const { query } = address.value;
  const filter = (query.get('filter') ?? '').trim();
  const rate = query.get('rate') ?? USUAL;
  const { plan, problem } = usePlan(filter, rate);
  useEffect(() => {
    typed.value = '';
    acceptsDuplicate.value = false;
  }, [filter]);
  return (
    <Page title="New redrive" back={{ to: 'redrives', words: 'Redrives' }}>
      <div class="steps">
        <Select filter={filter} matches={plan?.matches} problem={problem} />
        <Check filter={filter} plan={plan} />
        <Pace plan={plan} rate={rate} />
        <Confirm filter={filter} rate={rate} plan={plan} />
      </div>
    </Page>
  );
}

type Plan = RedrivePlanDocument['plan'];

/** Asks the server what a redrive with this filter and rate would do now. */
function usePlan(filter: string, rate: string): { readonly plan?: Plan; readonly problem?: Problem } {
  const [found, setFound] = useState<{ readonly of?: string; readonly plan?: Plan; readonly problem?: Problem }>({});
  const question = JSON.stringify({ filter, rate });
  useEffect(() => {
    let isOld = false;
    if (filter === '') return;
    post<RedrivePlanDocument>('redrives/preview', { filter, rate }).then(
      ({ plan }) => isOld || setFound({ of: question, plan }),
      (error) => isOld || setFound({ of: question, problem: problemOf(error) }),
    );
    return () => {
      isOld = true;
    };
  }, [question]);
  // Until the answer is here, the plan of the filter before is not shown.
  return found.of === question ? found : {};
}

// ── 1: which tasks ──

function Select({
  filter,
  matches,
  problem,
}: {
  readonly filter: string;
  readonly matches: number | undefined;
  readonly problem: Problem | undefined;
}) {
  const [text, setText] = useState(filter);
  useEffect(() => setText(filter), [filter]);
  return (
    <Step title="Select" isReady={matches !== undefined && matches > 0}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask({ filter: text.trim() });
        }}
      >
        <label class="field">
          Which ended tasks
          <input
            type="text"
            class="mono"
            value={text}
            placeholder="reason:http.* since:2h"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <div class="row-acts span-hint">
          <button type="submit">Select</button>
          {filter === '' && (
            <a class="button" href={addressOf('redrives/new', { filter: 'state:dead' })}>
              All that is dead
            </a>
          )}
        </div>
      </form>
      {problem && <ProblemNote problem={problem} />}
      {matches !== undefined && (
        <p class="span-hint" role="status">
          <strong>{plural(matches, 'task matches', 'tasks match')}</strong> now.{' '}
          <span class="muted">
            Without a state it means what is dead. The tasks are chosen when it starts; what ends later is not included.
          </span>
        </p>
      )}
    </Step>
  );
}

// ── 2: what would happen ──

function Check({ filter, plan }: { readonly filter: string; readonly plan: Plan | undefined }) {
  const has = plan !== undefined && plan.matches > 0;
  const shown = useDocument<ListDocument>(
    has
      ? addressOf('tasks', { filter: /(^|\s)state:/.test(filter) ? filter : `state:dead ${filter}`, limit: SAMPLE })
      : undefined,
  );
  return (
    <Step title="Check" isReady={has}>
      {!has && <p class="muted">Select tasks first.</p>}
      {has && (
        <>
          <ul class="plain-list">
            <li>
              <strong>{(plan.matches - skippedOf(plan)).toLocaleString()}</strong> are put back, each in a new round:
              their attempts are counted from zero.
            </li>
            {plan.may_run_twice > 0 && (
              <li>
                <strong>{plan.may_run_twice.toLocaleString()}</strong> may have happened already and would run a second
                time.
              </li>
            )}
            {plan.must_not_run_twice > 0 && (
              <li>
                <strong>{plan.must_not_run_twice.toLocaleString()}</strong> of these must not run twice. They are{' '}
                {acceptsDuplicate.value ? 'put back too.' : 'skipped.'}
              </li>
            )}
          </ul>
          {plan.must_not_run_twice > 0 && (
            <label class="check">
              <input
                type="checkbox"
                checked={acceptsDuplicate.value}
                onChange={(event) => (acceptsDuplicate.value = event.currentTarget.checked)}
              />
              Put them back too: I know that it does no harm
            </label>
          )}
          <h3 class="span-hint">The newest of them</h3>
          <ul class="plain-list">
            {shown.document?.items.map((task) => (
              <li key={task.id}>
                <a href={`tasks/${task.id}`} class="task-link">
                  <span class="mono">#{task.id}</span> <bdi>{summaryOf(task)}</bdi>
                </a>
                <TaskSign task={task} />
                <span class="muted">
                  {task.error && `${task.error.reason}: ${visible(task.error.message.slice(0, 160))}`}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Step>
  );
}

function skippedOf(plan: Plan): number {
  return acceptsDuplicate.value ? 0 : plan.must_not_run_twice;
}

// ── 3: how fast ──

function Pace({ plan, rate }: { readonly plan: Plan | undefined; readonly rate: string }) {
  const rates = RATES.includes(rate as (typeof RATES)[number]) ? RATES : [...RATES, rate];
  return (
    <Step title="Pace" isReady={plan !== undefined && plan.matches > 0}>
      <fieldset class="choices">
        <legend class="unseen">How fast the tasks are put back</legend>
        {rates.map((each) => (
          <label key={each} class="check">
            <input
              type="radio"
              name="rate"
              checked={each === rate}
              onChange={() => ask({ rate: each === USUAL ? undefined : each }, { replace: true })}
            />
            {each}
          </label>
        ))}
      </fieldset>
      <p class="span-hint muted">
        First 1 task, then 5, then 25, each when it is known how those before went; the rest at this rate. It stops
        itself if half of the tasks of a stage fail again as before.
        {plan && plan.matches > 0 && ` It takes ${formatDuration(plan.takes_at_least_ms)} at least.`}
      </p>
    </Step>
  );
}

// ── 4: why, and go ──

function Confirm({
  filter,
  rate,
  plan,
}: {
  readonly filter: string;
  readonly rate: string;
  readonly plan: Plan | undefined;
}) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const count = plan ? plan.matches - skippedOf(plan) : 0;
  const reason = whyNot('redrive');
  const mustType = count > MANY;
  const isReady =
    !isBusy &&
    reason === undefined &&
    count > 0 &&
    note.value.trim() !== '' &&
    (!mustType || typed.value === String(count));
  const start = async (event: Event) => {
    event.preventDefault();
    if (!isReady) {
      announce(reason ?? (count === 0 ? 'No task is selected.' : 'Say why first.'), { isProblem: true });
      return;
    }
    setBusy(true);
    setProblem(undefined);
    try {
      const { redrive } = await post<{ redrive: RedriveJson }>('redrives', {
        filter,
        rate,
        note: note.value.trim(),
        ...(acceptsDuplicate.value && { accept_duplicate: true }),
      });
      note.value = '';
      announce(`Redrive ${redrive.id} has started.`);
      tell();
      goTo(`redrives/${redrive.id}`);
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };
  const said = note.value.trim() || 'TEXT';
  const flags = [
    '--note',
    said,
    ...(rate === USUAL ? [] : ['--rate', rate]),
    ...(acceptsDuplicate.value ? ['--accept-duplicate'] : []),
  ];
  return (
    <Step title="Confirm" isReady={isReady}>
      <form onSubmit={start}>
        <label class="field">
          Why (required): it stands in the history of each task
          <input
            type="text"
            value={note.value}
            maxLength={1_000}
            autocomplete="off"
            onInput={(event) => (note.value = event.currentTarget.value)}
          />
        </label>
        {mustType && (
          <label class="field">
            Type {count} to confirm
            <input
              type="text"
              inputMode="numeric"
              value={typed.value}
              autocomplete="off"
              onInput={(event) => (typed.value = event.currentTarget.value)}
            />
          </label>
        )}
        {problem && <ProblemNote problem={problem} />}
        {filter !== '' && (
          <p class="same-command">
            <span class="muted">The same on the command line</span>{' '}
            <Command text={commandFor('redrive', filter, ...flags)} />
          </p>
        )}
        <div class="dialog-foot">
          <button type="submit" class="primary" aria-disabled={!isReady} title={reason}>
            {count > 0 ? `Start the redrive of ${plural(count, 'task', 'tasks')}` : 'Start the redrive'}
          </button>
        </div>
      </form>
    </Step>
  );
}

function Step({
  title,
  isReady,
  children,
}: {
  readonly title: string;
  readonly isReady: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <div class={isReady ? 'step ready' : 'step'}>
      <Section title={title}>{children}</Section>
    </div>
  );
}
