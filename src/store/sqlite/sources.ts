import type { By, News, QueueSettings, SourceStore } from '../store.ts';
import type { Lanes } from './lanes.ts';
import type { Places } from './places.ts';
import type { Writer } from './writer.ts';

/** Shuts and opens sources, and sets up queues. */
export class SqliteSources implements SourceStore {
  readonly #writer: Writer;
  readonly #lanes: Lanes;
  readonly #places: Places;
  readonly #notify: (news: News) => void;

  constructor(writer: Writer, lanes: Lanes, places: Places, notify: (news: News) => void) {
    this.#writer = writer;
    this.#lanes = lanes;
    this.#places = places;
    this.#notify = notify;
  }

  async hold(source: string, by: By): Promise<void> {
    await this.#writer.write((now) => this.#lanes.shut(source, by, now));
    this.#notify('recall');
  }

  async release(source: string): Promise<void> {
    await this.#writer.write(() => this.#lanes.open(source));
    this.#notify('work');
  }

  async pause(queue: string, by: By): Promise<void> {
    await this.#writer.write((now) => this.#lanes.pause(queue, by, now));
    this.#notify('recall');
  }

  async resume(queue: string): Promise<void> {
    await this.#writer.write(() => this.#lanes.resume(queue));
    this.#notify('work');
  }

  async setUp(queue: string, settings: Partial<QueueSettings>): Promise<void> {
    await this.#writer.write(() => this.#lanes.setUp(queue, settings, (ids) => this.#places.placesOf(ids)));
  }
}
