import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { address, addressOf, goTo } from '../data/address.ts';
import { get } from '../data/api.ts';
import { Icon } from '../parts/icon.tsx';

/** A way to go on with a filter: the whole text, if it is taken, and where the cursor is then. */
interface Completion {
  readonly text: string;
  readonly words?: string;
}

const PAUSE = 120;

/** The filter of tasks, the same text as on the command line, or the number of a task. It completes with values of the store. */
export function Finder() {
  const { path, query } = address.value;
  const filter = path === 'tasks' ? (query.get('filter') ?? '') : '';
  const [text, setText] = useState(filter);
  const [found, setFound] = useState<readonly Completion[]>([]);
  const [chosen, setChosen] = useState(-1);
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(filter), [filter]);
  const { complete, stop } = useCompletion(setFound, setChosen);

  const take = ({ text: next }: Completion) => {
    setText(next);
    setFound([]);
    setChosen(-1);
    // A key or a started list goes on.
    if (/[:,]$/.test(next)) complete(next, next.length);
  };
  const find = () => {
    stop();
    setFound([]);
    // The keys of the page are free again.
    input.current?.blur();
    const number = /^#?(\d+)$/.exec(text.trim())?.[1];
    goTo(number === undefined ? addressOf('tasks', { filter: text.trim() }) : `tasks/${number}`);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const option = found[chosen];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (found.length === 0) return;
      event.preventDefault();
      const by = event.key === 'ArrowDown' ? 1 : -1;
      setChosen(((chosen + by + found.length + 1) % (found.length + 1)) as number);
    } else if ((event.key === 'Enter' || event.key === 'Tab') && option) {
      event.preventDefault();
      take(option);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      if (found.length > 0) setFound([]);
      else input.current?.blur();
    }
  };
  return (
    <search class="finder">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          find();
        }}
      >
        <Icon name="search" />
        <input
          ref={input}
          id="finder"
          type="text"
          role="combobox"
          aria-label="Find tasks: a filter or a number"
          aria-expanded={found.length > 0}
          aria-controls={list}
          aria-autocomplete="list"
          {...(found[chosen] && { 'aria-activedescendant': `${list}-${chosen}` })}
          placeholder="state:dead reason:http.* since:2h"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            const { value, selectionStart } = event.currentTarget;
            setText(value);
            complete(value, selectionStart ?? value.length);
          }}
          onKeyDown={onKeyDown}
          onBlur={() => setTimeout(() => setFound([]), 150)}
        />
        <kbd title="Press / to come here">/</kbd>
      </form>
      <div id={list} role="listbox" aria-label="Completions" class="completions" hidden={found.length === 0}>
        {found.map((option, i) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the input keeps the focus, and names the option that is chosen.
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input.
          <div
            key={option.text}
            id={`${list}-${i}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => {
              take(option);
              input.current?.focus();
            }}
          >
            <span>{option.text}</span>
            {option.words && <span class="muted">{option.words}</span>}
          </div>
        ))}
      </div>
    </search>
  );
}

/** Asks for completions a moment after the last letter. */
function useCompletion(
  setFound: (found: readonly Completion[]) => void,
  setChosen: (index: number) => void,
): { readonly complete: (text: string, at: number) => void; readonly stop: () => void } {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const asked = useRef<AbortController>(undefined);
  const stop = () => {
    clearTimeout(timer.current);
    asked.current?.abort();
  };
  useEffect(() => stop, []);
  const complete = (text: string, at: number) => {
    stop();
    timer.current = setTimeout(async () => {
      const controller = new AbortController();
      asked.current = controller;
      const question = `filter/complete?text=${encodeURIComponent(text)}&at=${at}`;
      // A filter works without completions.
      const answer = await get<{ items?: readonly Completion[] }>(question, controller.signal).catch(() => undefined);
      if (controller.signal.aborted) return;
      setFound(answer?.items ?? []);
      setChosen(-1);
    }, PAUSE);
  };
  return { complete, stop };
}
