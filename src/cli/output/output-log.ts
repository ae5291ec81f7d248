import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import type { Logger } from '../../log.ts';
import { makeOutputFolder, type OutputFolder, type OutputPlace, outputFolder } from './output-folder.ts';

export type Stream = 'stdout' | 'stderr';

/** Something that an execution printed, and when. */
export interface Printed {
  readonly execution: number;
  readonly stream: Stream;
  /** In milliseconds of the epoch. */
  readonly at: number;
  readonly text: string;
}

/** Of each task at least the last so many bytes are kept, and at most about twice as many: a full file replaces the one before it. */
const PART_BYTES = 256 * 1024;

/** So many files are kept of a store, the ones written last. */
const MOST_FILES = 2_000;

/** How many files a process makes before it looks again whether there are too many. */
const FILES_BETWEEN_LOOKS = 100;

/**
 * What commands print, kept for `holdfast logs`: JSON lines in a file for each task, which replaces the one
 * before it when it is full. It is no part of the store: whatever goes wrong here is no task's failure, and told once.
 */
export class OutputLog {
  readonly #place: OutputPlace;
  readonly #log: Logger;
  #folder: OutputFolder | undefined;
  #made = 0;
  #told = false;

  constructor(place: OutputPlace, log: Logger) {
    this.#place = place;
    this.#log = log;
  }

  /** For one execution: keeps what it is given. Never throws. */
  keeper({
    id,
    execution,
  }: {
    readonly id: number;
    readonly execution: number;
  }): (stream: Stream, chunk: Buffer) => void {
    const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') };
    // The process that wrote before may have been killed in the middle of a line.
    let torn = true;
    return (stream, chunk) => {
      const text = decoders[stream].write(chunk);
      if (text === '') return;
      try {
        const line = JSON.stringify({ execution, stream, at: Date.now(), text } satisfies Printed);
        this.#append(id, `${torn ? '\n' : ''}${line}\n`);
        torn = false;
      } catch (error) {
        torn = true;
        this.#folder = undefined;
        if (!this.#told) this.#log.warn({ err: error }, 'What commands print is not kept for `holdfast logs`');
        this.#told = true;
      }
    };
  }

  #append(id: number, lines: string): void {
    this.#folder ??= makeOutputFolder(this.#place);
    const { folder, mode } = this.#folder;
    const { current, old } = filesOf(folder, id);
    const size = sizeOf(current);
    let part = 1;
    if (size > 0 && size + lines.length > PART_BYTES) {
      part = (partOf(current) ?? 0) + 1;
      renameSync(current, old);
    }
    const file = openSync(current, 'a', mode);
    try {
      const isNew = fstatSync(file).size === 0;
      writeFully(file, isNew ? `${JSON.stringify({ task: id, part })}\n${lines}` : lines);
      if (isNew && this.#made++ % FILES_BETWEEN_LOOKS === 0) prune(folder);
    } finally {
      closeSync(file);
    }
  }
}

/** Reads what was kept of a task, and each time it is asked what came since. */
export class OutputReader {
  readonly #folder: string;
  readonly #task: number;
  #part = 0;
  #offset = 0;
  /** Whether something before, or between two looks, was not kept. */
  incomplete = false;

  constructor(place: OutputPlace, task: number) {
    this.#folder = outputFolder(place);
    this.#task = task;
  }

  /** @throws what the system says if there is something that may not be read. */
  news(): Printed[] {
    const { current, old } = filesOf(this.#folder, this.#task);
    // The newer one first: if they take turns between the two, it is found twice, and never missed.
    const parts = [open(current), open(old)].filter((part) => part !== undefined);
    try {
      const unread = parts
        .filter(({ part }, i) => part >= this.#part && parts.findIndex((one) => one.part === part) === i)
        .sort((a, b) => a.part - b.part);
      return unread.flatMap((part) => this.#read(part));
    } finally {
      for (const { file } of parts) closeSync(file);
    }
  }

  #read({ file, part, start }: Part): Printed[] {
    if (part > this.#part + 1) this.incomplete = true;
    if (part !== this.#part) [this.#part, this.#offset] = [part, start];
    const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - this.#offset));
    const read = bytes.subarray(0, readSync(file, bytes, 0, bytes.length, this.#offset));
    // What stands after the last line end is still being written.
    const whole = read.subarray(0, read.lastIndexOf(10) + 1);
    this.#offset += whole.length;
    return whole.toString().split('\n').flatMap(parsed);
  }
}

interface Part {
  readonly file: number;
  /** Counted from 1: the first that is left tells whether there were others before it. */
  readonly part: number;
  /** Where its lines begin. */
  readonly start: number;
}

function open(path: string): Part | undefined {
  const file = openIfThere(path);
  if (file === undefined) return undefined;
  const bytes = Buffer.alloc(100);
  const header = bytes
    .subarray(0, readSync(file, bytes, 0, bytes.length, 0))
    .toString()
    .split('\n')[0] as string;
  const part = /^\{"task":\d+,"part":(\d+)\}$/.exec(header)?.[1];
  if (part !== undefined) return { file, part: Number(part), start: header.length + 1 };
  closeSync(file);
  return undefined;
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

function partOf(path: string): number | undefined {
  const opened = open(path);
  if (opened) closeSync(opened.file);
  return opened?.part;
}

/** A line that was cut short by a crash or a full disk is left out. */
function parsed(line: string): Printed[] {
  try {
    const { execution, stream, at, text } = JSON.parse(line) as Partial<Printed>;
    if (typeof execution !== 'number' || typeof at !== 'number' || typeof text !== 'string') return [];
    return [{ execution, stream: stream === 'stderr' ? 'stderr' : 'stdout', at, text }];
  } catch {
    return [];
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** On a disk that is nearly full a write may write only a part. */
function writeFully(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
}

/** Removes the files that were written longest ago, if there are too many. */
function prune(folder: string): void {
  const names = readdirSync(folder);
  if (names.length <= MOST_FILES) return;
  const oldest = names
    .map((name) => join(folder, name))
    .map((path) => ({ path, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => a.at - b.at);
  for (const { path } of oldest.slice(0, names.length - MOST_FILES)) rmSync(path, { force: true });
}

function filesOf(folder: string, id: number): { readonly current: string; readonly old: string } {
  return { current: join(folder, `${id}.jsonl`), old: join(folder, `${id}.old.jsonl`) };
}
