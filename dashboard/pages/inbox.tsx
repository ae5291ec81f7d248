import { useRef, useState } from 'preact/hooks';
import { summaryOf } from '../../src/views/task-text.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, ask } from '../data/address.ts';
import type { InboxDocument } from '../data/documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Decision } from '../parts/decision.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonText, Text } from '../parts/json.tsx';
import { NameLink } from '../parts/links.tsx';
import { Facts, Page, Section } from '../parts/page.tsx';
import { StateSign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Since } from '../parts/time.tsx';
import { useKeys } from '../shell/keys.ts';

const LIMIT = 100;

type Item = InboxDocument['items'][number];

/** Names one question. A task can ask several times, and the answer to one question does not answer the next. */
function questionOf({ task, since }: Item): string {
  return `${task.id} ${task.executions} ${since}`;
}

/** What waits for a person, the oldest first: one question after the other. */
export function InboxPage() {
  const { query } = address.value;
  const shown = useDocument<InboxDocument>(
    addressOf('inbox', { filter: query.get('filter') ?? undefined, limit: String(LIMIT) }),
  );
  // What was answered here is gone from the list before the next answer of the server.
  const [answered, setAnswered] = useState<readonly string[]>([]);
  const items = shown.document?.items ?? [];
  const open = items.filter((item) => !answered.includes(questionOf(item)));
  const { item, index, isOver, leave } = useShownQuestion(open, answered);
  const choose = (to: number) => {
    const next = open[Math.min(Math.max(to, 0), open.length - 1)];
    leave();
    ask({ task: next && String(next.task.id) }, { replace: true });
  };
  useKeys([
    // The place of a question that is over belongs to the next one.
    { keys: 'j', does: 'next question', run: () => choose(isOver ? index : index + 1) },
    { keys: 'k', does: 'question before', run: () => choose(index - 1) },
  ]);
  const latest = useRef({ item, index, choose, open });
  latest.current = { item, index, choose, open };
  const onDone = (done: Item) => {
    setAnswered((before) => [...before, questionOf(done)]);
    const now = latest.current;
    // Whoever has gone on to another question stays there.
    if (now.item && questionOf(now.item) === questionOf(done)) {
      now.choose(now.index + 1 < now.open.length ? now.index + 1 : now.index - 1);
    }
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
                  {open.length} of {open.length + total - items.length}, the oldest first
                </p>
                <ol>
                  {open.map(({ task, since }) => (
                    <li key={task.id}>
                      <a
                        href={addressOf('inbox', { ...Object.fromEntries(query), task: String(task.id) })}
                        onClick={leave}
                        {...(task.id === item.task.id && !isOver && { 'aria-current': 'true' })}
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
              <div>
                {isOver && (
                  <div class="notice" role="alert">
                    <Icon name="warning" />
                    <span>{OVER}</span>
                    {open.length > 0 && (
                      <button type="button" onClick={() => choose(index)}>
                        Next question <kbd>j</kbd>
                      </button>
                    )}
                  </div>
                )}
                <Question
                  key={questionOf(item)}
                  item={item}
                  onDone={() => onDone(item)}
                  isOver={isOver ? OVER : undefined}
                />
              </div>
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

const OVER = 'This question is answered, or has changed, since you opened it.';

/**
 * Which question is shown: `task` of the address, or the first. It stays on the screen until the person goes on, also if somebody else
 * answers it meanwhile: no key may act on a question that nobody has read.
 */
function useShownQuestion(open: readonly Item[], answered: readonly string[]) {
  const kept = useRef<{ readonly item: Item; readonly index: number }>(undefined);
  const chosen = Number(address.value.query.get('task'));
  const before = kept.current;
  const stays =
    before && !answered.includes(questionOf(before.item)) && (chosen === 0 || chosen === before.item.task.id);
  const at = open.findIndex((item) => (stays ? questionOf(item) === questionOf(before.item) : item.task.id === chosen));
  const index = at >= 0 ? at : stays ? Math.min(before.index, open.length) : 0;
  const item = at >= 0 || !stays ? open[index] : before.item;
  kept.current = item && { item, index };
  const leave = () => {
    kept.current = undefined;
  };
  return { item, index, isOver: stays === true && at < 0, leave };
}

function Question({
  item: { task, since, question, error, steps, choices },
  onDone,
  isOver,
}: {
  readonly item: Item;
  readonly onDone: () => void;
  readonly isOver: string | undefined;
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
          <JsonText value={task.input} name="input" isHidden={task.hidden} />
        </details>
      </section>
      <Section title="Your answer">
        <Decision task={task} choices={choices} onDone={onDone} isOver={isOver} />
      </Section>
    </div>
  );
}
