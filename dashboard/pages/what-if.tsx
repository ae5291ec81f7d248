import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { address, addressOf, ask, segment } from '../data/address.ts';
import { useDocument } from '../data/use-document.ts';
import { Text } from '../parts/json.tsx';
import { Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';

interface Answer {
  readonly text: string;
}

/** Asks what other options would have decided, and what the task did at a time. The question is in the address of the page. */
export function WhatIf({ id }: { readonly id: string }) {
  const { query } = address.value;
  const [options, at] = [query.get('if') ?? '', query.get('at') ?? ''];
  return (
    <Section title="Ask about it">
      <Question
        label="With other policy options"
        asked={options}
        placeholder="maxAttempts: 9"
        onAsk={(text) => ask({ if: text })}
      />
      {options !== '' && <AnswerTo path={addressOf(`tasks/${segment(id)}/explain-if`, { options })} />}
      <Question label="At a time in the past" asked={at} onAsk={(text) => ask({ at: text })} />
      {at !== '' && <AnswerTo path={addressOf(`tasks/${segment(id)}/explain-at`, { at: timeFrom(at) })} />}
    </Section>
  );
}

function Question({
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

function AnswerTo({ path }: { readonly path: string }) {
  return <Loaded shown={useDocument<Answer>(path)}>{({ text }) => <Text text={text} name="answer" />}</Loaded>;
}

/** As the browser gives a time of its own zone, or as it was put into the address. */
function timeFrom(text: string): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}
