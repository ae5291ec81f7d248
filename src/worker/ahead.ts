import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Claimed } from '../store/store.ts';
import type { AbortCause } from './execution.ts';
import type { Held } from './membership.ts';

/** If no slot becomes free for this long, the tasks claimed ahead are handed back: other workers may have free slots. */
const LONGEST_WAIT: Milliseconds = 1_000;

export interface AheadOptions {
  readonly clock: Clock;
  /** Hands back a task that cannot begin here soon, or that was cancelled meanwhile. */
  readonly handBack: (claimed: Claimed, why: string) => void;
  /** Called after all tasks were handed back because they waited too long. */
  readonly onStuck: () => void;
}

/** The tasks that were claimed before a slot was free for them, in the order in which they begin. */
export class Ahead {
  readonly #options: AheadOptions;
  /** The first task is at `#next`. The tasks before it are removed now and then, because removing each one at once is slow. */
  #waiting: Claimed[] = [];
  #next = 0;
  /** When a task was last added or begun. */
  #movedAt: Milliseconds = 0;
  #stopWatching: (() => void) | undefined;

  constructor(options: AheadOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.length - this.#next;
  }

  /** Their leases are renewed with the worker's, like those of running tasks. */
  get held(): readonly Held[] {
    const abort = (claimed: Claimed) => (cause: AbortCause) => this.#drop(claimed, cause);
    return this.#waiting.slice(this.#next).map((claimed) => ({ claimed, abort: abort(claimed) }));
  }

  /** Whether a task of this type is among them. */
  holds(type: string): boolean {
    return this.#waiting.slice(this.#next).some((claimed) => claimed.type === type);
  }

  add(all: readonly Claimed[]): void {
    if (all.length === 0) return;
    if (this.size === 0) this.#movedAt = this.#options.clock.monotonic();
    this.#waiting = [...this.#waiting.slice(this.#next), ...all];
    this.#next = 0;
    this.#stopWatching ??= this.#options.clock.after(LONGEST_WAIT, () => this.#look());
  }

  /** The source of the next one to begin. */
  get nextSource(): string | undefined {
    return this.#waiting[this.#next]?.source;
  }

  /** The next one to begin. */
  take(): Claimed | undefined {
    const first = this.#waiting[this.#next];
    if (!first) return undefined;
    this.#next += 1;
    this.#movedAt = this.#options.clock.monotonic();
    return first;
  }

  /** Hands all tasks back, and clears the timer. */
  handBackAll(why: string): void {
    for (let claimed = this.take(); claimed; claimed = this.take()) this.#options.handBack(claimed, why);
    this.rest();
  }

  /** Hands these tasks back. */
  handBack(some: readonly Held[], why: string): void {
    for (const { claimed } of some) if (this.#remove(claimed)) this.#options.handBack(claimed, why);
  }

  /** Clears the timer if no task waits. */
  rest(): void {
    if (this.size > 0) return;
    this.#waiting = [];
    this.#next = 0;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #drop(claimed: Claimed, cause: AbortCause): void {
    if (this.#remove(claimed) && cause !== 'lost') this.#options.handBack(claimed, 'It was cancelled before it began.');
  }

  /** False if the task has begun, or was handed back. */
  #remove(claimed: Claimed): boolean {
    const at = this.#waiting.indexOf(claimed);
    if (at < this.#next) return false;
    this.#waiting.splice(at, 1);
    return true;
  }

  #look(): void {
    this.#stopWatching = undefined;
    if (this.size === 0) return;
    const waited = this.#options.clock.monotonic() - this.#movedAt;
    if (waited < LONGEST_WAIT) {
      this.#stopWatching = this.#options.clock.after(LONGEST_WAIT - waited, () => this.#look());
      return;
    }
    this.handBackAll('It was claimed ahead, and no slot became free for it in time.');
    this.#options.onStuck();
  }
}
