import type { By, QueueSettings, SourceStore } from '../store.ts';
import type { Lanes } from './lanes.ts';
import type { Places } from './places.ts';
import type { Writer } from './writer.ts';

/** Shuts and opens sources, and sets up queues. */
export class SqliteSources implements SourceStore {
  readonly #writer: Writer;
  readonly #lanes: Lanes;
  readonly #places: Places;
  readonly #notify: () => void;

  constructor(writer: Writer, lanes: Lanes, places: Places, notify: () => void) {
    this.#writer = writer;
    this.#lanes = lanes;
    this.#places = places;
    this.#notify = notify;
  }

  hold(source: string, by: By): Promise<void> {
    return this.#writer.write((now) => this.#lanes.shut(source, by, now));
  }

  async release(source: string): Promise<void> {
    await this.#writer.write(() => this.#lanes.open(source));
    this.#notify();
  }

  pause(queue: string, by: By): Promise<void> {
    return this.#writer.write((now) => this.#lanes.pause(queue, by, now));
  }

  async resume(queue: string): Promise<void> {
    await this.#writer.write(() => this.#lanes.resume(queue));
    this.#notify();
  }

  async setUp(queue: string, settings: Partial<QueueSettings>): Promise<void> {
    await this.#writer.write(() => this.#lanes.setUp(queue, settings, (ids) => this.#places.placesOf(ids)));
  }
}
