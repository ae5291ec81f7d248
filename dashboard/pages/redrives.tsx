import { visible } from '../../src/views/visible.ts';
import type { RedriveJson, RedrivesDocument } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Page } from '../parts/page.tsx';
import { RedriveActs, RedriveProgress, RedriveSign } from '../parts/redrive-parts.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';

const COLUMNS: readonly Column<RedriveJson>[] = [
  {
    id: 'id',
    title: 'Redrive',
    cell: ({ id }) => (
      <a href={`redrives/${id}`} class="task-link mono">
        #{id}
      </a>
    ),
  },
  { id: 'state', title: 'State', cell: (redrive) => <RedriveSign redrive={redrive} /> },
  {
    id: 'why',
    title: 'Why, and which tasks',
    isWide: true,
    cell: ({ note, filter }) => (
      <>
        <span class="two-lines">{visible(note)}</span>
        <code class="muted">{visible(filter.text)}</code>
      </>
    ),
  },
  { id: 'progress', title: 'Put back', cell: (redrive) => <RedriveProgress redrive={redrive} /> },
  { id: 'who', title: 'By', cell: ({ actor }) => visible(actor) },
  { id: 'started', title: 'Started', cell: ({ started_at: at }) => <Time at={at} /> },
  { id: 'acts', title: 'Actions', cell: (redrive) => <RedriveActs redrive={redrive} /> },
];

/** Redrives that run, and those of the last 30 days. */
export function RedrivesPage() {
  const use = useListInUse();
  const shown = useDocument<RedrivesDocument>('redrives', use.isInUse);
  return (
    <Page
      title="Redrives"
      actions={
        <a class="button" href="redrives/new">
          New redrive …
        </a>
      }
    >
      <Loaded shown={shown}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="There are no redrives.">
              <p>A redrive puts many ended tasks back: slowly at first, and it stops itself if they fail again.</p>
            </Empty>
          ) : (
            <LiveList use={use} shown={shown}>
              <Table name="Redrives" columns={COLUMNS} rows={items} idOf={({ id }) => id} />
            </LiveList>
          )
        }
      </Loaded>
    </Page>
  );
}
