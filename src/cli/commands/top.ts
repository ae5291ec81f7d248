import type { Command } from 'commander';
import { systemClock } from '../../clock.ts';
import { seenStatus } from '../../documents/status.ts';
import type { Operations } from '../../queue/operations.ts';
import { summaryOf } from '../../views/task-text.ts';
import { lasting } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { Sleeper } from '../foreground/sleeper.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import { usage } from '../problem.ts';
import { onInterrupt } from '../terminal/interrupts.ts';
import { screen } from './status.ts';

const EVERY_MS = 1_000;

/** The other screen of a terminal, without a cursor, where long lines are cut; and back to what was there before. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const [HOME, REST_OF_LINE, REST_OF_SCREEN] = ['\u001b[H', '\u001b[K', '\u001b[J'];

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
      const room = once ? undefined : (process.stdout.rows ?? 24) - 1;
      const lines = [...screen(cli, name, seen), ...(await running(holdfast, seen.now))];
      return lines.slice(0, room);
    };
    if (once) for (const line of await frame()) terminal.result(line);
    else await live(cli, frame);
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

/** Draws again each second, until a key or a signal ends it. The terminal is as before afterwards, whatever ended it. */
async function live({ terminal: { out } }: Cli, frame: () => Promise<string[]>): Promise<void> {
  const sleeper = new Sleeper();
  const { stdin } = process;
  let [ended, paused] = [false, false];
  const end = () => {
    ended = true;
    sleeper.wake();
  };
  const onKey = (key: Buffer) => {
    const pressed = key.toString();
    if (pressed === 'q' || pressed === '\u0003') end();
    if (pressed === 'p') {
      paused = !paused;
      sleeper.wake();
    }
  };
  const leave = () => {
    stdin.setRawMode(false);
    out.raw(LEAVE);
  };
  const stopListening = onInterrupt(end);
  const onResize = () => sleeper.wake();
  process.once('exit', leave);
  process.stdout.on('resize', onResize);
  stdin.setRawMode(true);
  stdin.on('data', onKey);
  out.raw(ENTER);
  try {
    while (!ended) {
      if (!paused) {
        const lines = await frame();
        const clock = new Date(systemClock.now()).toLocaleTimeString();
        const all = [...lines, out.paint('idle', `${clock}  q: quit  p: pause`)];
        out.raw(`${HOME}${all.map((line) => `${line}${REST_OF_LINE}`).join('\r\n')}${REST_OF_SCREEN}`);
      }
      if (!ended) await sleeper.sleep(EVERY_MS);
    }
  } finally {
    process.off('exit', leave);
    process.stdout.off('resize', onResize);
    stdin.off('data', onKey);
    stdin.pause();
    stopListening();
    leave();
  }
}
