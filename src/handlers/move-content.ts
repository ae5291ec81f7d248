import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { Failed } from '../failure/signals.ts';
import { copyAttributes } from './move-attributes.ts';
import { changed, isUnchanged, quoted } from './move-facts.ts';
import { dataOf, inEither, isSparse, type Range } from './move-holes.ts';
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
      const ranges = await dataOf(reader);
      const written = await copyContent(reader, writer, source, ranges, from, task);
      lost = await copyAttributes(reader, writer, source);
      await writer.sync();
      if ((await digestOf(writer, ranges, task)) !== written) throw differs(from);
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
    if ((await ours.stat()).size !== (await theirs.stat()).size) return false;
    const ranges = inEither(await dataOf(ours), await dataOf(theirs));
    return (await digestOf(ours, ranges, task)) === (await digestOf(theirs, ranges, task));
  } finally {
    for (const file of files) await file.close();
  }
}

/** @returns the digest of what was read. Holes stay holes. */
async function copyContent(
  reader: FileHandle,
  writer: FileHandle,
  source: BigIntStats,
  ranges: readonly Range[],
  from: string,
  task: MoveTask,
): Promise<string> {
  const hash = createHash('sha256');
  const sparse = isSparse(source);
  for await (const [at, chunk] of chunksOf(reader, ranges, task)) {
    hash.update(chunk);
    for (const [start, end] of sparse ? dataIn(chunk) : [[0, chunk.length] as const]) {
      await write(writer, chunk.subarray(start, end), at + start);
    }
    if (at + chunk.length > source.size) throw changed(from, 'grew while it was copied');
  }
  if (sparse) await writer.truncate(Number(source.size));
  return hash.digest('hex');
}

async function write(writer: FileHandle, chunk: Buffer, at: number): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    written += (await writer.write(chunk, written, chunk.length - written, at + written)).bytesWritten;
  }
}

async function digestOf(file: FileHandle, ranges: readonly Range[], task: MoveTask): Promise<string> {
  const hash = createHash('sha256');
  for await (const [, chunk] of chunksOf(file, ranges, task)) hash.update(chunk);
  return hash.digest('hex');
}

/** The smallest hole that file systems have. */
const BLOCK = 4096;

const CHUNK = 128 * 1024;

const ZEROS = Buffer.alloc(BLOCK);

/** The parts of a chunk that are not all zeros. */
function* dataIn(chunk: Buffer): Generator<Range> {
  let start: number | undefined;
  for (let at = 0; at < chunk.length; at += BLOCK) {
    const block = chunk.subarray(at, at + BLOCK);
    if (!block.equals(ZEROS.subarray(0, block.length))) start ??= at;
    else if (start !== undefined) {
      yield [start, at];
      start = undefined;
    }
  }
  if (start !== undefined) yield [start, chunk.length];
}

/** The content of these parts in pieces, with their positions. A piece is valid only until the next one is read. */
async function* chunksOf(
  file: FileHandle,
  ranges: readonly Range[],
  task: MoveTask,
): AsyncGenerator<readonly [at: number, chunk: Buffer]> {
  const buffer = Buffer.allocUnsafe(CHUNK);
  for (const [start, end] of ranges) {
    for (let at = start; at < end; ) {
      task.signal.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK, end - at), at);
      if (bytesRead === 0) break;
      task.heartbeat();
      yield [at, buffer.subarray(0, bytesRead)];
      at += bytesRead;
    }
  }
}

function differs(from: string): Failed {
  return new Failed(
    `The copy of ${quoted(from)} differs from its source when it is read back. The disk may be failing.`,
    {
      reason: 'fs.copy_differs',
    },
  );
}
