import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { decodeJson, encodeJson } from '../json.ts';
import type { Claimed, TaskStore } from '../store/store.ts';
import type { WorkerEvent } from '../telemetry/events.ts';

/** The progress of an execution is written at most this often. */
const BETWEEN_WRITES: Milliseconds = 1_000;

/** How large a progress may be, in bytes of UTF-8 JSON: 4 KiB. */
const SIZE_LIMIT = 4 * 1024;

export interface ProgressHost {
  readonly clock: Clock;
  readonly save: TaskStore['save'];
  /** Called with each value that was written, and with the last one, which is written with the outcome. */
  readonly onProgress: (event: Extract<WorkerEvent, { kind: 'progress' }>) => void;
}

/**
 * The progress that one execution reports. The first value is written at once, a later one when the last write was a second ago.
 * Only the newest value counts. What is not written when the execution ends is written with its outcome.
 */
export class Progress {
  readonly #claimed: Claimed;
  readonly #host: ProgressHost;
  readonly #onLost: () => void;
  #unsaved: string | undefined;
  #saving: Promise<void> | undefined;
  /** Ends the wait for the next write. Absent: a value may be written at once. */
  #endWait: (() => void) | undefined;
  #ended = false;

  /** `onLost` is called if the lease is lost. */
  constructor(claimed: Claimed, host: ProgressHost, onLost: () => void) {
    this.#claimed = claimed;
    this.#host = host;
    this.#onLost = onLost;
  }

  /** @throws PayloadError if the value is not JSON or larger than 4 KiB: then the value before stays. */
  report(value: unknown): void {
    this.#unsaved = encodeJson(value, 'progress', SIZE_LIMIT);
    this.#write();
  }

  /** The write that has no answer yet. It never rejects. An older value must not be written after a newer one. */
  get saving(): Promise<void> | undefined {
    return this.#saving;
  }

  /** Returns the value that is not written yet. Nothing is written here after that. */
  end(): string | undefined {
    this.#ended = true;
    this.#endWait?.();
    const left = this.#unsaved;
    if (left !== undefined) this.#announce(left);
    return left;
  }

  #write(): void {
    const text = this.#unsaved;
    if (text === undefined || this.#endWait || this.#saving || this.#ended) return;
    this.#unsaved = undefined;
    this.#endWait = this.#host.clock.after(BETWEEN_WRITES, () => {
      this.#endWait = undefined;
      this.#write();
    });
    this.#saving = this.#save(text).finally(() => {
      this.#saving = undefined;
      this.#write();
    });
  }

  async #save(text: string): Promise<void> {
    try {
      if (await this.#host.save(this.#claimed.lease, { progress: text })) this.#announce(text);
      else this.#onLost();
    } catch {
      // It is written later, or with the outcome, which reports what is wrong with the store.
      this.#unsaved ??= text;
    }
  }

  #announce(text: string): void {
    this.#host.onProgress({ kind: 'progress', task: this.#claimed, progress: decodeJson(text) });
  }
}
