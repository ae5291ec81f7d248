import { formatDuration } from '../../src/duration.ts';
import { printFilter } from '../../src/filter.ts';
import { changeWords } from '../../src/views/source-history.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, segment } from '../data/address.ts';
import type { ChangeJson, OutageJson, SourceDocument, SourceJson } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Facts, Page, Section } from '../parts/page.tsx';
import { Sign } from '../parts/sign.tsx';
import { SourceActs } from '../parts/source-acts.tsx';
import { CONDITIONS, SpansPlot, wordsOf } from '../parts/spans.tsx';
import { Loaded } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Since, Time } from '../parts/time.tsx';
import { Budget, Count, limitsWords, nextWords, SourceSign } from './sources.tsx';

/** How many days back. */
const RANGES = [1, 7, 30] as const;

/** One source: its state, what can be done, its outages, and who did what. */
export function SourcePage({ name }: { readonly name: string }) {
  const days = RANGES.find((each) => String(each) === address.value.query.get('days')) ?? 1;
  const shown = useDocument<SourceDocument>(`sources/${segment(name)}?days=${days}`);
  const source = shown.document?.source;
  return (
    <Page
      title={visible(name)}
      back={{ to: 'sources', words: 'Sources' }}
      heading={
        <>
          <bdi>{visible(name)}</bdi> {source && <SourceSign source={source} />}
        </>
      }
      actions={source && <SourceActs source={source} withLimit />}
    >
      <Loaded shown={shown}>
        {(document) => (
          <>
            <Now source={document.source} />
            <Section title={`The last ${rangeWords(days)}`} aside={<Ranges name={name} days={days} />}>
              {document.spans.length === 0 ? (
                <p class="muted">It was never down, held or asked to wait.</p>
              ) : (
                <SpansPlot
                  title={`${visible(name)} in the last ${rangeWords(days)}`}
                  since={document.since}
                  lines={[{ source: name, spans: document.spans }]}
                />
              )}
            </Section>
            {document.outages.length > 0 && <Outages name={name} outages={document.outages} />}
            <Acts changes={document.changes.filter(({ actor }) => actor !== null)} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function rangeWords(days: number): string {
  return days === 1 ? '24 hours' : `${days} days`;
}

function Ranges({ name, days }: { readonly name: string; readonly days: number }) {
  return (
    <nav class="ranges" aria-label="How far back">
      {RANGES.map((each) => (
        <a
          key={each}
          href={addressOf(`sources/${segment(name)}`, { days: each === 1 ? undefined : String(each) })}
          {...(each === days && { 'aria-current': 'true' })}
        >
          {rangeWords(each)}
        </a>
      ))}
    </nav>
  );
}

function Now({ source }: { readonly source: SourceJson }) {
  const { name, cause, since, ready, running, limits, tokens } = source;
  const tasks = (filter: string, words: string) => <a href={addressOf('tasks', { filter })}>{words}</a>;
  return (
    <Section title="Now">
      {cause && (
        <p class="why">
          <bdi>{visible(cause)}</bdi>
        </p>
      )}
      <Facts
        of={[
          ['Since', since && <Since at={since} />],
          ['Next', nextWords(source) || null],
          ['Ready', <Count state="ready" name={name} count={ready} />],
          ['Running', <Count state="running" name={name} count={running} />],
          ['Retry budget', <Budget tokens={tokens} />],
          [
            'Limits',
            limits &&
              `${limitsWords(limits)}, set by ${visible(limits.set_by.actor)}${limits.set_by.note ? `: ${visible(limits.set_by.note)}` : ''}`,
          ],
          ['Its tasks', tasks(printFilter({ sources: [name] }), 'all')],
          ['Its failures', <a href={addressOf('failures', { filter: printFilter({ sources: [name] }) })}>groups</a>],
        ]}
      />
    </Section>
  );
}

function Outages({ name, outages }: { readonly name: string; readonly outages: readonly OutageJson[] }) {
  const columns: readonly Column<OutageJson>[] = [
    { id: 'from', title: 'Began', cell: ({ from }) => <Time at={from} exact /> },
    {
      id: 'for',
      title: 'Lasted',
      cell: ({ from, to }) =>
        to === null
          ? 'until now'
          : formatDuration(Math.max(1_000, Math.round((Date.parse(to) - Date.parse(from)) / 1_000) * 1_000)),
    },
    {
      id: 'was',
      title: 'Was',
      cell: ({ condition }) => {
        return <Sign glyph="⏸" style={CONDITIONS[condition].style} words={wordsOf(condition)} />;
      },
    },
    {
      id: 'why',
      title: 'Because of',
      isWide: true,
      cell: ({ reason, message }) => (
        <>
          {reason}
          {message && <span class="muted two-lines">{visible(message)}</span>}
        </>
      ),
    },
    { id: 'refunded', title: 'Attempts given back', isNumber: true, cell: ({ refunded }) => refunded },
    {
      id: 'tasks',
      title: 'Died in it',
      cell: ({ from, to }) => <a href={addressOf('tasks', { filter: diedIn(name, from, to) })}>tasks</a>,
    },
  ];
  return (
    <Section title={`Outages (${outages.length})`}>
      <Table name="Outages" columns={columns} rows={outages} idOf={({ from }) => from} />
    </Section>
  );
}

/** What ended as dead while it lasted: the filter of a redrive, too. */
function diedIn(name: string, from: string, to: string | null): string {
  return printFilter({
    states: ['dead'],
    sources: [name],
    endedFrom: Date.parse(from),
    ...(to !== null && { endedBefore: Date.parse(to) }),
  });
}

function Acts({ changes }: { readonly changes: readonly ChangeJson[] }) {
  return (
    <Section title="What people did">
      {changes.length === 0 ? (
        <p class="muted">Nobody held, released, probed or limited it in this time.</p>
      ) : (
        <ul class="plain-list">
          {changes.map((change) => (
            <li key={change.id}>
              <Time at={change.at} exact />
              <span>{actWords(change)}</span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** `held for 2h by eva: the host moves`. */
function actWords(json: ChangeJson): string {
  const { change, held_for_ms: heldFor, actor, note, at, id, kind, name, limits } = json;
  return changeWords({
    id,
    at: Date.parse(at),
    kind,
    name,
    change,
    ...(heldFor !== null && { heldForMs: heldFor }),
    ...(limits && {
      limits: {
        pace: limits.per_second == null ? null : { perSecond: limits.per_second, burst: 1 },
        concurrency: limits.concurrency ?? null,
      },
    }),
    ...(actor !== null && { by: { actor, ...(note !== null && { note }) } }),
  });
}
