import type { FailureGroupState } from '../../src/failure/groups.ts';
import { counted } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf } from '../data/address.ts';
import { now } from '../data/clock.ts';
import type { FailureGroupJson } from '../data/documents.ts';
import { helpsWords, hoursOf } from '../data/failure-groups.ts';
import { useDocument } from '../data/use-document.ts';
import { Page } from '../parts/page.tsx';
import { Trend } from '../parts/plot.tsx';
import { Sign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';

interface FailuresDocument {
  readonly items: readonly FailureGroupJson[];
}

const TABS = [
  { id: 'open', title: 'Open', states: ['open', 'regressed', 'acknowledged'] },
  { id: 'muted', title: 'Muted', states: ['muted'] },
  { id: 'resolved', title: 'Resolved', states: ['resolved'] },
  { id: 'all', title: 'All', states: ['open', 'regressed', 'acknowledged', 'muted', 'resolved'] },
] as const satisfies readonly { id: string; title: string; states: readonly FailureGroupState[] }[];

const COLUMNS: readonly Column<FailureGroupJson>[] = [
  {
    id: 'error',
    title: 'Failure',
    isWide: true,
    cell: (group) => (
      <>
        <a href={`failures/${group.id}`} class="task-link two-lines">
          <bdi>{visible(group.message.slice(0, 300))}</bdi>
        </a>
        <span class="muted">
          {visible(group.type)} · {visible(group.reason)}
        </span>
      </>
    ),
  },
  { id: 'state', title: 'State', cell: ({ state }) => <GroupSign state={state} /> },
  {
    id: 'trend',
    title: '24 hours',
    cell: (group) => {
      const counts = hoursOf(group, now.value, 24).map(({ count }) => count);
      const sum = counts.reduce((all, count) => all + count, 0);
      return (
        <Trend
          counts={counts}
          words={`${sum} failures in 24 hours, ${counts.at(-1)} in the last one`}
          style="waiting"
        />
      );
    },
  },
  {
    id: 'count',
    title: 'Failures',
    isNumber: true,
    sortedBy: ({ count }) => count,
    cell: ({ count }) => count.toLocaleString(),
  },
  {
    id: 'stuck',
    title: 'Ended badly',
    isNumber: true,
    sortedBy: ({ dead, needs_manual: manual }) => dead + manual,
    cell: ({ dead, needs_manual: manual }) => (dead + manual).toLocaleString(),
  },
  {
    id: 'helps',
    title: 'Retry helps',
    isNumber: true,
    sortedBy: ({ retry_helps: helps }) => helps?.share ?? -1,
    cell: (group) => helpsWords(group) ?? '—',
  },
  { id: 'first', title: 'First', sortedBy: ({ first_at: at }) => at, cell: ({ first_at: at }) => <Time at={at} /> },
  { id: 'last', title: 'Last', sortedBy: ({ last_at: at }) => at, cell: ({ last_at: at }) => <Time at={at} /> },
];

/** Groups of alike failures. */
export function FailuresPage() {
  const { query } = address.value;
  const use = useListInUse();
  const shown = useDocument<FailuresDocument>(
    addressOf('failures', { filter: query.get('filter') ?? undefined }),
    use.isInUse,
  );
  const tab = TABS.find(({ id }) => id === query.get('state')) ?? TABS[0];
  return (
    <Page title="Failures">
      <Loaded shown={shown}>
        {({ items }) => {
          const inTab = (states: readonly FailureGroupState[]) => items.filter(({ state }) => states.includes(state));
          const rows = inTab(tab.states);
          return (
            <>
              <nav aria-label="States" class="counts">
                {TABS.map(({ id, title, states }) => (
                  <a
                    key={id}
                    href={addressOf('failures', {
                      ...Object.fromEntries(query),
                      state: id === 'open' ? undefined : id,
                    })}
                    {...(id === tab.id && { 'aria-current': 'true' })}
                  >
                    {title} <span class="muted">{inTab(states).length}</span>
                  </a>
                ))}
              </nav>
              {rows.length === 0 ? (
                <NoGroup items={items} isOpen={tab.id === 'open'} />
              ) : (
                <LiveList use={use} shown={shown}>
                  <Table name="Groups of alike failures" columns={COLUMNS} rows={rows} idOf={({ id }) => id} />
                </LiveList>
              )}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function NoGroup({ items, isOpen }: { readonly items: readonly FailureGroupJson[]; readonly isOpen: boolean }) {
  if (items.length === 0) {
    return (
      <Empty title="Nothing has failed.">
        <p>Failures of one type that were thrown at the same place with alike messages stand here as one group.</p>
      </Empty>
    );
  }
  const muted = items.filter(({ state }) => state === 'muted');
  const count = muted.reduce((sum, group) => sum + group.count, 0);
  return (
    <Empty title={isOpen ? 'No group is open.' : 'No group is in this state.'}>
      {isOpen && muted.length > 0 && (
        <p>
          {counted(muted.length, 'muted group', 'muted groups')} had {counted(count, 'failure', 'failures')}.
        </p>
      )}
    </Empty>
  );
}

const SIGNS: Readonly<Record<FailureGroupState, readonly [glyph: string, style: string]>> = {
  open: ['✕', 'dead'],
  regressed: ['↻', 'dead'],
  acknowledged: ['⚑', 'human'],
  muted: ['⊘', 'idle'],
  resolved: ['✓', 'ok'],
};

export function GroupSign({ state }: { readonly state: FailureGroupState }) {
  const [glyph, style] = SIGNS[state];
  return <Sign glyph={glyph} style={style} words={state} />;
}
