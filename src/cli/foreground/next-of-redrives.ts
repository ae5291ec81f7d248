import type { Holdfast } from '../../queue/holdfast.ts';
import type { Task } from '../../queue/task-view.ts';
import type { RedriveRecord } from '../../store/redrives.ts';
import { plural } from '../../views/plural.ts';
import type { Cli } from '../cli.ts';
import type { Foreground } from './foreground.ts';
import { Sleeper } from './sleeper.ts';

const LOOK_EVERY_MS = 250;

/** So many looks without a new task, while outcomes are missing, mean that those are of tasks that another program runs. */
const MOST_LOOKS_IN_VAIN = 12;

/** Puts the next tasks of redrives back, as a worker does, and waits for those that this command runs. */
export class NextOfRedrives {
  readonly #cli: Cli;
  readonly #foreground: Foreground;
  readonly #find: () => Promise<readonly Task[]>;
  readonly #seen: Set<number>;
  readonly #followed = new Set<number>();

  /** `find`: the unfinished tasks that this command may run. `seen`: those that it has run. */
  constructor(cli: Cli, foreground: Foreground, find: () => Promise<readonly Task[]>, seen: readonly Task[]) {
    this.#cli = cli;
    this.#foreground = foreground;
    this.#find = find;
    this.#seen = new Set(seen.map(({ id }) => id));
  }

  /** The tasks that were put back next. None if no redrive of the tasks before runs any more, or an interrupt ended the wait. */
  async next(last: readonly Task[], timeoutMs: number | undefined): Promise<readonly Task[]> {
    const { holdfast, detacher } = this.#foreground;
    detacher.listen();
    if (timeoutMs !== undefined) detacher.detachAfter(timeoutMs);
    const sleeper = new Sleeper();
    detacher.onDetach(() => sleeper.wake());
    const driver = holdfast.administration.redriveDriver();
    try {
      await this.#follow(last);
      if (this.#followed.size === 0) return [];
      for (let inVain = 0; !detacher.detached; ) {
        const wait = await driver.drive();
        const found = (await this.#find()).filter(({ id }) => !this.#seen.has(id));
        for (const { id } of found) this.#seen.add(id);
        if (found.length > 0) return found;
        const running = await this.#running();
        if (running.length === 0) return [];
        inVain = running.some(withoutOutcome) ? inVain + 1 : 0;
        if (inVain > MOST_LOOKS_IN_VAIN) return this.#endInVain(running[0] as RedriveRecord);
        await sleeper.sleep(Math.min(wait ?? LOOK_EVERY_MS, LOOK_EVERY_MS));
      }
      return [];
    } finally {
      detacher.end();
      await driver.release();
    }
  }

  /** Follows the running redrives that have put these tasks back. */
  async #follow(tasks: readonly Task[]): Promise<void> {
    const { holdfast } = this.#foreground;
    const running = new Set((await runningOf(holdfast)).map(({ id }) => id));
    for (const { id } of tasks) {
      if (running.size === 0) return;
      const redrive = (await holdfast.redrives.ofTask(id))?.redrive;
      if (!redrive || !running.delete(redrive.id) || this.#followed.has(redrive.id)) continue;
      this.#followed.add(redrive.id);
      const left = redrive.selected - redrive.putBack - redrive.skipped;
      if (left === 0) continue;
      this.#cli.terminal.note(
        `Redrive ${redrive.id} puts ${plural(left, 'more task', 'more tasks')} back: waiting for them. Ctrl-C ends this command, not the redrive.`,
      );
    }
  }

  /** Those that are followed and still run. Says how the others ended, if not well. */
  async #running(): Promise<readonly RedriveRecord[]> {
    const { holdfast } = this.#foreground;
    const running = await runningOf(holdfast);
    for (const id of this.#followed) {
      if (running.some((one) => one.id === id)) continue;
      this.#followed.delete(id);
      const { state, because } = await holdfast.redrives.get(id);
      if (state !== 'done') {
        const why = because === undefined ? '' : `: ${because}`;
        this.#cli.terminal.note(`Redrive ${id} is ${state}${why} (${this.#cli.command(`redrives show ${id}`)})`);
      }
    }
    return running.filter(({ id }) => this.#followed.has(id));
  }

  #endInVain({ id }: RedriveRecord): readonly Task[] {
    const show = this.#cli.command(`redrives show ${id}`);
    this.#cli.terminal.note(`Redrive ${id} waits for tasks that other programs run: ${show}`);
    return [];
  }
}

async function runningOf(holdfast: Holdfast): Promise<readonly RedriveRecord[]> {
  return (await holdfast.redrives.list()).filter(({ state }) => state === 'running');
}

function withoutOutcome({ putBack, succeeded, failedAgain, endedOtherwise }: RedriveRecord): boolean {
  return putBack > succeeded + failedAgain + endedOtherwise;
}
