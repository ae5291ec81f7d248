import type { Command } from 'commander';
import { systemClock } from '../../clock.ts';
import { endLine } from '../../documents/next-steps.ts';
import { isFilter } from '../../filter.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { isOver } from '../../task.ts';
import { documentOf, taskJson } from '../../views/json-shapes.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { FILTER_HELP, filterFrom } from '../flags/filter.ts';
import { span } from '../flags/moment.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { findTasks } from '../flags/task-ids.ts';
import { exitOfTasks } from '../foreground/exit-of-tasks.ts';
import { Sleeper } from '../foreground/sleeper.ts';
import { unfinished } from '../foreground/unfinished.ts';
import { LOOK_EVERY_MS, Watch } from '../foreground/watch.ts';
import { withStore } from '../opening/open-store.ts';

/** At most this many numbers are shown. */
const MOST_NAMED = 10;

interface Flags {
  readonly timeout?: string;
}

export function declare(command: Command): void {
  command
    .argument('[ids|filter...]')
    .option('--timeout <duration>', 'wait no longer than this; the tasks go on')
    .addHelpText(
      'after',
      `
Without IDs: for all that are unfinished now, or those that match a filter now. It works nothing itself; that is for \`holdfast worker\`.
${FILTER_HELP}`,
    );
  act<Flags>(command, wait);
}

async function wait(cli: Cli, ids: readonly string[], flags: Flags): Promise<number> {
  const timeoutMs = flags.timeout === undefined ? undefined : span(flags.timeout, '--timeout');
  return withStore(cli, {}, async (holdfast) => {
    const byFilter = ids[0] === undefined || isFilter(ids[0]);
    const tasks = await (byFilter ? unfinished(holdfast, { filter: filterFrom(ids) }) : findTasks(cli, holdfast, ids));
    const left = await untilOver(cli, holdfast, tasks, timeoutMs);
    const exit = exitOfTasks(left);
    if (cli.terminal.json) cli.terminal.document(documentOf('wait', { exit, items: left.map(taskJson) }));
    return exit;
  });
}

async function untilOver(
  cli: Cli,
  holdfast: Operations,
  tasks: readonly Task[],
  timeoutMs: number | undefined,
): Promise<readonly Task[]> {
  const watch = await Watch.start(holdfast, tasks, ({ state }) => isOver(state));
  for (const task of tasks.filter(({ state }) => isOver(state))) await report(cli, holdfast, task);
  if (watch.open.length > 0) await hintAtWorkers(cli, holdfast, 'resume', watch.open);
  for (const { id } of watch.open.filter(({ state }) => state === 'held')) {
    cli.terminal.note(`#${id} is held. Release it: ${cli.command(`release ${id}`)}`);
  }
  const sleeper = new Sleeper();
  let timedOut = false;
  const giveUp = () => {
    timedOut = true;
    sleeper.wake();
  };
  const stop = timeoutMs === undefined ? () => {} : systemClock.after(timeoutMs, giveUp);
  try {
    while (watch.open.length > 0 && !timedOut) {
      await sleeper.sleep(LOOK_EVERY_MS);
      for (const { task } of await watch.lookAgain()) if (isOver(task.state)) await report(cli, holdfast, task);
    }
  } finally {
    stop();
  }
  if (timedOut) {
    const some = watch.open.slice(0, MOST_NAMED).map(({ id }) => `#${id}`);
    const more = watch.open.length > some.length ? ' …' : '';
    cli.terminal.note(`${watch.open.length} not finished: ${some.join(' ')}${more}`);
  }
  return watch.tasks;
}

async function report({ terminal }: Cli, holdfast: Operations, task: Task): Promise<void> {
  if (terminal.json) return;
  const glyph = terminal.out.glyph(task);
  terminal.result(`#${task.id} ${glyph} ${endLine(task, await holdfast.history(task.id))}`);
}
