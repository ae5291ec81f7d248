import { closeSync, createReadStream, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';

/** What is imported: a file, which can be read twice, or what comes through a pipe, which cannot. */
export interface Input {
  /** Its name as it was given, safe to print. */
  readonly path: string;
  /** The last part of that name. */
  readonly name: string;
  /** In bytes. Undefined if it can be read only once. */
  readonly size: number | undefined;
  /** Its lines were made from rows, so a place in a line says nothing. */
  readonly mapped?: true;
  /** From the beginning. */
  chunks(): AsyncIterable<Buffer>;
  close(): void;
}

const CHUNK_BYTES = 256 * 1_024;

/** @throws Problem if it cannot be read. */
export function openInput(path: string): Input {
  if (path === '-') return { path: 'stdin', name: 'stdin', ...once(process.stdin) };
  const file = opened(path);
  const stats = fstatSync(file);
  if (stats.isDirectory()) {
    closeSync(file);
    throw usage(`${visible(path)} is a folder`, { hints: ['holdfast import FILE.jsonl'] });
  }
  const named = { path: visible(path), name: basename(path) };
  // A named pipe is read like a socket, so that an interrupt can end a waiting read.
  if (!stats.isFile()) return { ...named, ...once(new Socket({ fd: file, readable: true })) };
  return {
    ...named,
    size: stats.size,
    chunks: () => createReadStream(path, { fd: file, highWaterMark: CHUNK_BYTES, autoClose: false, start: 0 }),
    close: () => closeSync(file),
  };
}

function once(stream: Readable): Pick<Input, 'size' | 'chunks' | 'close'> {
  return {
    size: undefined,
    chunks: () => stream,
    // A pipe may stay open for ever and keep this process alive.
    close: () => void stream.destroy(),
  };
}

function opened(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') throw usage(`there is no file ${visible(path)}`, { cause: error });
    throw usage(`${visible(path)} cannot be read: ${visible(message)}`, { cause: error });
  }
}
