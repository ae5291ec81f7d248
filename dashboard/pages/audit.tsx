import { plural } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, segment } from '../data/address.ts';
import { useDocument } from '../data/use-document.ts';
import { PagesOfList } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';

interface Entry {
  readonly on: 'tasks' | 'source' | 'queue' | 'failures';
  readonly at: string;
  readonly actor: string;
  readonly verb: string;
  readonly note: string | null;
  readonly name: string | null;
  readonly count: number;
  readonly tasks: readonly number[];
}

interface AuditDocument {
  readonly items: readonly Entry[];
  readonly next: string | null;
}

const COLUMNS: readonly Column<Entry>[] = [
  { id: 'when', title: 'When', cell: ({ at }) => <Time at={at} exact /> },
  { id: 'who', title: 'Who', cell: ({ actor }) => <bdi>{visible(actor)}</bdi> },
  { id: 'what', title: 'Did', cell: ({ verb }) => visible(verb) },
  { id: 'on', title: 'To', isWide: true, cell: (entry) => <Target entry={entry} /> },
  { id: 'why', title: 'Why', isWide: true, cell: ({ note }) => note && <bdi>{visible(note)}</bdi> },
];

/** What people did: to tasks, sources, queues and groups of failures. */
export function AuditPage() {
  const before = address.value.query.get('before') ?? undefined;
  const use = useListInUse();
  const shown = useDocument<AuditDocument>(addressOf('audit', { before }), use.isInUse);
  return (
    <Page title="Audit">
      <Loaded shown={shown}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title={before === undefined ? 'Nobody has done anything yet.' : 'There is nothing older.'}>
              <p>What people do from here, from the command line or by program stands here with their name and note.</p>
            </Empty>
          ) : (
            <LiveList use={use} shown={shown}>
              <Table
                name="What people did"
                columns={COLUMNS}
                rows={items}
                idOf={({ at, actor, verb, on, name, tasks }) => [at, actor, verb, on, name, tasks[0]].join(' ')}
              />
              <PagesOfList next={next} />
            </LiveList>
          )
        }
      </Loaded>
    </Page>
  );
}

function Target({ entry: { on, name, count, tasks } }: { readonly entry: Entry }) {
  switch (on) {
    case 'tasks':
      return (
        <>
          {count > 1 && `${plural(count, 'task', 'tasks')}: `}
          {tasks.map((id) => (
            <a key={id} href={`tasks/${id}`} class="mono task-number">
              #{id}
            </a>
          ))}
          {count > tasks.length && '…'}
        </>
      );
    case 'source':
      return (
        <>
          source{' '}
          <a href={`sources/${segment(name ?? '')}`}>
            <bdi>{visible(name ?? '')}</bdi>
          </a>
        </>
      );
    case 'queue':
      return (
        <>
          queue <a href="queues">{visible(name ?? '')}</a>
        </>
      );
    case 'failures':
      return (
        <>
          group of failures{' '}
          <a href={`failures/${segment(name ?? '')}`} class="mono">
            {visible((name ?? '').slice(0, 10))}
          </a>
        </>
      );
  }
}
