import { useState } from 'preact/hooks';
import { summaryOf } from '../../src/views/task-text.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, ask } from '../data/address.ts';
import type { InboxDocument } from '../data/documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Decision } from '../parts/decision.tsx';
import { JsonText, Text } from '../parts/json.tsx';
import { NameLink } from '../parts/links.tsx';
import { Facts, Page, Section } from '../parts/page.tsx';
import { StateSign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Since } from '../parts/time.tsx';
import { useKeys } from '../shell/keys.ts';

const LIMIT = 100;

/** What waits for a person, the oldest first: one question after the other. */
export function InboxPage() {
  const { query } = address.value;
  const shown = useDocument<InboxDocument>(
    addressOf('inbox', { filter: query.get('filter') ?? undefined, limit: String(LIMIT) }),
  );
  const items = shown.document?.items ?? [];
  // What was answered is gone from the list before the next answer of the server.
  const [answered, setAnswered] = useState<readonly number[]>([]);
  const open = items.filter(({ task }) => !answered.includes(task.id));
  const chosen = Number(query.get('task'));
  const at = Math.max(
    0,
    open.findIndex(({ task }) => task.id === chosen),
  );
  const item = open[at];
  const choose = (index: number) => {
    const next = open[Math.min(Math.max(index, 0), open.length - 1)];
    if (next) ask({ task: String(next.task.id) }, { replace: true });
  };
  useKeys([
    { keys: 'j', does: 'next question', run: () => choose(at + 1) },
    { keys: 'k', does: 'question before', run: () => choose(at - 1) },
  ]);
  const onDone = () => {
    if (!item) return;
    const next = open[at + 1] ?? open[at - 1];
    setAnswered([...answered, item.task.id]);
    ask({ task: next && String(next.task.id) }, { replace: true });
    void shown.again();
  };
  return (
    <Page title="Inbox">
      <Loaded shown={shown}>
        {({ total }) =>
          item ? (
            <div class="inbox">
              <nav aria-label="Questions" class="questions">
                <p class="muted">
                  {open.length} of {Math.max(open.length, total - answered.length)}, the oldest first
                </p>
                <ol>
                  {open.map(({ task, since }) => (
                    <li key={task.id}>
                      <a
                        href={addressOf('inbox', { ...Object.fromEntries(query), task: String(task.id) })}
                        {...(task.id === item.task.id && { 'aria-current': 'true' })}
                      >
                        <span>
                          <span class="mono">#{task.id}</span> <bdi>{summaryOf(task)}</bdi>
                        </span>
                        {since && (
                          <span class="muted">
                            waits <Since at={since} />
                          </span>
                        )}
                      </a>
                    </li>
                  ))}
                </ol>
              </nav>
              <Question key={item.task.id} item={item} onDone={onDone} />
            </div>
          ) : (
            <Empty title="Nothing waits for a person.">
              <p>Tasks stand here whose effect may have happened, or whose policy asks for a person.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}

function Question({
  item: { task, since, question, error, steps, choices },
  onDone,
}: {
  readonly item: InboxDocument['items'][number];
  readonly onDone: () => void;
}) {
  // The three answers with their commands stand below as a form.
  const advice = steps.filter((step) => !/\bresolve \S+ --as\b/.test(step));
  return (
    <div>
      <section class="card question" aria-label="Question">
        <h2>
          <a href={`tasks/${task.id}`}>
            <span class="mono">#{task.id}</span> <bdi>{summaryOf(task)}</bdi>
          </a>{' '}
          <StateSign state="needs_manual" />
        </h2>
        <p class="headline">{visible(question.replace(/^needs a person: /, ''))}</p>
        {advice.map((step) => (
          <p key={step} class="advice">
            {visible(step)}
          </p>
        ))}
        {error !== null && <Text text={error} name="error" />}
        <Facts
          of={[
            ['Waits for', since !== null && <Since at={since} />],
            ['Source', <NameLink key="source" of="sources" name={task.source} />],
            ['Reason', task.reason !== null && <NameLink of="reasons" name={task.reason} />],
            ['Executions', task.executions],
            ['May run twice', task.idempotent ? 'yes' : 'no: it is not idempotent'],
          ]}
        />
        <details class="stack">
          <summary>Input</summary>
          <JsonText value={task.input} name="input" />
        </details>
      </section>
      <Section title="Your answer">
        <Decision task={task} choices={choices} onDone={onDone} />
      </Section>
    </div>
  );
}
