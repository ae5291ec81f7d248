import { readStored } from '../../stored-json.ts';
import type { Needs, QueueOrder } from '../../task.ts';
import { needsText } from '../takes.ts';
import type { StoreClock } from './clock.ts';
import type { Sql } from './driver.ts';

/** A combination of queue, type, category and needs, stored once under a number. */
export interface Class {
  readonly id: number;
  readonly queue: number;
  readonly type: string;
  readonly category: string;
  readonly needs: Needs;
  /** Its needs cannot be read. Any worker may take its tasks, and then finds this out. */
  readonly damaged: boolean;
}

export interface Queue {
  readonly id: number;
  readonly name: string;
  readonly ordering: QueueOrder;
  /** 1 if its sources take turns. */
  readonly fair: number;
  readonly paused_at: number | null;
  /** Its pace and its limit of tasks that run at the same time, if it has them. */
  readonly per_second: number | null;
  readonly burst: number | null;
  readonly concurrency: number | null;
}

/** A number above all tracks. */
const TRACKS = 8;

/** How many lanes a process caches. Beyond that it clears the cache. */
const MOST_LANES_KNOWN = 20_000;

/** How many unrestricted sources a process caches, and how many claims. */
const MOST_FREE_KNOWN = 20_000;

/** The names that tasks refer to by number: queues, classes, and lanes. Each is made at its first use, and cached. */
export class Catalogue {
  readonly #sql: Sql;
  readonly #clock: StoreClock;
  /** By type, then by the rest of the name. */
  readonly #classIds = new Map<string, Map<string, number>>();
  readonly #classes = new Map<number, Class>();
  readonly #queues = new Map<number, Queue>();
  /** By class and track, then by source. */
  readonly #laneIds = new Map<number, Map<string, number>>();
  #lanesKnown = 0;
  #version = -1;
  /** Sources that nothing restricts, and that have no state. */
  readonly #free = new Set<string>();
  /** Claims that took tasks of such sources only, and of queues without limits; by their token. */
  readonly #freeClaims = new Set<string>();
  #freeVersion = -1;

  constructor(sql: Sql, clock: StoreClock) {
    this.#sql = sql;
    this.#clock = clock;
  }

  /** Clears the cache after a transaction was rolled back. */
  forget(): void {
    this.#classIds.clear();
    this.#classes.clear();
    this.#queues.clear();
    this.#laneIds.clear();
    this.#lanesKnown = 0;
    this.#clock.restrictions = true;
    this.#free.clear();
    this.#freeClaims.clear();
  }

  queueIdOf(name: string): number {
    const found = this.#sql.get<{ id: number }>('SELECT id FROM hf_queues WHERE name = ?', name);
    return found?.id ?? this.#sql.run('INSERT INTO hf_queues (name) VALUES (?)', name).id;
  }

  queue(id: number): Queue {
    this.#forgetIfChanged();
    const known = this.#queues.get(id);
    if (known) return known;
    const row = this.#sql.get<Queue>(
      'SELECT id, name, ordering, fair, paused_at, per_second, burst, concurrency FROM hf_queues WHERE id = ?',
      id,
    ) as Queue;
    this.#queues.set(id, row);
    return row;
  }

  /** Other processes cache queues and lanes. The catalogue's number shows them that these have changed. */
  changed(): void {
    this.#sql.run('UPDATE hf_clock SET catalogue = catalogue + 1 WHERE id = 1');
    this.#clock.catalogue += 1;
  }

  /** Whether any source or queue may be restricted. If none is, no statement reads restrictions. */
  get restrictions(): boolean {
    return this.#clock.restrictions;
  }

  /** Whether any task of a group is open. */
  get groups(): boolean {
    return this.#clock.groups;
  }

  beginGroup(): void {
    this.#sql.run('UPDATE hf_clock SET groups = 1 WHERE id = 1 AND groups = 0');
    this.#clock.groups = true;
  }

  /** Reads whether any source or queue is restricted, outside of a transaction. */
  lookForRestrictions(): void {
    this.#clock.restrictions = this.#sql.column<number>('SELECT restrictions FROM hf_clock WHERE id = 1')[0] === 1;
  }

  /** Called when a free source becomes restricted or gets a state, and when a queue gets a limit. */
  restrict(): void {
    this.#sql.run('UPDATE hf_clock SET restrictions = 1, newly_restricted = newly_restricted + 1 WHERE id = 1');
    this.#clock.restrictions = true;
    this.#clock.newlyRestricted += 1;
  }

  /** Whether nothing restricts a source, and it has no state. A result is cached until any source or queue is restricted. */
  isFree(source: string): boolean {
    if (!this.restrictions) return true;
    this.#forgetFreeIfChanged();
    if (this.#free.has(source)) return true;
    const found = this.#sql.get(
      'SELECT 1 FROM hf_restricted WHERE source = :source UNION ALL SELECT 1 FROM hf_source_states WHERE source = :source',
      { source },
    );
    if (found === undefined) addTo(this.#free, source);
    return found === undefined;
  }

  /** A claim took tasks of free sources only, and of queues without limits. */
  noteFreeClaim(token: string): void {
    this.#forgetFreeIfChanged();
    addTo(this.#freeClaims, token);
  }

  /** Whether the tasks of a claim are surely of sources that are free now, and counted by no limit. */
  isFreeClaim(token: string): boolean {
    this.#forgetFreeIfChanged();
    return this.#freeClaims.has(token);
  }

  /** A source or a queue is not restricted any more. */
  unrestrict(): void {
    this.#sql.run(
      `UPDATE hf_clock SET restrictions = 0 WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM hf_restricted)
         AND NOT EXISTS (SELECT 1 FROM hf_source_states)
         AND NOT EXISTS (SELECT 1 FROM hf_queues WHERE per_second IS NOT NULL OR concurrency IS NOT NULL)`,
    );
  }

  #forgetFreeIfChanged(): void {
    if (this.#freeVersion === this.#clock.newlyRestricted) return;
    this.#freeVersion = this.#clock.newlyRestricted;
    this.#free.clear();
    this.#freeClaims.clear();
  }

  #forgetIfChanged(): void {
    if (this.#version === this.#clock.catalogue) return;
    this.#version = this.#clock.catalogue;
    this.#queues.clear();
    this.#laneIds.clear();
    this.#lanesKnown = 0;
  }

  classIdOf(queue: string, type: string, category: string | undefined, needs: Needs | undefined): number {
    const ofType = this.#classIds.get(type) ?? new Map<string, number>();
    // Most classes are a type in its queue and nothing else. No name holds a NUL.
    const name = category === undefined && !needs ? queue : `${queue}\0${category ?? ''}\0${needsText(needs)}`;
    const known = ofType.get(name);
    if (known !== undefined) return known;
    const row = [this.queueIdOf(queue), type, category ?? '', needsText(needs)];
    const found = this.#sql.get<{ id: number }>(
      'SELECT id FROM hf_classes WHERE queue = ? AND type = ? AND category = ? AND needs = ?',
      ...row,
    );
    const id =
      found?.id ??
      this.#sql.run('INSERT INTO hf_classes (queue, type, category, needs) VALUES (?, ?, ?, ?)', ...row).id;
    this.#classIds.set(type, ofType.set(name, id));
    return id;
  }

  class(id: number): Class {
    const known = this.#classes.get(id);
    if (known) return known;
    const row = this.#sql.get<{ queue: number; type: string; category: string; needs: string }>(
      'SELECT queue, type, category, needs FROM hf_classes WHERE id = ?',
      id,
    ) as { queue: number; type: string; category: string; needs: string };
    const unreadable: string[] = [];
    const needs = readStored<Needs>(row.needs, 'needs', unreadable, {});
    const made = { ...row, id, needs, damaged: unreadable.length > 0 };
    this.#classes.set(id, made);
    return made;
  }

  queueOfClass(id: number): Queue {
    return this.queue(this.class(id).queue);
  }

  /** The lane, if it was ever made. */
  findLane(classId: number, track: number, source: string): number | undefined {
    return this.#sql.column<number>(
      'SELECT id FROM hf_lanes WHERE source = ? AND class = ? AND track = ?',
      source,
      classId,
      track,
    )[0];
  }

  laneIdOf(classId: number, track: number, source: string): number {
    this.#forgetIfChanged();
    const group = classId * TRACKS + track;
    const ofGroup = this.#laneIds.get(group) ?? new Map<string, number>();
    const known = ofGroup.get(source);
    if (known !== undefined) return known;
    const row = [source, classId, track];
    const found = this.#sql.get<{ id: number }>(
      'SELECT id FROM hf_lanes WHERE source = ? AND class = ? AND track = ?',
      ...row,
    );
    const id = found?.id ?? this.#sql.run('INSERT INTO hf_lanes (source, class, track) VALUES (?, ?, ?)', ...row).id;
    if (this.#lanesKnown++ >= MOST_LANES_KNOWN) {
      this.#laneIds.clear();
      this.#lanesKnown = 0;
    }
    this.#laneIds.set(group, ofGroup.set(source, id));
    return id;
  }
}

/** Adds to a cache, which is cleared first if it is full. */
function addTo(cache: Set<string>, name: string): void {
  if (cache.size >= MOST_FREE_KNOWN) cache.clear();
  cache.add(name);
}
