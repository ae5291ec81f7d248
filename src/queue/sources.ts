import { name } from '../options.ts';
import type { SourceRecord, Store } from '../store/store.ts';
import { type ActionOptions, by } from './operate.ts';

/** What a person does to sources, as `holdfast.sources`. */
export class Sources {
  readonly #store: Store;

  /** Made by `openHoldfast`. */
  constructor(store: Store) {
    this.#store = store;
  }

  /** The sources that are held. */
  list(): Promise<readonly SourceRecord[]> {
    return this.#store.records.sources();
  }

  /**
   * Holds a source: none of its tasks is claimed until it is released, however many there are. What runs goes on; what a worker had
   * claimed ahead and not begun is handed back. Holding a held source changes nothing.
   */
  async hold(source: string, options: ActionOptions = {}): Promise<void> {
    await this.#store.sources.hold(name(source, 'source'), by(options, 'sources.hold'));
  }

  /** Releases a held source. Its tasks go on in the order of their queues. */
  async release(source: string): Promise<void> {
    await this.#store.sources.release(name(source, 'source'));
  }
}
