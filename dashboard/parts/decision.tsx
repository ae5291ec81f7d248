import { useRef, useState } from 'preact/hooks';
import { capital } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { Problem, post, problemOf } from '../data/api.ts';
import type { ChoiceJson, TaskJson } from '../data/documents.ts';
import { tell } from '../data/live.ts';
import { whyNot } from '../data/status.ts';
import { asSeen } from '../data/task-acts.ts';
import { announce } from '../shell/announcements.ts';
import { useKeys } from '../shell/keys.ts';
import { Command } from './copy.tsx';
import { NoteField } from './note-field.tsx';
import { ProblemNote } from './states.tsx';

/** What each answer comes to. */
const MEANS: Readonly<Record<ChoiceJson['answer'], string>> = {
  succeeded: 'The task is marked as succeeded; nothing runs again.',
  retry: 'The task runs again, with its attempts counted from zero.',
  dead: 'The task ends as dead; nothing runs again.',
};

interface DecisionProps {
  readonly task: TaskJson;
  readonly choices: readonly ChoiceJson[];
  readonly onDone: () => void;
  /** Why it can no longer be answered. */
  readonly isOver?: string | undefined;
}

/** Asks for the answer to a task that needs a person. The keys from `1` choose; Ctrl+Enter decides. */
export function Decision(props: DecisionProps) {
  const { id, executions } = props.task;
  // Another question has a form of its own: what was chosen for the one before is no answer to it.
  return <Answers key={`${id} ${executions}`} {...props} />;
}

function Answers({ task, choices, onDone, isOver }: DecisionProps) {
  const [chosen, setChosen] = useState<string>();
  const [note, setNote] = useState('');
  const [result, setResult] = useState('');
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const choice = choices.find(({ as }) => as === chosen);
  const choose = (index: number) => {
    if (isBusy) return announce(sending, { isProblem: true });
    setChosen(choices[index]?.as);
    form.current?.querySelectorAll<HTMLInputElement>('input[type=radio]')[index]?.focus();
  };
  const reason = isOver ?? whyNot('resolve');
  const sending = `The answer to #${task.id} is being sent.`;
  const decide = async () => {
    const refusal = isBusy ? sending : (reason ?? (choice ? undefined : 'Choose an answer first.'));
    if (refusal !== undefined) return announce(refusal, { isProblem: true });
    if (!choice || isOfMachine(choice)) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const { answer: as, words } = choice;
      const more = as === 'succeeded' && result.trim() !== '' ? { result: resultFrom(result) } : {};
      await post(`tasks/${task.id}/resolve`, {
        as,
        ...asSeen(task),
        ...more,
        ...(note.trim() !== '' && { note: note.trim() }),
      });
      announce(`#${task.id}: ${words}.`);
      tell();
      onDone();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  useKeys([
    ...choices.map(({ words }, i) => ({ keys: String(i + 1), does: words, run: () => choose(i) })),
    { keys: 'Ctrl+Enter', does: 'send the answer', run: () => void decide() },
  ]);
  return (
    <form
      ref={form}
      class="decision"
      onSubmit={(event) => {
        event.preventDefault();
        void decide();
      }}
    >
      <fieldset>
        <legend>What is the answer?</legend>
        {choices.map(({ as, answer, words, does }, i) => (
          <label key={as} class={as === chosen ? 'answer chosen' : 'answer'}>
            <input
              type="radio"
              name={`answer-${task.id}`}
              checked={as === chosen}
              onClick={(event) => isBusy && event.preventDefault()}
              onChange={() => choose(i)}
            />
            <span>
              <strong>{capital(words)}</strong> <kbd>{i + 1}</kbd>
              <span class="muted block">{does === null ? MEANS[answer] : `${capital(visible(does))}.`}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {choice?.answer === 'succeeded' && (
        <label class="field">
          Result (optional, JSON)
          <input
            type="text"
            class="mono"
            value={result}
            autocomplete="off"
            onInput={(event) => setResult(event.currentTarget.value)}
          />
        </label>
      )}
      <NoteField label="Why (optional, for the history)" note={note} onNote={setNote} />
      {problem && <ProblemNote problem={problem} />}
      {choice && isOfMachine(choice) && (
        <p>It changes files, so only the command below does it, on the machine that has them.</p>
      )}
      <div class="decision-foot">
        <button
          type="submit"
          class="primary"
          aria-disabled={!choice || isOfMachine(choice) || isBusy || reason !== undefined}
          title={reason}
        >
          Decide
        </button>
        <span class="muted">
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </span>
        {choice && <Command text={choice.command} />}
      </div>
    </form>
  );
}

/** Whether it changes files before the task is retried. */
function isOfMachine({ as, answer }: ChoiceJson): boolean {
  return answer === 'retry' && as !== 'retry';
}

function resultFrom(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(0, 'result', 'The result is no JSON.', ['Write a text in quotes: "r_19", or {"refund": "r_19"}']);
  }
}
