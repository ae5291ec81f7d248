import { randomUUID } from 'node:crypto';
import type { Milliseconds } from '../duration.ts';
import { nextStep, type RedriveProgress, SHORTEST_PAUSE } from '../redrive.ts';
import type { RedriveRecord, RedriveStore } from '../store/redrives.ts';

/** How long this process keeps a redrive after its last step. If the process dies, another one continues it after this time. */
const CLAIM_FOR: Milliseconds = 15_000;

/** The longest wait between two steps while nothing happens, for example while a source is held. */
const LONGEST_PATIENCE: Milliseconds = 10_000;

/** The ways in which a redrive ends by itself. */
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
  /** For each redrive, its progress at the last step and the wait after it. */
  readonly #seen = new Map<number, { readonly seen: string; readonly patience: Milliseconds }>();
  /** Whether this process may have claimed a redrive. */
  #claimed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /**
   * Takes the next step of each redrive. Returns how long to wait before the next step, or undefined if there is no redrive to
   * drive.
   */
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
        // The claim of the redrive must not end meanwhile.
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

  /** The least wait. It grows while nothing happens. */
  #patienceWith(id: number, { left, undecided }: RedriveProgress): Milliseconds {
    const seen = `${left} ${undecided}`;
    const before = this.#seen.get(id);
    const patience = before?.seen === seen ? Math.min(before.patience * 2, LONGEST_PATIENCE) : SHORTEST_PAUSE;
    this.#seen.set(id, { seen, patience });
    return patience;
  }

  /** Gives the redrives up at once, so that other processes can continue them. */
  async release(): Promise<void> {
    if (!this.#claimed) return;
    this.#claimed = false;
    this.#seen.clear();
    await this.#options.store.release(this.#driver);
  }
}
