import type { Milliseconds } from '../duration.ts';
import { InvalidInputError, RedriveConflictError, RedriveNotFoundError } from '../errors.ts';
import { isFamily, isReason } from '../failure/outcome.ts';
import { type NameFilter, parseFilter } from '../filter.ts';
import { list, moment, name, oneOf, refuseUnknown, text, wholeNumber } from '../options.ts';
import { OTHERWISE_CALLED } from '../otherwise-called.ts';
import { parsePace } from '../pace.ts';
import {
  REDRIVABLE_STATES,
  type RedrivableState,
  type RedriveSkip,
  type RedriveState,
  redriveTime,
} from '../redrive.ts';
import { show } from '../show.ts';
import type { RedriveFilter, RedriveOfTask, RedriveRecord } from '../store/redrives.ts';
import type { Store } from '../store/store.ts';
import { RedriveDriver } from '../worker/redrive-driver.ts';
import { type ActionOptions, by, LONGEST_NOTE } from './operate.ts';

/** Which ended tasks a redrive puts back. A filter that is left out selects all. */
export interface RedriveFilterOptions extends NameFilter {
  /** Default: `dead` only. */
  readonly states?: readonly RedrivableState[];
  /** Reasons (`fs.locked`) and families of them (`fs.*`). */
  readonly reasons?: readonly string[];
  /** Fingerprints of the last failure, as in the history and the log. */
  readonly fingerprints?: readonly string[];
  /** Only tasks that ended, or began to wait for a person, at this time or later. */
  readonly endedFrom?: Date;
  /** Only tasks that did so before this time. */
  readonly endedBefore?: Date;
}

export interface SelectionOptions {
  /** Or the text of a filter: `'reason:http.* since:2h'`. */
  readonly filter: RedriveFilterOptions | string;
  /** How fast tasks are put back: `'10/s'`, `'100/m'`, `'5000/h'`. Default 10/s. */
  readonly rate?: string;
}

export interface RedriveOptions extends SelectionOptions {
  /** Why: it is kept with the redrive and in the history of each task. */
  readonly note: string;
  /** Who acts. Default `api`. */
  readonly actor?: string;
  /** Also puts back tasks that must not run twice and whose last execution may have had its effect. Default: they are skipped. */
  readonly acceptDuplicate?: boolean;
}

/** What a redrive would do if it started now. */
export interface RedrivePlan {
  readonly matches: number;
  /** How many of them may have had their effect in their last execution, so that it would happen twice. */
  readonly mayRunTwice: number;
  /** How many of the latter must not run twice. They are skipped unless the redrive has `acceptDuplicate`. */
  readonly mustNotRunTwice: number;
  /** How long it takes at least at this rate, without the waits for the outcomes of the first tasks. */
  readonly takesAtLeast: Milliseconds;
}

const DEFAULT_RATE = '10/s';

const MOST_LISTED = 1_000;

/** The operations of `holdfast.redrives`. */
export class Redrives {
  readonly #store: Store;
  readonly #onRunning: () => void;

  /** Made by `openHoldfast`. `onRunning`: called when a redrive has started or resumed. */
  constructor(store: Store, onRunning: () => void) {
    this.#store = store;
    this.#onRunning = onRunning;
  }

  /** Starts a redrive: selects its tasks, and puts the first one back. */
  async start(options: RedriveOptions): Promise<RedriveRecord> {
    refuseUnknown(options, ['filter', 'note', 'rate', 'actor', 'acceptDuplicate'], 'redrive', OTHERWISE_CALLED.redrive);
    const { filter, note, rate, actor = 'api', acceptDuplicate = false } = options;
    const { redrives } = this.#store;
    const id = await redrives.start({
      filter: this.#filterFrom(filter),
      note: noteOf(note),
      perSecond: perSecondOf(rate),
      actor: name(actor, 'actor'),
      acceptDuplicate: oneOf(acceptDuplicate, [true, false], 'acceptDuplicate'),
    });
    while (await redrives.select(id));
    const driver = new RedriveDriver({ store: redrives, onEnd: () => {} });
    await driver.driveOne(id);
    await driver.release();
    this.#onRunning();
    return this.get(id);
  }

  /** Returns what a redrive with these options would do if it started now. Changes nothing. */
  async preview(options: SelectionOptions): Promise<RedrivePlan> {
    refuseUnknown(options, ['filter', 'rate'], 'redrives.preview');
    const filter = this.#filterFrom(options.filter);
    const perSecond = perSecondOf(options.rate);
    let [matches, mayRunTwice, mustNotRunTwice] = [0, 0, 0];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const found: Awaited<ReturnType<Store['redrives']['preview']>> = await this.#store.redrives.preview(
        filter,
        after,
      );
      matches += found.matches;
      mayRunTwice += found.mayHaveHappened;
      mustNotRunTwice += found.mustNotRunTwice;
      after = found.next;
    }
    return { matches, mayRunTwice, mustNotRunTwice, takesAtLeast: redriveTime(matches, perSecond) };
  }

  /** Redrives that run, and those that ended in the last 30 days: the newest first, 100 by default. */
  list(options: { readonly limit?: number } = {}): Promise<readonly RedriveRecord[]> {
    refuseUnknown(options, ['limit'], 'redrives.list');
    return this.#store.redrives.list(wholeNumber(options.limit ?? 100, 'limit', 1, MOST_LISTED));
  }

  /** @throws RedriveNotFoundError. */
  async get(id: number): Promise<RedriveRecord> {
    const found = await this.#store.redrives.find(idOf(id));
    if (!found) throw new RedriveNotFoundError(id);
    return found;
  }

  /** How many tasks of a redrive were skipped, by the cause. @throws RedriveNotFoundError. */
  async skips(id: number): Promise<Readonly<Partial<Record<RedriveSkip, number>>>> {
    const { skipped } = await this.get(id);
    const known = await this.#store.redrives.skips(id);
    // Removed tasks cannot be listed.
    const missing = skipped - Object.values(known).reduce((sum, count) => sum + count, 0) + (known.missing ?? 0);
    return missing > 0 ? { ...known, missing } : known;
  }

  /** The newest redrive that selected a task, and its outcome for this task; undefined if there is none. */
  ofTask(task: number): Promise<RedriveOfTask | undefined> {
    return this.#store.redrives.ofTask(wholeNumber(task, 'The id of a task', 1));
  }

  /**
   * Pauses a redrive: no task is put back until it is resumed. @throws RedriveConflictError unless it runs; RedriveNotFoundError.
   */
  pause(id: number, options: ActionOptions = {}): Promise<RedriveRecord> {
    return this.#change(id, 'paused', by(options, 'redrives.pause'));
  }

  /** Continues a paused redrive. @throws RedriveConflictError unless it is paused; RedriveNotFoundError. */
  resume(id: number, options: ActionOptions = {}): Promise<RedriveRecord> {
    return this.#change(id, 'running', by(options, 'redrives.resume'));
  }

  /**
   * Ends a redrive. Tasks that were put back stay so, and the others are left as they are. @throws RedriveConflictError if it has
   * ended; RedriveNotFoundError.
   */
  cancel(id: number, options: ActionOptions = {}): Promise<RedriveRecord> {
    return this.#change(id, 'cancelled', by(options, 'redrives.cancel'));
  }

  #filterFrom(filter: RedriveFilterOptions | string): RedriveFilter {
    if (typeof filter !== 'string') return readFilter(filter);
    const { states = ['dead'], ...rest } = parseFilter(filter, new Date(this.#store.upkeep.now()));
    return { ...rest, states: redrivable(states) };
  }

  async #change(id: number, to: keyof typeof DONE, whose: ReturnType<typeof by>): Promise<RedriveRecord> {
    const changed = await this.#store.redrives.change(idOf(id), to, whose);
    const redrive = await this.get(id);
    if (changed && to === 'running') this.#onRunning();
    if (!changed) throw conflict(redrive, DONE[to]);
    return redrive;
  }
}

function conflict({ id, state }: RedriveRecord, action: string): RedriveConflictError {
  return new RedriveConflictError(
    id,
    state,
    `Redrive ${id} is ${state}, so it cannot be ${action}. ${WHAT_THEN[state]}`,
  );
}

const WHAT_THEN: Readonly<Record<RedriveState, string>> = {
  running: 'It goes on by itself while a worker runs.',
  paused: 'Resume or cancel it.',
  stopped: 'It is over: start another one for the tasks that are left.',
  done: 'It is over.',
  cancelled: 'It is over: start another one for the tasks that are left.',
};

const DONE = { paused: 'paused', running: 'resumed', cancelled: 'cancelled' } as const;

function idOf(id: unknown): number {
  return wholeNumber(id, 'The id of a redrive', 1);
}

function noteOf(note: unknown): string {
  if (note === undefined || (typeof note === 'string' && note.trim() === '')) {
    throw new InvalidInputError(
      'redrive needs a `note` about why: it is kept with the redrive and in the history of each task.',
    );
  }
  return text(note, 'note', LONGEST_NOTE - ROOM_FOR_NUMBER);
}

/** The history has `Redrive 12: ` before the note. */
const ROOM_FOR_NUMBER = 96;

function perSecondOf(rate: string = DEFAULT_RATE): number {
  return parsePace(rate, 'rate').perSecond;
}

const NAMES = ['types', 'queues', 'sources', 'fingerprints'] as const;
const OTHERS = ['states', 'reasons', 'endedFrom', 'endedBefore'] as const;

/** @throws InvalidInputError for an invalid value. */
function readFilter(options: RedriveFilterOptions): RedriveFilter {
  refuseUnknown(options, [...NAMES, ...OTHERS], 'filter');
  const { states = ['dead'], reasons, endedFrom, endedBefore } = options;
  const names = NAMES.flatMap((key) => (options[key] === undefined ? [] : [[key, list(options[key], key, name)]]));
  const wanted = reasons && list(reasons, 'reasons', reasonOrFamily);
  return {
    states: redrivable(states),
    ...Object.fromEntries(names),
    ...(wanted && {
      reasons: wanted.filter((reason) => !isFamily(reason)),
      families: wanted.filter(isFamily).map((family) => family.slice(0, -2)),
    }),
    ...(endedFrom !== undefined && { endedFrom: moment(endedFrom, 'endedFrom').getTime() }),
    ...(endedBefore !== undefined && { endedBefore: moment(endedBefore, 'endedBefore').getTime() }),
  };
}

function redrivable(states: unknown): readonly RedrivableState[] {
  return list(states, 'states', (state, what) => oneOf(state, REDRIVABLE_STATES, what));
}

function reasonOrFamily(value: unknown, what: string): string {
  if (typeof value === 'string' && (isReason(value) || isFamily(value))) return value;
  throw new InvalidInputError(
    `${what} must be a reason (fs.locked) or a family of reasons (fs.*), got ${show(value)}.`,
  );
}
