import { formatDuration } from '../../src/duration.ts';
import { formatRate } from '../../src/pace.ts';
import { SKIPPED } from '../../src/views/redrive-of-task.ts';
import { visible } from '../../src/views/visible.ts';
import { addressOf } from '../data/address.ts';
import type { RedriveDocument, RedriveJson } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Facts, Page, Section } from '../parts/page.tsx';
import { RedriveActs, RedriveProgress, RedriveSign } from '../parts/redrive-parts.tsx';
import { Loaded } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';

/** One redrive: how far it is, how its tasks went, and what was skipped. */
export function RedrivePage({ id }: { readonly id: string }) {
  const shown = useDocument<RedriveDocument>(`redrives/${id}`);
  const redrive = shown.document?.redrive;
  return (
    <Page
      title={`Redrive ${id}`}
      back={{ to: 'redrives', words: 'Redrives' }}
      heading={
        <>
          Redrive #{id} {redrive && <RedriveSign redrive={redrive} />}
        </>
      }
      actions={redrive && <RedriveActs redrive={redrive} />}
    >
      <Loaded shown={shown}>
        {({ redrive: of, skipped_by: skips }) => (
          <>
            <Section title="Progress">
              {of.because && <p class="why">{visible(of.because)}</p>}
              <RedriveProgress redrive={of} />
              <p class="muted span-hint">{stateWords(of)}</p>
            </Section>
            <Section title="What it does">
              <Facts
                of={[
                  ['Why', visible(of.note)],
                  ['By', visible(of.actor)],
                  ['Started', <Time key="started" at={of.started_at} exact />],
                  [
                    'Which tasks',
                    <a key="filter" href={addressOf('tasks', { filter: of.filter.text })}>
                      <code>{visible(of.filter.text)}</code>
                    </a>,
                  ],
                  ['Rate', formatRate(of.per_second)],
                  [
                    'What must not run twice',
                    of.accept_duplicate
                      ? 'is put back too, even if it may have happened already'
                      : 'is skipped if it may have happened already',
                  ],
                ]}
              />
            </Section>
            {of.skipped > 0 && (
              <Section title={`Skipped (${of.skipped})`}>
                <ul class="plain-list">
                  {Object.entries(skips).map(([why, count]) => (
                    <li key={why}>
                      <strong>{count}</strong> {SKIPPED[why as keyof typeof SKIPPED]}
                    </li>
                  ))}
                </ul>
              </Section>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function stateWords({ state, by, left, takes_at_least_ms: takes, since, selecting }: RedriveJson) {
  switch (state) {
    case 'running':
      if (selecting) return 'It selects its tasks.';
      if (left === 0) return 'All are put back; it waits until it is known how the last ones went.';
      return `It puts back 1 task, then 5, then 25, each when it is known how those before went; then the rest. ${left.toLocaleString()} are left, which takes ${formatDuration(takes)} at least.`;
    case 'paused':
    case 'cancelled':
    case 'done':
    case 'stopped':
      return (
        <>
          {state === 'stopped' ? 'It stopped itself' : state.charAt(0).toUpperCase() + state.slice(1)}{' '}
          <Time at={since} />
          {by && ` by ${visible(by.actor)}${by.note ? `: ${visible(by.note)}` : ''}`}.
          {state === 'stopped' && ' The tasks that are left stay as they are.'}
        </>
      );
  }
}
