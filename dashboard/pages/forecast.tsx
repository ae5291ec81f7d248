import { formatDuration } from '../../src/duration.ts';
import { printFilter } from '../../src/filter.ts';
import { counted } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf } from '../data/address.ts';
import { useDocument } from '../data/use-document.ts';
import { Page, Section } from '../parts/page.tsx';
import { BarPlot, type Series } from '../parts/plot.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';

interface ForecastDocument {
  readonly bin_ms: number;
  readonly total: { readonly value: number; readonly exact: boolean };
  readonly bins: readonly {
    readonly at: string;
    readonly first: number;
    readonly retries: number;
    readonly unread: number;
  }[];
  readonly groups: readonly Group[];
}

interface Group {
  readonly type: string;
  readonly source: string;
  readonly reason: string | null;
  readonly count: number;
}

const SERIES: readonly Series[] = [
  { id: 'first', title: 'first attempts', style: 'active', texture: 'outline' },
  { id: 'retries', title: 'retries', style: 'waiting' },
  { id: 'unread', title: 'not looked at: too many', style: 'idle', texture: 'outline' },
];

const RANGES = [
  ['1h', 'hour'],
  ['6h', '6 hours'],
  ['24h', '24 hours'],
] as const;

const COLUMNS: readonly Column<Group>[] = [
  {
    id: 'type',
    title: 'Type',
    cell: ({ type, source }) => (
      <a
        class="task-link"
        href={addressOf('tasks', { filter: printFilter({ states: ['scheduled'], types: [type], sources: [source] }) })}
      >
        <bdi>{visible(type)}</bdi>
      </a>
    ),
  },
  { id: 'source', title: 'Source', cell: ({ source }) => visible(source) },
  {
    id: 'reason',
    title: 'Why',
    isWide: true,
    cell: ({ reason }) =>
      reason === null ? <span class="muted">first attempt</span> : `retry after ${visible(reason)}`,
  },
  { id: 'count', title: 'Tasks', isNumber: true, cell: ({ count }) => count.toLocaleString() },
];

/** What falls due in the next hours: whether a recovery will be a rush. */
export function ForecastPage() {
  const [within, words] = RANGES.find(([id]) => id === address.value.query.get('within')) ?? RANGES[0];
  const shown = useDocument<ForecastDocument>(addressOf('forecast', { within }));
  return (
    <Page title="Forecast">
      <Loaded shown={shown}>
        {({ bins, total, groups, bin_ms: span }) => (
          <>
            <Section
              title={`What falls due in the next ${words}`}
              aside={
                <nav class="ranges" aria-label="How far ahead">
                  {RANGES.map(([id, title]) => (
                    <a
                      key={id}
                      href={addressOf('forecast', { within: id === '1h' ? undefined : id })}
                      {...(id === within && { 'aria-current': 'true' })}
                    >
                      {title}
                    </a>
                  ))}
                </nav>
              }
            >
              {total.value === 0 ? (
                <Empty title="Nothing falls due in this time." />
              ) : (
                <BarPlot
                  title="Tasks that fall due"
                  summary={summaryOf(bins, total, span)}
                  series={SERIES.filter(({ id }) => id !== 'unread' || bins.some(({ unread }) => unread > 0))}
                  bins={bins.map(({ at, first, retries, unread }) => ({ at, counts: { first, retries, unread } }))}
                  height={240}
                />
              )}
              <p class="muted span-hint">
                Retries that have their time already. A retry that fails again, and tasks that are still to come, are
                not in it.
              </p>
            </Section>
            {groups.length > 0 && (
              <>
                <h2 class="list-title">The largest groups</h2>
                <Table
                  name="The largest groups"
                  columns={COLUMNS}
                  rows={groups}
                  idOf={({ type, source, reason }) => `${type} ${source} ${reason}`}
                />
              </>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function summaryOf(bins: ForecastDocument['bins'], total: ForecastDocument['total'], span: number): string {
  const countOf = ({ first, retries, unread }: ForecastDocument['bins'][number]) => first + retries + unread;
  const most = bins.reduce(
    (best, bin) => (countOf(bin) > countOf(best) ? bin : best),
    bins[0] as ForecastDocument['bins'][number],
  );
  const retries = bins.reduce((sum, bin) => sum + bin.retries, 0);
  const peak = new Date(most.at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
  return `${total.exact ? '' : 'At least '}${counted(total.value, 'task', 'tasks')}, ${retries.toLocaleString()} of them ${retries === 1 ? 'a retry' : 'retries'}; most at ${peak}: ${countOf(most).toLocaleString()} in ${formatDuration(span)}.`;
}
