import { visible } from '../../src/views/visible.ts';
import type { ShowDocument, TaskJson } from '../data/documents.ts';
import { actOnTask, verbsFor } from '../data/task-acts.ts';
import { ActButton } from './act.tsx';
import { Command, Copy } from './copy.tsx';
import { Section } from './page.tsx';
import { Sign } from './sign.tsx';

/** What can be done with a task, and its number to copy. */
export function TaskActs({ task, again }: { readonly task: TaskJson; readonly again: () => void }) {
  return (
    <>
      {/* What needs a person is answered below. */}
      {verbsFor(task.state)
        .filter((verb) => task.state !== 'needs_manual' || verb !== 'retry')
        .map((verb) => (
          <ActButton
            key={verb}
            verb={verb}
            act={actOnTask(verb, task, again)}
            {...(verb === 'retry' && { style: task.state === 'succeeded' ? '' : 'primary' })}
          />
        ))}
      <Copy text={String(task.id)} label="Copy the number" />
    </>
  );
}

/** Why a task is in its state, and what comes next. */
export function Why({
  task,
  explained,
}: {
  readonly task: TaskJson;
  readonly explained: NonNullable<ShowDocument['explain']>;
}) {
  const { headline, checks, because, next, actions, text } = explained;
  return (
    <Section title="Why" aside={<Copy text={text} label="Copy the explanation" />}>
      <p class="headline">{visible(headline)}</p>
      {because && !headline.includes(because.text) && <p>{visible(because.text)}</p>}
      {checks.length > 0 && (
        <ul class="checks" aria-label="What must be true for it to run">
          {checks.map(({ name, ok, text: words }) => (
            <li key={name} class={ok ? 'passed' : 'holds'}>
              <Sign glyph={ok ? '✓' : '✕'} style={ok ? 'ok' : 'waiting'} words={ok ? name : `waits: ${name}`} />
              <span>{visible(words)}</span>
            </li>
          ))}
        </ul>
      )}
      <p>
        <strong>Next</strong> {visible(next)}
      </p>
      {actions.length > 0 && task.state !== 'needs_manual' && (
        <ul class="possible" aria-label="What you can do">
          {actions.map(({ words, command }) => (
            <li key={words}>
              <span>{visible(words)}</span>
              {command !== null && <Command text={command} />}
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
