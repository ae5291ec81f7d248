import { plural } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { post } from '../data/api.ts';
import { now } from '../data/clock.ts';
import { commandFor } from '../data/commands.ts';
import type { WorkerJson, WorkersDocument } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { type Act, ActButton } from '../parts/act.tsx';
import { Command } from '../parts/copy.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Sign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { Since, Time } from '../parts/time.tsx';

const COLUMNS: readonly Column<WorkerJson>[] = [
  {
    id: 'name',
    title: 'Worker',
    sortedBy: ({ name }) => name,
    cell: ({ id, name }) => (
      <>
        <bdi>{visible(name)}</bdi> <span class="muted">ID {id}</span>
      </>
    ),
  },
  { id: 'state', title: 'State', cell: (worker) => <WorkerSign worker={worker} /> },
  {
    id: 'where',
    title: 'Process',
    cell: ({ pid, host }) => (
      <>
        {visible(host)} <span class="muted">pid {pid}</span>
      </>
    ),
  },
  {
    id: 'running',
    title: 'Running',
    isNumber: true,
    sortedBy: ({ running }) => running,
    cell: ({ running }) => running.toLocaleString(),
  },
  { id: 'takes', title: 'Takes', isWide: true, cell: (worker) => takesWords(worker) },
  { id: 'up', title: 'Up for', sortedBy: ({ joined_at: at }) => at, cell: ({ joined_at: at }) => <Since at={at} /> },
  { id: 'lease', title: 'Lease', cell: ({ lease_until: at }) => <Lease at={at} /> },
  {
    id: 'acts',
    title: 'Actions',
    cell: (worker) => <ActButton verb="workers" style="quiet framed" act={ending(worker)} />,
  },
];

/** The workers that share the store. */
export function WorkersPage() {
  const use = useListInUse();
  const shown = useDocument<WorkersDocument>('workers', use.isInUse);
  return (
    <Page title="Workers">
      <Loaded shown={shown}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No worker is there.">
              <p>Start the program that runs your tasks, or for commands and files:</p>
              <Command text={commandFor('worker')} />
            </Empty>
          ) : (
            <>
              {items
                .filter(({ trouble }) => trouble !== null)
                .map((worker) => (
                  <Trouble key={worker.id} worker={worker} />
                ))}
              <LiveList use={use} shown={shown}>
                <Table name="Workers" columns={COLUMNS} rows={items} idOf={({ id }) => id} />
              </LiveList>
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function WorkerSign({ worker: { alive, trouble } }: { readonly worker: WorkerJson }) {
  if (!alive) return <Sign glyph="✕" style="dead" words="lost" />;
  if (trouble) return <Sign glyph="⚑" style="human" words="in trouble" />;
  return <Sign glyph="▶" style="ok" words="alive" />;
}

function Trouble({ worker: { name, trouble } }: { readonly worker: WorkerJson }) {
  if (!trouble) return null;
  return (
    <Section title={`${visible(name)} cannot work properly`}>
      <p>
        It claims only single tasks to test itself, since <Time at={trouble.since} />: {visible(trouble.reason)}.
      </p>
      <p class="muted">{visible(trouble.message)}</p>
    </Section>
  );
}

function Lease({ at }: { readonly at: string }) {
  if (Date.parse(at) > now.value) return <Time at={at} />;
  return (
    <span class="muted">
      ended <Time at={at} />
    </span>
  );
}

function takesWords({ takes: { types, queues, categories, capabilities } }: WorkerJson): string {
  const named = (what: string, names: readonly string[] | null) =>
    names ? [`${what} ${names.map(visible).join(', ')}`] : [];
  const able = Object.entries(capabilities).map(([name, value]) => `${visible(name)}=${visible(String(value))}`);
  return [
    types ? (types.length === 0 ? 'only tasks claimed by hand' : types.map(visible).join(', ')) : 'any type',
    ...named('queues', queues),
    ...named('categories', categories),
    ...(able.length > 0 ? [`with ${able.join(', ')}`] : []),
  ].join('; ');
}

function ending({ id, name, running, alive }: WorkerJson): Act {
  const tasks = plural(running, 'task', 'tasks');
  return {
    title: `End the leases of ${visible(name)}?`,
    words: (
      <>
        <p>
          {running === 0
            ? 'It runs nothing.'
            : `${tasks} can be taken over at once, as if its process had died. No attempt is counted; tasks that must not run twice wait for a person.`}
        </p>
        <p>
          {alive
            ? 'This is for a worker that is stuck. It hears of it within two renewals, stops what it runs, and works on as a new one. Nothing is done to its process.'
            : 'It is lost already: another worker takes its tasks over by itself when it is sure.'}
        </p>
      </>
    ),
    does: 'End',
    isSevere: true,
    note: 'none',
    command: commandFor('workers', 'end', id),
    run: async () => {
      await post(`workers/${id}/end`, {});
      return `The leases of ${visible(name)} are ended.`;
    },
  };
}
