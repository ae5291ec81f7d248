import { useRef, useState } from 'preact/hooks';
import { Problem, post, problemOf } from '../data/api.ts';
import { commandFor } from '../data/commands.ts';
import type { TaskJson } from '../data/documents.ts';
import { tell } from '../data/live.ts';
import { whyNot } from '../data/status.ts';
import { announce } from '../shell/announcements.ts';
import { useKeys } from '../shell/keys.ts';
import { Command } from './copy.tsx';
import { ProblemNote } from './states.tsx';

/** The three answers to a task that needs a person. */
const ANSWERS = [
  { as: 'succeeded', words: 'It happened', means: 'The task is marked as succeeded; nothing runs again.' },
  { as: 'retry', words: 'It did not happen', means: 'The task runs again, with its attempts counted from zero.' },
  { as: 'dead', words: 'Give up', means: 'The task ends as dead; nothing runs again.' },
] as const;
type Answer = (typeof ANSWERS)[number]['as'];

/** Asks for the answer to a task that needs a person. `1`, `2` and `3` choose; Ctrl+Enter decides. */
export function Decision({ task, onDone }: { readonly task: TaskJson; readonly onDone: () => void }) {
  const [as, setAs] = useState<Answer>();
  const [note, setNote] = useState('');
  const [result, setResult] = useState('');
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const choose = (answer: Answer, index: number) => {
    setAs(answer);
    form.current?.querySelectorAll<HTMLInputElement>('input[type=radio]')[index]?.focus();
  };
  useKeys(
    ANSWERS.map(({ as: answer, words }, i) => ({ keys: String(i + 1), does: words, run: () => choose(answer, i) })),
  );
  const reason = whyNot('resolve');
  const decide = async () => {
    if (as === undefined || isBusy) return;
    if (reason !== undefined) {
      announce(reason, { isProblem: true });
      return;
    }
    setBusy(true);
    setProblem(undefined);
    try {
      const more = as === 'succeeded' && result.trim() !== '' ? { result: resultFrom(result) } : {};
      await post(`tasks/${task.id}/resolve`, { as, ...more, ...(note.trim() !== '' && { note: note.trim() }) });
      announce(`#${task.id}: ${ANSWERS.find((each) => each.as === as)?.words}.`);
      tell();
      onDone();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      ref={form}
      class="decision"
      onSubmit={(event) => {
        event.preventDefault();
        void decide();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void decide();
      }}
    >
      <fieldset>
        <legend>Did it happen?</legend>
        {ANSWERS.map(({ as: answer, words, means }, i) => (
          <label key={answer} class={as === answer ? 'answer chosen' : 'answer'}>
            <input type="radio" name={`answer-${task.id}`} checked={as === answer} onChange={() => setAs(answer)} />
            <span>
              <strong>{words}</strong> <kbd>{i + 1}</kbd>
              <span class="muted block">{means}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {as === 'succeeded' && (
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
      <label class="field">
        Why (optional, for the history)
        <input
          type="text"
          value={note}
          maxLength={1_000}
          autocomplete="off"
          onInput={(event) => setNote(event.currentTarget.value)}
        />
      </label>
      {problem && <ProblemNote problem={problem} />}
      <div class="decision-foot">
        <button
          type="submit"
          class="primary"
          aria-disabled={as === undefined || isBusy || reason !== undefined}
          title={reason}
        >
          Decide
        </button>
        <span class="muted">
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </span>
        {as && <Command text={commandFor('resolve', task.id, '--as', as)} />}
      </div>
    </form>
  );
}

function resultFrom(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(0, 'result', 'The result is no JSON.', ['Write a text in quotes: "r_19", or {"refund": "r_19"}']);
  }
}
