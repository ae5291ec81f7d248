import { LeaseLostError } from '../errors.ts';
import { decodeJson, encodeJson } from '../json.ts';
import type { Claimed, TaskStore } from '../store/store.ts';
import type { Json } from '../task.ts';

/** How large a checkpoint may be, in bytes of UTF-8 JSON: 64 KiB. */
const SIZE_LIMIT = 64 * 1024;

/** The checkpoint of a task, as one execution of it reads and saves it. */
export class Checkpoint {
  readonly #claimed: Claimed;
  readonly #save: TaskStore['save'];
  #text: string | undefined;
  #value: { readonly of: string; readonly json: Json } | undefined;

  constructor(claimed: Claimed, save: TaskStore['save']) {
    this.#claimed = claimed;
    this.#save = save;
    this.#text = claimed.checkpoint;
  }

  /** What was saved last, by this execution or an earlier one. */
  get value(): Json | undefined {
    const text = this.#text;
    if (text === undefined) return undefined;
    if (this.#value?.of !== text) this.#value = { of: text, json: decodeJson(text) };
    return this.#value.json;
  }

  /**
   * Resolves when the value is durable.
   * @throws PayloadError if the value is not JSON or larger than 64 KiB; LeaseLostError if the lease is lost; StoreError if it
   * could not be written.
   */
  async save(value: unknown): Promise<void> {
    const text = encodeJson(value, 'checkpoint', SIZE_LIMIT);
    const { lease } = this.#claimed;
    if (!(await this.#save(lease, { checkpoint: text }))) throw new LeaseLostError(lease.task, lease.execution);
    this.#text = text;
  }
}
