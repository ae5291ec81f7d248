import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useDocument } from '../data/use-document.ts';
import { Text } from './json.tsx';
import { Loaded } from './states.tsx';

export const ERROR_EXAMPLE = 'connect ECONNREFUSED, or {"status": 503}';

/** A question of a person, answered when they press Ask. */
export function Question({
  label,
  asked,
  placeholder,
  onAsk,
}: {
  readonly label: string;
  readonly asked: string;
  /** Without it a time is asked for. */
  readonly placeholder?: string;
  readonly onAsk: (text: string) => void;
}): ComponentChildren {
  const [text, setText] = useState(asked);
  const common = {
    value: text,
    autocomplete: 'off',
    onInput: (event: { readonly currentTarget: HTMLInputElement }) => setText(event.currentTarget.value),
  };
  return (
    <form
      class="question-form"
      onSubmit={(event) => {
        event.preventDefault();
        onAsk(text.trim());
      }}
    >
      {/* biome-ignore lint/a11y/noLabelWithoutControl: one of the two is in it. */}
      <label class="field">
        {label}
        {placeholder === undefined ? (
          <input type="datetime-local" step={1} {...common} />
        ) : (
          <input type="text" class="mono" spellcheck={false} {...{ placeholder }} {...common} />
        )}
      </label>
      <button type="submit">Ask</button>
    </form>
  );
}

/** The `text` of the document that answers. */
export function AnswerTo({ path }: { readonly path: string }) {
  return (
    <Loaded shown={useDocument<{ readonly text: string }>(path)}>
      {({ text }) => <Text text={text} name="answer" />}
    </Loaded>
  );
}
