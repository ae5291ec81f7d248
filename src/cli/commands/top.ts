import type { Command } from 'commander';
import { type SeenStatus, seenStatus } from '../../documents/status.ts';
import type { Operations } from '../../queue/operations.ts';
import { summaryOf } from '../../views/task-text.ts';
import { lasting } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import { usage } from '../problem.ts';
import { live } from '../terminal/live.ts';
import { HELP, TopView } from '../top/top-view.ts';
import { screen, shortTotals } from './status.ts';

export function declare(command: Command): void {
  command
    .option('--once', 'print it once, also into a pipe: what `status` shows, and what runs')
    .addHelpText('after', `\nKeys\n${HELP.map((line) => (line === '' ? '' : `  ${line}`)).join('\n')}`);
  act<{ once?: boolean }>(command, top);
}

async function top(cli: Cli, _: readonly string[], { once = false }: { once?: boolean }): Promise<number> {
  const { terminal } = cli;
  if (terminal.json) throw usage('top has no JSON', { hints: [cli.command('status --json')] });
  const isDumb = cli.environment.TERM === 'dumb';
  if (!once && (isDumb || !(terminal.out.isTerminal && process.stdin.isTTY))) {
    const needs = isDumb ? 'top needs a terminal that can move its cursor' : 'top needs a terminal';
    throw usage(needs, { hints: [cli.command('top --once'), cli.command('status')] });
  }
  const config = await readConfig(cli);
  return withStore(cli, { purpose: 'explain' }, async (holdfast, { name }) => {
    const seen = () => seenStatus(cli, holdfast, config?.refused, true);
    if (once) {
      const now = await seen();
      for (const line of [...screen(cli, name, now), ...(await running(holdfast, now))]) terminal.result(line);
      return EXIT.done;
    }
    await live(
      terminal,
      new TopView({
        context: { cli, holdfast },
        store: name,
        seen,
        screen: (all) => screen(cli, name, all),
        totals: shortTotals,
      }),
    );
    return EXIT.done;
  });
}

async function running(holdfast: Operations, { now }: SeenStatus): Promise<string[]> {
  const tasks = await holdfast.list({ states: ['running'], limit: 50 });
  const lines = tasks.map((task) => {
    const since = task.running ? lasting(task.running.since.getTime(), now) : '';
    return `  #${task.id} ${summaryOf(task)}  ${since}  ${visible(task.running?.worker ?? '')}`;
  });
  return lines.length === 0 ? [] : ['Running', ...lines];
}
