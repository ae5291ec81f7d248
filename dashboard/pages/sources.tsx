import { FULL } from '../../src/budget.ts';
import { formatDuration } from '../../src/duration.ts';
import { printFilter } from '../../src/filter.ts';
import { SIGNS } from '../../src/views/source-list.ts';
import { holdsTasks, limitWords, sourceStateWords } from '../../src/views/source-state.ts';
import { visible } from '../../src/views/visible.ts';
import { addressOf, segment } from '../data/address.ts';
import type { LimitsJson, SourceJson, SourcesDocument } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Meter } from '../parts/meter.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Sign } from '../parts/sign.tsx';
import { SourceActs } from '../parts/source-acts.tsx';
import { SpansPlot } from '../parts/spans.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';

const COLUMNS: readonly Column<SourceJson>[] = [
  {
    id: 'name',
    title: 'Source',
    sortedBy: ({ name }) => name,
    cell: ({ name }) => (
      <a href={`sources/${segment(name)}`} class="task-link" title={name}>
        <bdi>{visible(name)}</bdi>
      </a>
    ),
  },
  { id: 'state', title: 'State', sortedBy: ({ state }) => state, cell: (source) => <SourceSign source={source} /> },
  {
    id: 'why',
    title: 'Why, and what is next',
    isWide: true,
    cell: (source) => (
      <>
        {source.cause && <span class="two-lines">{visible(source.cause)}</span>}
        <span class="muted">{nextWords(source)}</span>
      </>
    ),
  },
  {
    id: 'ready',
    title: 'Ready',
    isNumber: true,
    sortedBy: ({ ready }) => ready,
    cell: ({ name, ready }) => <Count state="ready" name={name} count={ready} />,
  },
  {
    id: 'running',
    title: 'Running',
    isNumber: true,
    sortedBy: ({ running }) => running,
    cell: ({ name, running }) => <Count state="running" name={name} count={running} />,
  },
  {
    id: 'budget',
    title: 'Retry budget',
    sortedBy: ({ tokens }) => tokens,
    cell: ({ tokens }) => (tokens < FULL ? <Budget tokens={tokens} /> : <span class="muted">full</span>),
  },
  { id: 'acts', title: 'Actions', cell: (source) => <SourceActs source={source} most={1} /> },
];

/** What tasks touch: which of it is down, held or limited, and since when. */
export function SourcesPage() {
  const use = useListInUse();
  const shown = useDocument<SourcesDocument>('sources', use.isInUse);
  return (
    <Page title="Sources">
      <Loaded shown={shown}>
        {({ items, more, since, timelines }) =>
          items.length === 0 && timelines.length === 0 ? (
            <Empty title="No source has tasks.">
              <p>
                A source is what a task touches, such as a mailbox, a host or a disk. Each type has one by its name
                unless it says another.
              </p>
            </Empty>
          ) : (
            <>
              <Section title="The last 24 hours">
                {timelines.length === 0 ? (
                  <p class="muted">No source was down, held or asked to wait.</p>
                ) : (
                  <SpansPlot title="Sources in the last 24 hours" since={since} lines={worstFirst(timelines, items)} />
                )}
              </Section>
              <LiveList use={use} shown={shown}>
                <Table name="Sources" columns={COLUMNS} rows={items} idOf={({ name }) => name} />
                {more && (
                  <p class="muted span-hint">
                    Of the sources in their normal state, those with the most tasks are shown.
                  </p>
                )}
              </LiveList>
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

/** What hurts now comes first, then what hurt last. */
function worstFirst(
  timelines: SourcesDocument['timelines'],
  items: readonly SourceJson[],
): SourcesDocument['timelines'] {
  const isBad = new Map(items.map(({ name, state }) => [name, holdsTasks(state)]));
  const lastOf = ({ spans }: SourcesDocument['timelines'][number]) => spans.at(-1)?.from ?? '';
  return timelines
    .toSorted((a, b) => {
      const bad = Number(isBad.get(b.source) ?? false) - Number(isBad.get(a.source) ?? false);
      return bad || lastOf(b).localeCompare(lastOf(a));
    })
    .slice(0, MOST_LINES);
}

const MOST_LINES = 20;

export function SourceSign({ source: { state } }: { readonly source: Pick<SourceJson, 'state'> }) {
  const { glyph, style } = SIGNS[state];
  return (
    <Sign
      glyph={glyph === '' ? (state === 'normal' ? '✓' : '◷') : glyph}
      style={state === 'normal' ? 'ok' : style}
      words={sourceStateWords(state)}
    />
  );
}

export function Budget({ tokens }: { readonly tokens: number }) {
  const isLow = tokens < FULL / 4;
  return <Meter value={tokens} of={FULL} style={isLow ? 'dead' : 'ok'} words={`${Math.floor(tokens)}/${FULL}`} />;
}

/** What ends the state, and when. */
export function nextWords(source: SourceJson): string {
  const {
    state,
    opens_in_ms: opensIn,
    held_until: until,
    released_per_second: rate,
    drain_at_least_ms: drain,
  } = source;
  const time = (ms: number) => formatDuration(Math.max(1_000, Math.round(ms / 1_000) * 1_000));
  switch (state) {
    case 'held':
      return until === null ? 'until it is released' : `goes on in ${time(Date.parse(until) - Date.now())}`;
    case 'needs_person':
      return 'until it is released';
    case 'down':
      return opensIn === null ? 'until it is released' : `probe in ${time(opensIn)}`;
    case 'asked_to_wait':
      return opensIn === null ? 'until it is released' : `opens in ${time(opensIn)}`;
    case 'probing':
      return source.running > 0 ? 'a probe runs' : 'the next task is a probe';
    case 'ramping': {
      const pace = rate === null ? '' : `${Math.round(rate * 10) / 10}/s now`;
      const gone = drain === null ? '' : `backlog gone in ${time(drain)} or more`;
      return [pace, gone].filter((part) => part !== '').join(', ');
    }
    default:
      return '';
  }
}

export function limitsWords({ per_second: perSecond, burst, concurrency }: LimitsJson): string {
  const pace = perSecond === null ? undefined : { perSecond, burst: burst ?? 1 };
  return limitWords({ ...(pace && { pace }), ...(concurrency !== null && { concurrency }) });
}

export function Count({
  state,
  name,
  count,
}: {
  readonly state: 'ready' | 'running' | 'dead' | 'scheduled';
  readonly name: string;
  readonly count: number;
}) {
  if (count === 0) return <span class="muted">0</span>;
  const filter = printFilter({ states: [state], sources: [name] });
  return <a href={addressOf('tasks', { filter })}>{count.toLocaleString()}</a>;
}
