import { randomUUID } from 'node:crypto';
import type { Milliseconds } from '../duration.ts';
import { nextStep, type RedriveProgress, SHORTEST_PAUSE } from '../redrive.ts';
import type { RedriveRecord, RedriveStore } from '../store/redrives.ts';

/** How long a redrive stays this process's after its last step: when the process has died, another one goes on then. */
const CLAIM_FOR: Milliseconds = 15_000;

/** Where nothing happens, as while a source is held, it is looked so often. */
const LONGEST_PATIENCE: Milliseconds = 10_000;

/** How a redrive ended by itself. */
interface RedriveEnd {
  readonly redrive: RedriveRecord;
  readonly state: 'stopped' | 'done';
  readonly because: string;
}

interface Options {
  readonly store: RedriveStore;
  readonly onEnd: (end: RedriveEnd) => void;
}

/** Drives redrives, one step at a time: those that no other process drives. */
export class RedriveDriver {
  readonly #options: Options;
  readonly #driver = randomUUID();
  /** What was seen of each, and how long was waited then. */
  readonly #seen = new Map<number, { readonly seen: string; readonly patience: Milliseconds }>();
  /** Whether it may have claimed any. */
  #claimed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Takes the next step of each. Answers how long to wait before the next steps, or undefined where there is nothing to drive. */
  async drive(): Promise<Milliseconds | undefined> {
    let soonest: Milliseconds | undefined;
    for (const id of await this.#options.store.open(this.#driver)) {
      const wait = await this.driveOne(id);
      if (wait !== undefined) soonest = Math.min(wait, soonest ?? wait);
    }
    return soonest;
  }

  /** The same for one redrive. */
  async driveOne(id: number): Promise<Milliseconds | undefined> {
    const { store, onEnd } = this.#options;
    this.#claimed = true;
    const advanced = await store.advance(id, this.#driver, CLAIM_FOR);
    if (!advanced) return undefined;
    const { record, progress } = advanced;
    if (record.selecting) {
      await store.select(id);
      return 0;
    }
    const step = nextStep(progress, record.perSecond);
    switch (step.do) {
      case 'wait':
        // Its claim must not end meanwhile.
        return Math.min(Math.max(step.for, this.#patienceWith(id, progress)), CLAIM_FOR / 3);
      case 'put_back':
        await store.putBack(id, this.#driver, step);
        return step.pause;
      case 'end':
        if (await store.end(id, this.#driver, step.state, step.because)) {
          onEnd({ redrive: record, state: step.state, because: step.because });
        }
        return undefined;
    }
  }

  /** How long to wait at least: the longer, the longer nothing has happened. */
  #patienceWith(id: number, { left, undecided }: RedriveProgress): Milliseconds {
    const seen = `${left} ${undecided}`;
    const before = this.#seen.get(id);
    const patience = before?.seen === seen ? Math.min(before.patience * 2, LONGEST_PATIENCE) : SHORTEST_PAUSE;
    this.#seen.set(id, { seen, patience });
    return patience;
  }

  /** Leaves them to other processes at once. */
  async release(): Promise<void> {
    if (!this.#claimed) return;
    this.#claimed = false;
    this.#seen.clear();
    await this.#options.store.release(this.#driver);
  }
}
