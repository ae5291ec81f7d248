import { signal } from '@preact/signals';
import { printFilter } from '../../src/filter.ts';
import { QUEUE_ORDERS } from '../../src/task.ts';
import { plural } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { addressOf, segment } from '../data/address.ts';
import { post } from '../data/api.ts';
import { commandFor } from '../data/commands.ts';
import type { QueueJson, QueuesDocument } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { type Act, ActButton } from '../parts/act.tsx';
import { limiting } from '../parts/limit-act.tsx';
import { Page } from '../parts/page.tsx';
import { Sign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { Since, Time } from '../parts/time.tsx';
import { limitsWords } from './sources.tsx';

const COLUMNS: readonly Column<QueueJson>[] = [
  {
    id: 'name',
    title: 'Queue',
    sortedBy: ({ name }) => name,
    cell: ({ name }) => (
      <a href={addressOf('tasks', { filter: printFilter({ queues: [name] }) })} class="task-link wraps" title={name}>
        <bdi>{visible(name)}</bdi>
      </a>
    ),
  },
  {
    id: 'state',
    title: 'State',
    cell: ({ paused }) =>
      paused ? <Sign glyph="⏸" style="waiting" words="paused" /> : <Sign glyph="▶" style="ok" words="open" />,
  },
  {
    id: 'ready',
    title: 'Ready',
    isNumber: true,
    sortedBy: ({ ready }) => ready,
    cell: ({ ready }) => ready.toLocaleString(),
  },
  {
    id: 'oldest',
    title: 'Oldest waits',
    cell: ({ oldest_ready_at: at }) => at && <Since at={at} />,
  },
  {
    id: 'running',
    title: 'Running',
    isNumber: true,
    sortedBy: ({ running }) => running,
    cell: ({ running }) => running.toLocaleString(),
  },
  { id: 'longest', title: 'Longest runs', cell: ({ oldest_running_at: at }) => at && <Since at={at} /> },
  {
    id: 'scheduled',
    title: 'Scheduled',
    isNumber: true,
    sortedBy: ({ scheduled }) => scheduled.value,
    cell: ({ scheduled: { value, exact } }) => `${value.toLocaleString()}${exact ? '' : '+'}`,
  },
  { id: 'order', title: 'Order', cell: ({ order, fair }) => `${order.replace('_', ' ')}${fair ? ', fair' : ''}` },
  { id: 'limits', title: 'At most', cell: ({ limits }) => limitsWords(limits) },
  {
    id: 'paused',
    title: 'Paused by',
    isWide: true,
    cell: ({ paused }) =>
      paused && (
        <>
          {visible(paused.actor)} <Time at={paused.at} />
          {paused.note && <span class="muted two-lines">{visible(paused.note)}</span>}
        </>
      ),
  },
  {
    id: 'acts',
    title: 'Actions',
    cell: (queue) => (
      <div class="row-acts stacked">
        <ActButton verb="queues" style="quiet" act={pausing(queue)} />
        <ActButton verb="queues" style="quiet" act={limiting('queues', queue)} />
        <ActButton verb="queues" style="quiet" act={ordering(queue)} />
      </div>
    ),
  },
];

/** The queues: what is in them, and who paused them. */
export function QueuesPage() {
  const use = useListInUse();
  const shown = useDocument<QueuesDocument>('queues', use.isInUse);
  return (
    <Page title="Queues">
      <Loaded shown={shown}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No queue was ever used.">
              <p>The first task of a queue makes it. Without another word it is called default.</p>
            </Empty>
          ) : (
            <LiveList use={use} shown={shown}>
              <Table name="Queues" columns={COLUMNS} rows={items} idOf={({ name }) => name} />
            </LiveList>
          )
        }
      </Loaded>
    </Page>
  );
}

function pausing({ name, paused, ready, running }: QueueJson): Act {
  const verb = paused ? 'resume' : 'pause';
  const waits = plural(ready, 'ready task', 'ready tasks');
  return {
    title: paused ? `Resume the queue ${visible(name)}?` : `Pause the queue ${visible(name)}?`,
    words: paused
      ? `Workers start its tasks again: ${waits} now.`
      : `None of its tasks starts, on any worker, until somebody resumes it: ${waits} now. ${plural(running, 'running task goes', 'running tasks go')} on.`,
    does: paused ? 'Resume' : 'Pause',
    isSevere: !paused,
    command: commandFor('queues', verb, name),
    run: async (note) => {
      await post(`queues/${segment(name)}/${verb}`, note === undefined ? {} : { note });
      return `The queue ${visible(name)} ${paused ? 'goes on' : 'is paused'}.`;
    },
  };
}

const ORDERS: Readonly<Record<(typeof QUEUE_ORDERS)[number], string>> = {
  fifo: 'the oldest first',
  lifo: 'the newest first',
  priority: 'the highest priority first, then the oldest',
  weighted_random: 'drawn by chance, in proportion to the priority',
};

function ordering({ name, order, fair }: QueueJson): Act {
  const chosen = signal<string>(order);
  const turns = signal(fair);
  return {
    title: `Order of the queue ${visible(name)}`,
    words: (
      <>
        <p>
          Its waiting tasks are put into the order. A program that sets the order when it opens the store sets it again.
        </p>
        <label class="field">
          Which tasks come first
          <select defaultValue={order} onChange={(event) => (chosen.value = event.currentTarget.value)}>
            {QUEUE_ORDERS.map((each) => (
              <option key={each} value={each}>
                {each.replace('_', ' ')}: {ORDERS[each]}
              </option>
            ))}
          </select>
        </label>
        <label class="check field">
          <input
            type="checkbox"
            defaultChecked={fair}
            onChange={(event) => (turns.value = event.currentTarget.checked)}
          />
          Fair: its sources take turns
        </label>
      </>
    ),
    does: 'Order',
    note: 'none',
    command: commandFor('queues', 'order', name, order),
    run: async () => {
      await post(`queues/${segment(name)}/order`, { order: chosen.value, fair: turns.value });
      return `The queue ${visible(name)} is ${chosen.value.replace('_', ' ')}${turns.value ? ', fair' : ''}.`;
    },
  };
}
