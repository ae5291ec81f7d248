import { MISSED, OVERLAP, WAS } from '../../src/views/schedule-text.ts';
import { visible } from '../../src/views/visible.ts';
import { segment } from '../data/address.ts';
import type { ScheduleDocument } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { ActButton } from '../parts/act.tsx';
import { JsonText } from '../parts/json.tsx';
import { Facts, Page, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { DueTime, Time } from '../parts/time.tsx';
import { LastTask, removing, ScheduleActs, ScheduleSign } from './schedules.tsx';

/** One schedule: its next times, and what it enqueues. */
export function SchedulePage({ name }: { readonly name: string }) {
  const shown = useDocument<ScheduleDocument>(`schedules/${segment(name)}`);
  const schedule = shown.document?.schedule;
  return (
    <Page
      title={visible(name)}
      back={{ to: 'schedules', words: 'Schedules' }}
      heading={
        <>
          <bdi>{visible(name)}</bdi> {schedule && <ScheduleSign schedule={schedule} />}
        </>
      }
      actions={
        schedule && (
          <>
            <ScheduleActs schedule={schedule} />
            <ActButton verb="schedules" style="quiet" act={removing(schedule)} />
          </>
        )
      }
    >
      <Loaded shown={shown}>
        {({ schedule: of, next }) => (
          <>
            <Section title="When">
              {of.paused && (
                <p class="why">
                  Paused by {visible(of.paused.actor)} <Time at={of.paused.at} />
                  {of.paused.note && `: ${visible(of.paused.note)}`}
                </p>
              )}
              <Facts
                of={[
                  [
                    'Cron',
                    <span key="cron">
                      <code>{visible(of.cron)}</code> in {visible(of.time_zone)}
                    </span>,
                  ],
                  ['Missed times', MISSED[of.missed]],
                  ['While the task before has not ended', OVERLAP[of.overlap]],
                  [
                    'Last time',
                    of.last && (
                      <span key="last">
                        <Time at={of.last.tick} exact />: {WAS[of.last.was]}
                      </span>
                    ),
                  ],
                  ['Last task', of.last_task && <LastTask key="task" schedule={of} />],
                  ['Enqueued', of.counts.enqueued],
                  ['Passed over', of.counts.skipped],
                  ['Missed', of.counts.missed],
                  ['Set by', of.origin.by === 'code' ? 'a program' : visible(of.origin.file ?? '')],
                ]}
              />
            </Section>
            <Section title="Next times">
              {next.length === 0 ? (
                <p class="muted">There is no other time.</p>
              ) : (
                <ol class="plain-list">
                  {next.map((at) => (
                    <li key={at}>
                      <DueTime at={at} />
                    </li>
                  ))}
                </ol>
              )}
            </Section>
            <Section title="What it enqueues">
              <Facts
                of={[
                  ['Type', visible(of.type)],
                  ['Queue', visible(of.queue)],
                  ['Source', visible(of.source)],
                ]}
              />
              <h3>Input</h3>
              <JsonText value={of.input} name="input" isHidden={of.hidden} />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}
