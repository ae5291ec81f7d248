import type { BigIntStats } from 'node:fs';
import type { Json } from '../task.ts';
import type { MoveTask } from './move-task.ts';

/** What a file is known by again, under another name and after a restart. Numbers as text: JSON has no 64-bit integers. */
interface Identity {
  readonly device: string;
  readonly inode: string;
  readonly born: string;
  readonly size: string;
  readonly changed: string;
}

/** A file that this task itself wrote for its destination, and what of the source it could not keep. */
interface Made extends Identity {
  readonly lost: readonly string[];
}

/** The checkpoint of a move: written before its first change. */
interface Saved {
  readonly source: Identity;
  readonly made: readonly Made[];
  /** The empty folder that was made for a folder to replace. */
  readonly place?: Identity;
}

/** Of the files that earlier executions wrote, the last ones are remembered. */
const MOST_MADE = 50;

/**
 * What this task is known to have done, in its checkpoint. Only that proves that the file at the destination is this task's work: that
 * it ran before proves nothing.
 */
export class MoveRecord {
  readonly #task: MoveTask;
  /** As earlier executions left it. */
  readonly #before: Saved | undefined;
  #saved: Saved | undefined;

  constructor(task: MoveTask) {
    this.#task = task;
    this.#before = savedIn(task.checkpoint);
    this.#saved = this.#before;
  }

  /** Saves what the source is, before anything is changed. Costs nothing if an earlier execution saved the same. */
  async begin(source: BigIntStats): Promise<void> {
    const known = this.#saved;
    if (known && isThe(source, known.source)) return;
    await this.#save({ source: identityOf(source), made: known?.made ?? [] });
  }

  /** Saves what was written for the destination, before it gets that name. */
  async wrote(file: BigIntStats, lost: readonly string[]): Promise<void> {
    const known = this.#saved as Saved;
    await this.#save({ ...known, made: [...known.made, { ...identityOf(file), lost }].slice(-MOST_MADE) });
  }

  /** Saves which empty folder was made for the source to replace. */
  async madePlace(folder: BigIntStats): Promise<void> {
    await this.#save({ ...(this.#saved as Saved), place: identityOf(folder) });
  }

  /** Whether an earlier execution made this very folder. */
  isPlace(folder: BigIntStats): boolean {
    return this.#before?.place !== undefined && isThe(folder, this.#before.place);
  }

  /** Whether this file is the source that an earlier execution began with, or was written by one. */
  proves(file: BigIntStats): boolean {
    return this.#before !== undefined && (isThe(file, this.#before.source) || this.hasWritten(file));
  }

  hasWritten(file: BigIntStats): boolean {
    return this.#madeOf(file) !== undefined;
  }

  /** What could not be kept when this file was written. */
  lostOf(file: BigIntStats): readonly string[] {
    return this.#madeOf(file)?.lost ?? [];
  }

  #madeOf(file: BigIntStats): Made | undefined {
    return this.#saved?.made.find((one) => isThe(file, one));
  }

  async #save(saved: Saved): Promise<void> {
    await this.#task.saveCheckpoint({ move: saved });
    this.#saved = saved;
  }
}

function identityOf({ dev, ino, birthtimeNs, size, mtimeNs }: BigIntStats): Identity {
  return { device: `${dev}`, inode: `${ino}`, born: `${birthtimeNs}`, size: `${size}`, changed: `${mtimeNs}` };
}

/**
 * Numbers of inodes are given out again, so the same number is proof only together with the same time of birth, or the same size and
 * time of the last write. Devices may be numbered anew by a restart: then all of these must agree.
 */
function isThe(file: BigIntStats, known: Identity): boolean {
  const now = identityOf(file);
  if (now.inode !== known.inode) return false;
  const sameBirth = now.born === known.born && now.born !== '0';
  const sameContent = now.size === known.size && now.changed === known.changed;
  return now.device === known.device ? sameBirth || sameContent : sameBirth && sameContent;
}

/** A checkpoint of another shape, such as that of another handler of this type, is no record. */
function savedIn(checkpoint: Json | undefined): Saved | undefined {
  const { move } = Object(checkpoint) as { move?: Partial<Saved> };
  return isIdentity(move?.source) && Array.isArray(move.made) && move.made.every(isIdentity)
    ? (move as Saved)
    : undefined;
}

function isIdentity(value: unknown): value is Identity {
  const { device, inode, born, size, changed } = Object(value) as Partial<Record<keyof Identity, unknown>>;
  return [device, inode, born, size, changed].every((text) => typeof text === 'string');
}
