import { signal } from '@preact/signals';
import type { FailureVerb } from '../../src/failure/groups.ts';
import { printFilter } from '../../src/filter.ts';
import { counted } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { addressOf, segment } from '../data/address.ts';
import { now } from '../data/clock.ts';
import { commandFor } from '../data/commands.ts';
import type { ExplainDocument, FailureGroupJson, ListDocument } from '../data/documents.ts';
import { actOnGroup, adviceOf, helpsWords, hoursOf, verbsForGroup } from '../data/failure-groups.ts';
import { useDocument } from '../data/use-document.ts';
import { type Act, ActButton } from '../parts/act.tsx';
import { Command } from '../parts/copy.tsx';
import { HowLong } from '../parts/how-long.tsx';
import { Text } from '../parts/json.tsx';
import { NameLink } from '../parts/links.tsx';
import { Facts, Page, Section } from '../parts/page.tsx';
import { BarPlot, hourWords, Shares } from '../parts/plot.tsx';
import { TaskSign } from '../parts/sign.tsx';
import { Loaded } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { GroupSign } from './failures.tsx';

const HOURS = 48;

/** What is it, does a retry help, and which tasks have it? */
export function FailureGroupPage({ id }: { readonly id: string }) {
  const shown = useDocument<{ readonly group: FailureGroupJson }>(`failures/${segment(id)}`);
  const group = shown.document?.group;
  return (
    <Page
      title={group ? visible(group.message.slice(0, 60)) : 'Failure'}
      heading={group ? <Heading group={group} /> : 'Failure'}
      back={{ to: 'failures', words: 'Failures' }}
      actions={
        group &&
        verbsForGroup(group.state).map((verb) => (
          <ActButton key={verb} verb="failures" act={actFor(verb, group, () => void shown.again())} />
        ))
      }
    >
      <Loaded shown={shown}>{({ group: known }) => <Group group={known} />}</Loaded>
    </Page>
  );
}

function actFor(verb: FailureVerb, group: FailureGroupJson, again: () => void): Act {
  if (verb !== 'mute') return actOnGroup(verb, group, again);
  const end = signal('');
  const act = actOnGroup(verb, group, again, () => end.value);
  return {
    ...act,
    words: (
      <>
        <p>{act.words}</p>
        <HowLong onChoice={(lasts) => (end.value = lasts)} />
      </>
    ),
  };
}

function Heading({ group: { message, state } }: { readonly group: FailureGroupJson }) {
  return (
    <>
      <bdi>{visible(message.slice(0, 160))}</bdi> <GroupSign state={state} />
    </>
  );
}

function Group({ group }: { readonly group: FailureGroupJson }) {
  const { message, name, frame, type, reason, kind, fingerprint, count, dead, needs_manual: manual } = group;
  const { first_at: firstAt, last_at: lastAt, retries, sources, policy_versions: versions, actions, task } = group;
  const filter = printFilter({ types: [type], fingerprints: [fingerprint] });
  return (
    <>
      <Section title="Does a retry help?">
        <dl class="figures inner-figures">
          <div class="figure">
            <dt>Retry helps</dt>
            <dd>
              {helpsWords(group) ?? '—'}
              <div class="small">
                {retries.succeeded.toLocaleString()} of{' '}
                {counted(retries.succeeded + retries.failed, 'retry', 'retries')} succeeded
              </div>
            </dd>
          </div>
          <div class="figure">
            <dt>Failures</dt>
            <dd>
              {count.toLocaleString()}
              <div class="small">
                first <Time at={firstAt} />, last <Time at={lastAt} />
              </div>
            </dd>
          </div>
          <div class="figure">
            <dt>Ended badly</dt>
            <dd>
              {(dead + manual).toLocaleString()}
              <div class="small">
                {dead.toLocaleString()} dead, {counted(manual, 'needs', 'need')} a person
              </div>
            </dd>
          </div>
        </dl>
        <p>{adviceOf(group)}</p>
        <p class="actions card-foot">
          <a class="button" href={addressOf('tasks', { filter })}>
            All tasks with it
          </a>
          {dead > 0 && (
            <a class="button" href={addressOf('redrives/new', { filter: `state:dead ${filter}` })}>
              Redrive the dead …
            </a>
          )}
        </p>
      </Section>
      <HoursPlot group={group} />
      <div class="columns">
        <Section title="The newest failure">
          <Text text={message} name="error" />
          <Facts
            of={[
              ['Error', visible(name)],
              ['Thrown at', frame !== null && <code>{visible(frame)}</code>],
              ['Type', <NameLink key="type" of="types" name={type} />],
              ['Reason', <NameLink key="reason" of="reasons" name={reason} />],
              ['Kind', kind],
              ['Task', <a key="task" href={`tasks/${task}`}>{`#${task}`}</a>],
              ['Fingerprint', <code key="fingerprint">{fingerprint}</code>],
            ]}
          />
          <Sample task={task} />
        </Section>
        <div>
          <Section title="By source">
            <Shares
              of={sources}
              style="waiting"
              nameOf={(source) => (source === '_other' ? 'others' : <NameLink of="sources" name={source} />)}
            />
          </Section>
          <Section title="By version of the policy">
            <Shares of={versions} style="idle" nameOf={(version) => <code>{version}</code>} />
          </Section>
          <Section title="What was said of it">
            {actions.length === 0 ? (
              <p class="muted">Nothing yet.</p>
            ) : (
              <ol class="history">
                {actions.toReversed().map(({ at, verb, actor, note, until }) => (
                  <li key={`${at} ${verb}`}>
                    <strong>{verb}</strong>
                    {until !== null && (
                      <>
                        {' '}
                        until <Time at={until} exact />
                      </>
                    )}{' '}
                    by <bdi>{visible(actor)}</bdi> <Time at={at} />
                    {note !== null && <q class="note">{visible(note)}</q>}
                  </li>
                ))}
              </ol>
            )}
            <p class="card-foot">
              <Command text={commandFor('failures', 'show', group.id)} />
            </p>
          </Section>
        </div>
      </div>
      <Newest filter={filter} />
    </>
  );
}

function HoursPlot({ group }: { readonly group: FailureGroupJson }) {
  const hours = hoursOf(group, now.value, HOURS);
  const sum = hours.reduce((all, { count }) => all + count, 0);
  const peak = hours.reduce((most, hour) => (hour.count > most.count ? hour : most));
  const at = hourWords(Date.parse(peak.at));
  const summary =
    sum === 0
      ? 'None in the last two days.'
      : `${sum.toLocaleString()} in two days, most in the hour from ${at}: ${peak.count}.`;
  return (
    <Section title="Failures by hour">
      <BarPlot
        title="Failures by hour"
        summary={summary}
        series={[{ id: 'failures', title: 'failures', style: 'waiting' }]}
        bins={hours.map(({ at: from, count }) => ({ at: from, counts: { failures: count } }))}
        height={130}
      />
    </Section>
  );
}

/** Why the task of the newest failure is in its state. */
function Sample({ task }: { readonly task: number }) {
  const { document } = useDocument<ExplainDocument>(`tasks/${task}/explain`);
  return document ? <p class="card-foot">{visible(document.headline)}</p> : null;
}

function Newest({ filter }: { readonly filter: string }) {
  const { document } = useDocument<ListDocument>(addressOf('tasks', { filter, limit: '10' }));
  if (!document || document.items.length === 0) return null;
  return (
    <Section title="Tasks whose last failure this is" aside={<a href={addressOf('tasks', { filter })}>All</a>}>
      <ul class="sample">
        {document.items.map((item) => (
          <li key={item.id}>
            <a href={`tasks/${item.id}`} class="mono">
              #{item.id}
            </a>{' '}
            <TaskSign task={item} /> <bdi>{visible(item.source)}</bdi>{' '}
            <span class="muted">{counted(item.attempts, 'attempt', 'attempts')}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
