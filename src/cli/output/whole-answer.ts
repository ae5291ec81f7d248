import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Channel } from '../terminal/terminal.ts';

const CHUNK = 64 * 1024;

/**
 * Stores the body of a successful response, byte for byte, until its task has ended, so that an incomplete response is not shown. It
 * is in a temporary file without a name, so nothing is left if the process is killed.
 */
export class WholeAnswer {
  #file: number | undefined;
  #bytes = 0;
  #trouble: unknown;

  /** The number of bytes. Undefined if no attempt of this process had a successful response. */
  get bytes(): number | undefined {
    return this.#file === undefined ? undefined : this.#bytes;
  }

  /** Begins a response, and removes what an earlier attempt received. */
  begin(): void {
    this.#bytes = 0;
    this.#try(() => {
      this.#file ??= temporaryFile();
      ftruncateSync(this.#file);
    });
  }

  /** Never throws, because the request has succeeded even if its response cannot be stored here. */
  write(chunk: Buffer): void {
    this.#try(() => {
      let from = 0;
      while (from < chunk.length)
        from += writeSync(this.#file as number, chunk, from, chunk.length - from, this.#bytes + from);
      this.#bytes += chunk.length;
    });
  }

  /** Writes all of it. @throws the error that kept it from being stored. */
  async copyTo(out: Channel): Promise<void> {
    if (this.#trouble !== undefined) throw this.#trouble;
    for (let at = 0; at < this.#bytes; ) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK, this.#bytes - at));
      const length = readSync(this.#file as number, chunk, 0, chunk.length, at);
      if (!(await out.taken(chunk.subarray(0, length)))) return;
      at += length;
    }
    closeSync(this.#file as number);
  }

  #try(work: () => void): void {
    if (this.#trouble !== undefined) return;
    try {
      work();
    } catch (error) {
      this.#trouble = error;
    }
  }
}

function temporaryFile(): number {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  try {
    return openSync(join(folder, 'answer'), 'wx+', 0o600);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
