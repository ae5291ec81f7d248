import type { Command } from 'commander';
import { seenStatus } from '../../documents/status.ts';
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
import { screen } from './status.ts';

export function declare(command: Command): void {
  command
    .option('--once', 'print it once, also into a pipe')
    .addHelpText('after', '\nKeys: p pauses and goes on, q ends. What `status` shows, and below it what runs.');
  act<{ once?: boolean }>(command, top);
}

async function top(cli: Cli, _: readonly string[], { once = false }: { once?: boolean }): Promise<number> {
  const { terminal } = cli;
  if (terminal.json) throw usage('top has no JSON', { hints: [cli.command('status --json')] });
  if (!once && !(terminal.out.isTerminal && process.stdin.isTTY)) {
    throw usage('top needs a terminal', { hints: [cli.command('top --once'), cli.command('status')] });
  }
  const config = await readConfig(cli);
  return withStore(cli, {}, async (holdfast, { name }) => {
    const frame = async () => {
      const seen = await seenStatus(cli, holdfast, config?.refused, true);
      const room = once ? undefined : (process.stdout.rows || 24) - 1;
      const lines = [...screen(cli, name, seen), ...(await running(holdfast, seen.now))];
      return lines.slice(0, room);
    };
    if (once) for (const line of await frame()) terminal.result(line);
    else await live(cli.terminal, frame);
    return EXIT.done;
  });
}

async function running(holdfast: Operations, now: number): Promise<string[]> {
  const tasks = await holdfast.list({ states: ['running'], limit: 50 });
  const lines = tasks.map((task) => {
    const since = task.running ? lasting(task.running.since.getTime(), now) : '';
    return `  #${task.id} ${summaryOf(task)}  ${since}  ${visible(task.running?.worker ?? '')}`;
  });
  return lines.length === 0 ? [] : ['Running', ...lines];
}
