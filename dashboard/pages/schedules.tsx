import { visible } from '../../src/views/visible.ts';
import { goTo, segment } from '../data/address.ts';
import { post } from '../data/api.ts';
import { commandFor } from '../data/commands.ts';
import type { ScheduleJson, SchedulesDocument } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { type Act, ActButton } from '../parts/act.tsx';
import { Page } from '../parts/page.tsx';
import { Sign, StateSign } from '../parts/sign.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { type Column, LiveList, Table, useListInUse } from '../parts/table.tsx';
import { DueTime } from '../parts/time.tsx';

const COLUMNS: readonly Column<ScheduleJson>[] = [
  {
    id: 'name',
    title: 'Schedule',
    sortedBy: ({ name }) => name,
    isWide: true,
    cell: ({ name, type }) => (
      <>
        <a href={`schedules/${segment(name)}`} class="task-link" title={name}>
          <bdi>{visible(name)}</bdi>
        </a>
        <div class="muted">
          <bdi>{visible(type)}</bdi>
        </div>
      </>
    ),
  },
  { id: 'state', title: 'State', cell: (schedule) => <ScheduleSign schedule={schedule} /> },
  {
    id: 'next',
    title: 'Next',
    sortedBy: ({ next_at: at }) => at ?? '',
    cell: ({ next_at: at, waits }) => (waits ? 'when the task before has ended' : at && <DueTime at={at} />),
  },
  {
    id: 'when',
    title: 'When',
    cell: ({ cron, time_zone: zone }) => (
      <>
        <code>{visible(cron)}</code>
        <div class="muted">{visible(zone)}</div>
      </>
    ),
  },
  { id: 'last', title: 'Last task', cell: (schedule) => <LastTask schedule={schedule} /> },
  { id: 'skipped', title: 'Passed over', isNumber: true, cell: ({ counts }) => counts.skipped },
  { id: 'missed', title: 'Missed', isNumber: true, cell: ({ counts }) => counts.missed },
  { id: 'acts', title: 'Actions', cell: (schedule) => <ScheduleActs schedule={schedule} /> },
];

/** Tasks that workers enqueue by the clock. */
export function SchedulesPage() {
  const use = useListInUse();
  const shown = useDocument<SchedulesDocument>('schedules', use.isInUse);
  return (
    <Page title="Schedules">
      <Loaded shown={shown}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="There are no schedules.">
              <p>
                A program sets them with <code>holdfast.schedules.set</code>, or <code>holdfast.yaml</code> under{' '}
                <code>schedules:</code>.
              </p>
            </Empty>
          ) : (
            <LiveList use={use} shown={shown}>
              <Table name="Schedules" columns={COLUMNS} rows={items} idOf={({ name }) => name} />
            </LiveList>
          )
        }
      </Loaded>
    </Page>
  );
}

export function ScheduleSign({ schedule: { paused, waits, next_at: next } }: { readonly schedule: ScheduleJson }) {
  if (paused) return <Sign glyph="⏸" style="waiting" words="paused" />;
  if (waits) return <Sign glyph="◷" style="waiting" words="waits" />;
  if (next === null) return <Sign glyph="⊘" style="idle" words="over" />;
  return <Sign glyph="◷" style="ok" words="on" />;
}

export function LastTask({ schedule: { last_task: task } }: { readonly schedule: ScheduleJson }) {
  if (!task) return null;
  if (task.state === null) return <span class="muted">#{task.id} was removed</span>;
  return (
    <>
      <a href={`tasks/${task.id}`} class="mono">
        #{task.id}
      </a>{' '}
      <StateSign state={task.state} />
    </>
  );
}

export function ScheduleActs({ schedule }: { readonly schedule: ScheduleJson }) {
  return (
    <div class="row-acts">
      <ActButton verb="schedules" style="quiet" act={pausing(schedule)} />
      <ActButton verb="schedules" style="quiet" act={running(schedule)} />
    </div>
  );
}

function pausing({ name, paused }: ScheduleJson): Act {
  const verb = paused ? 'resume' : 'pause';
  return {
    title: paused ? `Resume ${visible(name)}?` : `Pause ${visible(name)}?`,
    words: paused
      ? 'It goes on with its next time. Times during the pause are not made up for.'
      : 'It enqueues nothing more until somebody resumes it.',
    does: paused ? 'Resume' : 'Pause',
    isSevere: !paused,
    note: paused ? 'none' : 'optional',
    command: commandFor('schedules', verb, name),
    run: async (note) => {
      await post(`schedules/${segment(name)}/${verb}`, note === undefined ? {} : { note });
      return `${visible(name)} ${paused ? 'goes on' : 'is paused'}.`;
    },
  };
}

function running({ name, type }: ScheduleJson): Act {
  return {
    title: `Run ${visible(name)} now?`,
    words: `It enqueues its task (${visible(type)}) now, beside its times.`,
    does: 'Run now',
    note: 'none',
    command: commandFor('schedules', 'run', name),
    run: async () => {
      const { id, created } = await post<{ id: number; created: boolean }>(`schedules/${segment(name)}/run`, {});
      return created ? `#${id} is enqueued.` : `Nothing is enqueued: #${id} has not ended.`;
    },
  };
}

/** Its page is gone then, so the list is opened. */
export function removing({ name, origin }: ScheduleJson): Act {
  return {
    title: `Remove ${visible(name)}?`,
    words: `It enqueues nothing more. Its tasks stay. ${origin.by === 'code' ? 'A program that sets it makes it again when it starts.' : 'A worker that reads it from its configuration makes it again.'}`,
    does: 'Remove',
    isSevere: true,
    note: 'none',
    command: commandFor('schedules', 'remove', name),
    run: async () => {
      await post(`schedules/${segment(name)}/remove`, {});
      goTo('schedules');
      return `${visible(name)} is removed.`;
    },
  };
}
