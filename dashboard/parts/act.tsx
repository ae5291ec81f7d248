import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Problem, problemOf } from '../data/api.ts';
import { ownActs, tell } from '../data/live.ts';
import { whyNot } from '../data/status.ts';
import { announce } from '../shell/announcements.ts';
import { Command } from './copy.tsx';
import { NoteField } from './note-field.tsx';
import { ProblemNote } from './states.tsx';

/** Something that a person is about to do: shown in a dialog first. */
export interface Act {
  /** A question or a sentence: `Retry #41 now?`. */
  readonly title: string;
  /** What it means. */
  readonly words?: ComponentChildren;
  /** The word on the button. */
  readonly does: string;
  /** Whether it stops or ends something. */
  readonly isSevere?: boolean;
  /** Default `optional`. */
  readonly note?: 'none' | 'optional' | 'required';
  /** A number that must be typed first, because so much changes. */
  readonly typed?: number;
  /** The same on the command line. */
  readonly command?: string | undefined;
  /** What must be accepted if the server refuses it for a risk, and how that is told from other problems. */
  readonly risk?: { readonly words: string; readonly isMet: (problem: Problem) => boolean };
  /** Does it, and resolves with what is said then. A problem is shown in the dialog, which stays. */
  readonly run: (note: string | undefined, acceptsRisk: boolean) => Promise<string>;
}

const current = signal<Act | undefined>(undefined);

export function open(act: Act): void {
  current.value = act;
}

/** A button that opens the dialog of an act. If the person may not do it, it says why. */
export function ActButton({ verb, act, style }: { readonly verb: string; readonly act: Act; readonly style?: string }) {
  const reason = whyNot(verb);
  return (
    <button
      type="button"
      class={style ?? (act.isSevere ? 'severe' : '')}
      aria-disabled={reason !== undefined}
      title={reason}
      onClick={() => (reason === undefined ? open(act) : announce(reason, { isProblem: true }))}
    >
      {act.does}
    </button>
  );
}

/** The one dialog, in the shell. */
export function ActDialog() {
  const act = current.value;
  return act && <Asked key={act} act={act} />;
}

function Asked({ act }: { readonly act: Act }) {
  const { title, words, does, isSevere, note: wanted = 'optional', typed, command, risk, run } = act;
  const dialog = useRef<HTMLDialogElement>(null);
  const [note, setNote] = useState('');
  const [number, setNumber] = useState('');
  const [problem, setProblem] = useState<Problem>();
  const [isRisky, setRisky] = useState(false);
  const [accepts, setAccepts] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  const isReady =
    !isBusy && (wanted !== 'required' || note.trim() !== '') && (typed === undefined || number === String(typed));
  const doIt = async (event: Event) => {
    event.preventDefault();
    if (!isReady) return;
    setBusy(true);
    setProblem(undefined);
    try {
      announce(await run(note.trim() === '' ? undefined : note.trim(), accepts));
      ownActs.value += 1;
      tell();
      dialog.current?.close();
    } catch (error) {
      const refused = problemOf(error);
      setProblem(refused);
      if (risk?.isMet(refused)) setRisky(true);
      setBusy(false);
    }
  };
  return (
    <dialog
      ref={dialog}
      aria-labelledby="act-title"
      onClose={() => {
        if (current.value === act) current.value = undefined;
      }}
    >
      <form onSubmit={doIt}>
        <h2 id="act-title">{title}</h2>
        {words && <div class="act-words">{words}</div>}
        {wanted !== 'none' && (
          <NoteField label={wanted === 'required' ? 'Why (required)' : 'Why (optional)'} note={note} onNote={setNote} />
        )}
        {typed !== undefined && (
          <label class="field">
            Type {typed} to confirm
            <input
              type="text"
              inputMode="numeric"
              value={number}
              autocomplete="off"
              onInput={(event) => setNumber(event.currentTarget.value)}
            />
          </label>
        )}
        {problem && <ProblemNote problem={problem} />}
        {risk && isRisky && (
          <label class="check field">
            <input type="checkbox" checked={accepts} onChange={() => setAccepts(!accepts)} />
            {risk.words}
          </label>
        )}
        {command && (
          <p class="same-command">
            <span class="muted">The same on the command line</span> <Command text={command} />
          </p>
        )}
        <div class="dialog-foot">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={isSevere ? 'severe solid' : 'primary'} aria-disabled={!isReady}>
            {does}
          </button>
        </div>
      </form>
    </dialog>
  );
}
