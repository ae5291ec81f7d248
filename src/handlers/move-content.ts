import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { Failed } from '../failure/signals.ts';
import { copyAttributes } from './move-attributes.ts';
import { changed, isUnchanged, quoted } from './move-facts.ts';
import type { MoveTask } from './move-task.ts';

/**
 * Leaves a durable copy that was read back, of a source that did not change meanwhile; or throws.
 * @returns what of the source the copy could not keep.
 */
export async function copy(from: string, temporary: string, source: BigIntStats, task: MoveTask): Promise<string[]> {
  const reader = await open(from, 'r');
  let lost: string[];
  try {
    const writer = await open(temporary, 'r+');
    try {
      const written = await copyContent(reader, writer, source, from, task);
      lost = await copyAttributes(reader, writer, source);
      await writer.sync();
      if ((await digestOf(writer, task, source)) !== written) throw differs(from);
    } finally {
      await writer.close();
    }
    const now = [await reader.stat({ bigint: true }), await lstat(from, { bigint: true })];
    if (!now.every((stats) => isUnchanged(stats, source))) throw changed(from, 'changed while it was copied');
  } finally {
    await reader.close();
  }
  task.signal.throwIfAborted();
  return lost;
}

export async function haveSameContent(from: string, to: string, task: MoveTask): Promise<boolean> {
  const files: FileHandle[] = [];
  try {
    for (const path of [from, to]) files.push(await open(path, 'r'));
    const [ours, theirs] = files as [FileHandle, FileHandle];
    const source = await ours.stat({ bigint: true });
    if ((await theirs.stat({ bigint: true })).size !== source.size) return false;
    return (await digestOf(ours, task, source)) === (await digestOf(theirs, task, source));
  } finally {
    for (const file of files) await file.close();
  }
}

/** @returns the digest of what was read. Holes stay holes. */
async function copyContent(
  reader: FileHandle,
  writer: FileHandle,
  source: BigIntStats,
  from: string,
  task: MoveTask,
): Promise<string> {
  const digest = new Digest();
  const sparse = isSparse(source);
  let at = 0;
  for await (const chunk of chunksOf(reader, task, source)) {
    digest.add(chunk);
    for (const [start, end] of sparse ? dataIn(chunk) : [[0, chunk.length] as const]) {
      await write(writer, chunk.subarray(start, end), at + start);
    }
    at += chunk.length;
    if (at > source.size) throw changed(from, 'grew while it was copied');
  }
  if (sparse) await writer.truncate(at);
  return digest.text();
}

async function write(writer: FileHandle, chunk: Buffer, at: number): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    written += (await writer.write(chunk, written, chunk.length - written, at + written)).bytesWritten;
  }
}

async function digestOf(file: FileHandle, task: MoveTask, source: BigIntStats): Promise<string> {
  const digest = new Digest();
  for await (const chunk of chunksOf(file, task, source)) digest.add(chunk);
  return digest.text();
}

/** Of chunks that end at the same places. What is all zeros costs a look and no hashing: sparse files have gigabytes of it. */
class Digest {
  readonly #hash = createHash('sha256');

  add(chunk: Buffer): void {
    const zeros = isZero(chunk);
    this.#hash.update(zeros ? `zeros ${chunk.length};` : 'data;');
    if (!zeros) this.#hash.update(chunk);
  }

  text(): string {
    return this.#hash.digest('hex');
  }
}

/** The smallest hole that file systems have. */
const BLOCK = 4096;

const CHUNK = 128 * 1024;

/** Of what is mostly holes, more is read at once. */
const SPARSE_CHUNK = 1024 * 1024;

const ZEROS = Buffer.alloc(SPARSE_CHUNK);

function isSparse({ blocks, size }: BigIntStats): boolean {
  return blocks * 512n < size;
}

function isZero(chunk: Buffer): boolean {
  return chunk.equals(ZEROS.subarray(0, chunk.length));
}

/** The parts of a chunk that are not all zeros, as [start, end]. */
function* dataIn(chunk: Buffer): Generator<readonly [number, number]> {
  if (isZero(chunk)) return;
  let start: number | undefined;
  for (let at = 0; at < chunk.length; at += BLOCK) {
    const zeros = isZero(chunk.subarray(at, Math.min(at + BLOCK, chunk.length)));
    if (!zeros) start ??= at;
    else if (start !== undefined) {
      yield [start, at];
      start = undefined;
    }
  }
  if (start !== undefined) yield [start, chunk.length];
}

/**
 * The content from its start, in pieces of one length but for the last. Each piece is only good until the next is asked for.
 */
async function* chunksOf(file: FileHandle, task: MoveTask, source: BigIntStats): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(isSparse(source) ? SPARSE_CHUNK : CHUNK);
  for (let at = 0; ; ) {
    task.signal.throwIfAborted();
    const length = await fill(file, buffer, at);
    if (length === 0) return;
    at += length;
    task.heartbeat();
    yield buffer.subarray(0, length);
  }
}

/** Reads until the buffer is full or the file ends. @returns how many bytes that were. */
async function fill(file: FileHandle, buffer: Buffer, at: number): Promise<number> {
  for (let length = 0; ; ) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, at + length);
    length += bytesRead;
    if (bytesRead === 0 || length === buffer.length) return length;
  }
}

function differs(from: string): Failed {
  return new Failed(`The copy of ${quoted(from)} does not read back as it was written. Is the disk failing?`, {
    reason: 'fs.copy_differs',
  });
}
