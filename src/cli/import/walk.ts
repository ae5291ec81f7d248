import { IMPORTED_AT_ONCE } from '../../queue/import.ts';
import type { ImportedTask } from '../../store/store.ts';
import type { ImportState } from '../../task.ts';
import type { ProgressBar } from '../terminal/progress-bar.ts';
import type { Input } from './input.ts';
import { linesIn } from './lines.ts';
import { type ImportReader, LONGEST_LINE, type Objection } from './reader.ts';

/** One transaction imports at most this many tasks. */
const BATCH_BYTES = 8 * 1_048_576;

/** How many refused lines are shown one by one. */
const MOST_SHOWN = 20;

/** What happened to the lines. */
export interface Tally {
  /** How many lines were read, empty ones included. */
  lines: number;
  good: number;
  refused: number;
  imported: number;
  alreadyThere: number;
  /** Of those that were imported. */
  readonly byState: Partial<Record<ImportState, number>>;
  /** All lines up to this one are imported, except refused ones. */
  recordedTo: number;
  interrupted: boolean;
  /** Of the first lines that were refused. */
  readonly objections: Objection[];
}

/** Whether this process was asked to end, by Ctrl-C for example. */
export class Interruption {
  #happened = false;
  #notify = () => {};

  happen(): void {
    this.#happened = true;
    this.#notify();
  }

  get happened(): boolean {
    return this.#happened;
  }

  /** The result of the promise, or undefined after an interruption. `Promise.race` would keep every result in memory until then. */
  until<T>(promised: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#notify = () => resolve(undefined);
      promised.then(resolve, reject);
      if (this.#happened) resolve(undefined);
    });
  }
}

export interface Walk {
  readonly input: Input;
  readonly reader: ImportReader;
  readonly bar: ProgressBar;
  readonly verb: 'checking' | 'importing';
  /** Whether reading stops at the first refused line. The lines before it are imported. */
  readonly stopsAtRefusal: boolean;
  readonly interruption: Interruption;
  readonly take: (batch: readonly ImportedTask[], tally: Tally) => Promise<void>;
}

/** Reads all lines of an input, and passes their tasks to `take` in batches. */
export async function walk(how: Walk, tally: Tally): Promise<Tally> {
  const { input, reader, bar, verb, stopsAtRefusal, interruption } = how;
  let batch: ImportedTask[] = [];
  let bytes = 0;
  const flush = async () => {
    if (batch.length > 0) await how.take(batch, tally);
    batch = [];
    bytes = 0;
  };
  const lines = linesIn(input.chunks(), LONGEST_LINE);
  for (;;) {
    const next = await interruption.until(lines.next());
    if (!next || next.done) break;
    for (const line of next.value) {
      if (interruption.happened) break;
      const reading = await reader.read(line);
      if (reading && 'objections' in reading) {
        if (stopsAtRefusal) await flush();
        refuse(tally, reading.objections);
        if (stopsAtRefusal) return tally;
      }
      tally.lines = line.number;
      if (!reading || !('task' in reading)) continue;
      tally.good += 1;
      batch.push(reading.task);
      bytes += line.bytes;
      if (batch.length >= IMPORTED_AT_ONCE || bytes >= BATCH_BYTES) await flush();
      bar.update(input.size === undefined ? undefined : line.end / input.size, () => `${verb} line ${line.number}`);
    }
  }
  tally.interrupted = interruption.happened;
  await flush();
  return tally;
}

export function emptyTally(): Tally {
  return {
    lines: 0,
    good: 0,
    refused: 0,
    imported: 0,
    alreadyThere: 0,
    byState: {},
    recordedTo: 0,
    interrupted: false,
    objections: [],
  };
}

function refuse(tally: Tally, objections: readonly Objection[]): void {
  tally.refused += 1;
  if (tally.refused <= MOST_SHOWN) tally.objections.push(...objections);
}
