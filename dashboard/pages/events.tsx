import { useEffect, useState } from 'preact/hooks';
import type { ShownState } from '../../src/views/glyphs.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, ask, segment } from '../data/address.ts';
import { commandFor } from '../data/commands.ts';
import { useDocument } from '../data/use-document.ts';
import { Command } from '../parts/copy.tsx';
import { Page } from '../parts/page.tsx';
import { StateSign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';

const LIMIT = 50;

interface EventJson {
  readonly at: string;
  readonly task: number | null;
  readonly type: string | null;
  /** The source of the task, or the source that changed. */
  readonly source: string | null;
  /** The queue of the task, or the queue that changed. */
  readonly queue: string | null;
  readonly state: ShownState;
  readonly text: string;
}

interface EventsDocument {
  readonly items: readonly EventJson[];
  /** The search ended here although there may be older events. */
  readonly searched_to: string | null;
}

const COLUMNS: readonly Column<EventJson>[] = [
  { id: 'when', title: 'When', cell: ({ at }) => <Time at={at} /> },
  { id: 'state', title: 'Then', cell: ({ state }) => <StateSign state={state} /> },
  { id: 'about', title: 'About', cell: (event) => <About event={event} /> },
  { id: 'what', title: 'What happened', isWidest: true, cell: ({ text }) => <bdi>{text}</bdi> },
];

/** What happened lately to tasks, sources and queues, the newest first. */
export function EventsPage() {
  const { query } = address.value;
  const filter = query.get('filter') ?? '';
  const until = query.get('until') ?? '';
  const use = useListInUse();
  const terms = `${filter} ${until === '' ? '' : `until:${until}`}`.trim();
  const shown = useDocument<EventsDocument>(
    addressOf('happened', { filter: terms, limit: String(LIMIT) }),
    use.isInUse,
  );
  return (
    <Page title="Events" actions={<Command text={commandFor('events', ...(terms === '' ? [] : [terms]), '-f')} />}>
      <Filter filter={filter} />
      <Loaded shown={shown}>
        {({ items, searched_to: searchedTo }) => {
          const last = searchedTo ?? (items.length === LIMIT ? items.at(-1)?.at : undefined);
          return (
            <>
              {items.length === 0 ? (
                <Empty title={terms === '' ? 'Nothing has happened yet.' : 'No event matches.'}>
                  <p>A success at the first attempt leaves no event. The overview counts those.</p>
                </Empty>
              ) : (
                <LiveList use={use} shown={shown}>
                  <Table name="Events" columns={COLUMNS} rows={items} idOf={idOf} />
                </LiveList>
              )}
              {last !== undefined && (
                <p>
                  <a class="button" href={addressOf('events', { filter, until: last })}>
                    Older
                  </a>
                </p>
              )}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function idOf({ at, task, source, queue, text }: EventJson): string {
  return [at, task, source, queue, text].join(' ');
}

function Filter({ filter }: { readonly filter: string }) {
  const [text, setText] = useState(filter);
  useEffect(() => setText(filter), [filter]);
  return (
    <form
      class="event-filter"
      onSubmit={(event) => {
        event.preventDefault();
        ask({ filter: text.trim(), until: undefined });
      }}
    >
      <label class="field">
        Which events
        <input
          type="text"
          class="mono"
          value={text}
          placeholder="state:dead source:imap:* since:2h"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function About({ event: { task, type, source, queue } }: { readonly event: EventJson }) {
  if (task !== null) {
    return (
      <a href={`tasks/${task}`} class="task-link">
        <span class="mono">#{task}</span> <bdi>{visible(type ?? '')}</bdi>
      </a>
    );
  }
  if (source !== null) {
    return (
      <>
        source{' '}
        <a href={`sources/${segment(source)}`}>
          <bdi>{visible(source)}</bdi>
        </a>
      </>
    );
  }
  return (
    <>
      queue{' '}
      <a href="queues">
        <bdi>{visible(queue ?? '')}</bdi>
      </a>
    </>
  );
}
