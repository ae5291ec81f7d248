import { address, addressOf, ask, segment } from '../data/address.ts';
import { Section } from '../parts/page.tsx';
import { AnswerTo, ERROR_EXAMPLE, Question } from '../parts/question.tsx';

/** Asks what other options would have decided, what an error would lead to, and what the task did at a time. The question is in the address of the page. */
export function WhatIf({ id }: { readonly id: string }) {
  const { query } = address.value;
  const [options, error, at] = [query.get('if') ?? '', query.get('error') ?? '', query.get('at') ?? ''];
  return (
    <Section title="Ask about it">
      <Question
        label="With other policy options"
        asked={options}
        placeholder="maxAttempts: 9"
        onAsk={(text) => ask({ if: text })}
      />
      {options !== '' && <AnswerTo path={addressOf(`tasks/${segment(id)}/explain-if`, { options })} />}
      <Question
        label="If it fails with this error"
        asked={error}
        placeholder={ERROR_EXAMPLE}
        onAsk={(text) => ask({ error: text })}
      />
      {error !== '' && <AnswerTo path={addressOf(`tasks/${segment(id)}/explain-error`, { error })} />}
      <Question label="At a time in the past" asked={at} onAsk={(text) => ask({ at: text })} />
      {at !== '' && <AnswerTo path={addressOf(`tasks/${segment(id)}/explain-at`, { at: timeFrom(at) })} />}
    </Section>
  );
}

/** As the browser gives a time of its own zone, or as it was put into the address. */
function timeFrom(text: string): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}
