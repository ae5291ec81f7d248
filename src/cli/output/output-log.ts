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
import type { Printed, Stream } from '../../documents/logs.ts';
import type { Logger } from '../../log.ts';
import { makeOutputFolder, type OutputFolder, type OutputPlace, outputFolder } from './output-folder.ts';

/** At least this many bytes of each task are kept, the last ones, and at most about twice as many. */
const PART_BYTES = 256 * 1024;

/** This many files of a store are kept: those that were written last. */
const MOST_FILES = 2_000;

/** How many files a process creates before it checks again whether there are too many. */
const FILES_BETWEEN_LOOKS = 100;

/**
 * Keeps the output of commands for `holdfast logs`: JSON lines in a file for each task. A full file replaces the one before. It is
 * not part of the store: an error here fails no task, and is logged once.
 */
export class OutputLog {
  readonly #place: OutputPlace;
  readonly #log: Logger;
  #folder: OutputFolder | undefined;
  #made = 0;
  #warned = false;

  constructor(place: OutputPlace, log: Logger) {
    this.#place = place;
    this.#log = log;
  }

  /** Keeps the output of one execution. The returned function never throws. */
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
        if (!this.#warned) this.#log.warn({ err: error }, 'What commands print is not kept for `holdfast logs`');
        this.#warned = true;
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

/** Reads the kept output of a task. Each call returns what is new. */
export class OutputReader {
  readonly #folder: string;
  readonly #task: number;
  #part = 0;
  #offset = 0;
  /** Whether output was lost, at the beginning or between two reads. */
  incomplete = false;

  constructor(place: OutputPlace, task: number) {
    this.#folder = outputFolder(place);
    this.#task = task;
  }

  /** @throws the system's error if a file exists but cannot be read. */
  news(): Printed[] {
    const { current, old } = filesOf(this.#folder, this.#task);
    // The newer file is opened first. If it replaces the older one meanwhile, it is opened twice, but none is missed.
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
    // The text after the last line end is still being written.
    const whole = read.subarray(0, read.lastIndexOf(10) + 1);
    this.#offset += whole.length;
    return whole.toString().split('\n').flatMap(parsed);
  }
}

interface Part {
  readonly file: number;
  /** Counted from 1. A higher first number shows that earlier parts were removed. */
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

/** Writes all bytes. On a nearly full disk, one write may store only a part. */
function writeFully(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
}

/** Removes the oldest files if there are too many. */
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
