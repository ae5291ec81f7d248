import type { Command } from 'commander';
import type { Holdfast } from '../../queue/holdfast.ts';
import type { Schedule } from '../../queue/schedules.ts';
import { scheduleJson, scheduleLines, scheduleStateWords } from '../../views/schedule-text.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withHoldfast } from '../opening/open-holdfast.ts';
import { declareSubcommands } from '../subcommands.ts';
import type { Column } from '../terminal/table.ts';

interface Flags {
  readonly note?: string;
}

const NAMED = (command: Command) => command.argument('<name>');

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, list, [
    {
      usage: 'show NAME',
      summary: 'everything about one schedule, and its next times',
      alsoCalled: ['status', 'info', 'next'],
      declare: NAMED,
      action: (cli, [name]) => show(cli, name as string),
    },
    {
      usage: 'pause NAME [--note TEXT]',
      summary: 'enqueue nothing more until it is resumed',
      alsoCalled: ['hold', 'stop', 'disable'],
      declare: (pause) => NAMED(pause).option('--note <text>', 'a note about why'),
      action: (cli, [name], { note }) =>
        change(cli, 'pause', name as string, (holdfast) =>
          holdfast.schedules.pause(name as string, { actor: cli.actor, ...(note !== undefined && { note }) }),
        ),
    },
    {
      usage: 'resume NAME',
      summary: 'go on with a paused schedule; times during the pause are not made up for',
      alsoCalled: ['continue', 'release', 'start', 'enable'],
      declare: NAMED,
      action: (cli, [name]) =>
        change(cli, 'resume', name as string, (holdfast) => holdfast.schedules.resume(name as string)),
    },
    {
      usage: 'run NAME',
      summary: 'enqueue its task now',
      alsoCalled: ['now', 'trigger', 'fire', 'enqueue'],
      declare: NAMED,
      action: (cli, [name]) => run(cli, name as string),
    },
    {
      usage: 'remove NAME',
      summary: 'remove a schedule; its tasks stay',
      alsoCalled: ['delete', 'rm', 'drop'],
      declare: NAMED,
      action: (cli, [name]) => remove(cli, name as string),
    },
  ]);
  command.addHelpText(
    'after',
    '\nLists schedules: tasks that workers enqueue by the clock. A program sets them, or holdfast.yaml under `schedules:`.',
  );
}

// ── List and show ──

async function list(cli: Cli): Promise<void> {
  return withHoldfast(cli, { purpose: 'look' }, async (holdfast) => {
    const all = await holdfast.schedules.list();
    cli.terminal.answer('schedules', { items: all.map(scheduleJson) }, () => print(cli, all, holdfast.now()));
  });
}

function print({ terminal }: Cli, schedules: readonly Schedule[], now: number): void {
  const rows = schedules.map((schedule) => [
    visible(schedule.name),
    `${visible(schedule.cron)} ${schedule.timeZone}`,
    { text: scheduleStateWords(schedule, now), style: schedule.paused ? ('waiting' as const) : ('idle' as const) },
    schedule.lastTask ? `#${schedule.lastTask.id} ${schedule.lastTask.state ?? 'removed'}` : '',
    visible(schedule.type),
    schedule.counts.skipped,
    schedule.counts.missed,
  ]);
  const columns: Column[] = [['NAME', 8], 'WHEN', ['NEXT', 8], 'LAST TASK', ['TYPE', 8], 'SKIPPED', 'MISSED'];
  terminal.table(columns, rows, 'There are no schedules.');
}

async function show(cli: Cli, name: string): Promise<void> {
  return withHoldfast(cli, { purpose: 'look' }, async (holdfast) => {
    const schedule = await holdfast.schedules.get(name);
    const next = await holdfast.schedules.next(name);
    const { terminal } = cli;
    const times = next.map((time) => time.toISOString());
    terminal.answer('schedules.show', { schedule: scheduleJson(schedule), next: times }, () => {
      terminal.result(terminal.out.paint('strong', `schedule ${visible(name)}`));
      for (const line of scheduleLines(schedule, next, holdfast.now())) terminal.result(line);
    });
  });
}

// ── Pause, resume, run and remove ──

async function change(
  cli: Cli,
  verb: 'pause' | 'resume',
  name: string,
  act: (holdfast: Holdfast) => Promise<Schedule>,
): Promise<void> {
  return withHoldfast(cli, { purpose: 'look' }, async (holdfast) => {
    const schedule = await act(holdfast);
    cli.terminal.answer(`schedules.${verb}`, { exit: EXIT.done, schedule: scheduleJson(schedule) }, () =>
      cli.terminal.result(`schedule ${visible(name)}: ${scheduleStateWords(schedule, holdfast.now())}`),
    );
  });
}

async function run(cli: Cli, name: string): Promise<void> {
  return withHoldfast(cli, { purpose: 'look' }, async (holdfast) => {
    const { id, created } = await holdfast.schedules.run(name);
    cli.terminal.answer('schedules.run', { exit: EXIT.done, id, created }, () =>
      cli.terminal.result(
        created
          ? `#${id} of schedule ${visible(name)} is enqueued`
          : `nothing is enqueued: #${id} of schedule ${visible(name)} has not ended`,
      ),
    );
  });
}

async function remove(cli: Cli, name: string): Promise<void> {
  return withHoldfast(cli, { purpose: 'look' }, async (holdfast) => {
    await holdfast.schedules.remove(name);
    cli.terminal.answer('schedules.remove', { exit: EXIT.done, name }, () =>
      cli.terminal.result(`schedule ${visible(name)} is removed`),
    );
  });
}
