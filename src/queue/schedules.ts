import { InvalidInputError, PayloadError, ScheduleNotFoundError, StoreError } from '../errors.ts';
import { isRecord, name, oneOf, refuseUnknown } from '../options.ts';
import { parseCron, type Times } from '../schedule/cron.ts';
import { type Definition, type FileSchedules, LONGEST_SCHEDULE_NAME, taskNow } from '../schedule/definition.ts';
import { MISSED, type Missed, NEW_PROGRESS, OVERLAPS, type Overlap, type Progress } from '../schedule/turn.ts';
import { show } from '../show.ts';
import type { ScheduleOrigin, ScheduleRecord } from '../store/schedules.ts';
import type { By, NewTask, Receipt, Store } from '../store/store.ts';
import type { Json, Needs, TaskState } from '../task.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import type { AnyTask, DefinitionOf } from '../worker/define-task.ts';
import { from } from '../worker/schedule-ticker.ts';
import { send } from '../worker/traces.ts';
import type { EnqueueOptions } from './enqueue.ts';
import { type ActionOptions, by } from './operate.ts';

/** A task that is enqueued by the clock. */
export interface ScheduleOptions<Given = unknown>
  extends Pick<EnqueueOptions, 'queue' | 'priority' | 'category' | 'needs' | 'source' | 'idempotent' | 'retry'> {
  /** The type of the task: its definition or its name. */
  readonly task: DefinitionOf<Given> | string;
  /** Default null. */
  readonly input?: Given;
  /**
   * When: five fields (minute, hour, day of the month, month, day of the week) such as `'0 3 * * *'`, six with seconds first, or a
   * nickname such as `'@daily'`. If a change of the clocks skips the one time of a day, it fires as soon as the clocks were set
   * forward. A time that comes twice, because the clocks are set back, fires once, unless the hour has a `*`.
   */
  readonly cron: string;
  /** A name of the IANA database, such as `'Europe/Berlin'`. Default `'UTC'`. */
  readonly timeZone?: string;
  /**
   * Times at which no worker was there. `latest` (default): one task for the newest of them. `all`: a task for each, at most the
   * newest 1,000. `skip`: none that is more than a minute old.
   */
  readonly missed?: Missed;
  /**
   * A time at which the schedule's task before has not ended. `skip` (default): no task is enqueued; but if the task before waits,
   * also for a retry, the new one replaces it. `queue`: the new task is enqueued when the one before has ended; one time waits at
   * most (with `missed: 'all'` every one). `allow`: it is enqueued at once, and they may run at the same time.
   */
  readonly overlap?: Overlap;
}

/** A schedule and how far it is. */
export interface Schedule {
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: Missed;
  readonly overlap: Overlap;
  /** Its times since it was made, by what happened: beyond 100 in a row, `missed` is the least number. */
  readonly counts: Pick<Progress, 'enqueued' | 'skipped' | 'missed'>;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category?: string;
  readonly needs?: Needs;
  readonly input: Json;
  readonly origin: ScheduleOrigin;
  readonly createdAt: Date;
  /** The next time. Absent: it is paused, or there is no other time. */
  readonly nextAt?: Date;
  /** A time is due and waits for the task before to end. */
  readonly waits: boolean;
  /** The newest time that was dealt with. */
  readonly last?: { readonly tick: Date; readonly at: Date; readonly was: 'enqueued' | 'skipped' | 'missed' };
  /** The newest task that it enqueued at one of its times; its state is undefined if it was removed. */
  readonly lastTask?: { readonly id: number; readonly state?: TaskState };
  readonly paused?: By & { readonly at: Date };
}

const TASK_OPTIONS = ['queue', 'priority', 'category', 'needs', 'source', 'idempotent', 'retry'] as const;
const OPTIONS = ['task', 'input', 'cron', 'timeZone', 'missed', 'overlap', ...TASK_OPTIONS];

/** Who pauses a schedule that has left its file. */
const BY_FILE = 'config';

/** How often a change is tried again, because a worker may take a step of the schedule between reading and writing it. */
const MOST_TRIES = 100;

/** What `Schedules` needs of the rest of Holdfast. */
interface Parts {
  readonly store: Store;
  /** Checks an input, and makes a task of it. */
  readonly taskFor: (task: AnyTask | string, input: unknown, options: EnqueueOptions) => Promise<NewTask>;
  readonly telemetry: Telemetry | undefined;
  /** Called when a schedule may be due sooner than before. */
  readonly onSet: () => void;
}

/** The operations of `holdfast.schedules`. */
export class Schedules {
  readonly #parts: Parts;

  /** Made by `openHoldfast`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Records a schedule, or changes the one with this name. Call it at each start of a program, in every process: where nothing has
   * changed, nothing is written. Workers enqueue its tasks, each once, however many there are. Its first time is the next one from
   * now; if `cron` and `timeZone` stay, times that are due stay due. A pause stays.
   * @throws InvalidInputError or PayloadError, naming what is refused. Then nothing is written.
   */
  set<Given>(schedule: string, options: ScheduleOptions<Given>): Promise<Schedule> {
    return this.define(schedule, options as ScheduleOptions, { by: 'code' });
  }

  /** @internal `set`, from another origin. */
  async define(schedule: string, options: ScheduleOptions, origin: ScheduleOrigin): Promise<Schedule> {
    const called = scheduleName(schedule);
    const definition = await this.#definitionOf(called, options);
    const times = parseCron(definition);
    const text = JSON.stringify(definition);
    const { store, onSet } = this.#parts;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const found = await store.schedules.find(called);
      if (found?.definition === text && sameOrigin(found.origin, origin) && readContents(found)) break;
      const progress = progressFor(definition, times, found, store.upkeep.now());
      const values = {
        name: called,
        definition: text,
        origin,
        progress: JSON.stringify(progress),
        lookAt: progress.nextAt,
      };
      if (!(await store.schedules.define(values, found?.revision ?? 0))) continue;
      onSet();
      break;
    }
    return this.get(called);
  }

  /**
   * @internal Sets the schedules of a file, and pauses those that it had before and has no more. `onRefused` hears of each that is
   * refused; the others are set.
   */
  async apply({ file, all }: FileSchedules, onRefused: (schedule: string, error: unknown) => void): Promise<void> {
    const origin: ScheduleOrigin = { by: 'file', file };
    for (const [called, { type, ...options }] of all) {
      try {
        const { paused } = await this.define(called, { task: type, ...options }, origin);
        if (paused?.actor === BY_FILE) await this.resume(called);
      } catch (error) {
        if (!(error instanceof InvalidInputError || error instanceof PayloadError)) throw error;
        onRefused(called, error);
      }
    }
    for (const record of await this.#parts.store.schedules.list()) {
      if (!sameOrigin(record.origin, origin) || all.has(record.name) || record.paused) continue;
      await this.#parts.store.schedules.pause(record.name, { actor: BY_FILE, note: `${file} has it no more` });
    }
  }

  /** All schedules, by name. */
  async list(): Promise<readonly Schedule[]> {
    const records = await this.#parts.store.schedules.list();
    return Promise.all(records.map((record) => this.#viewOf(record)));
  }

  /** @throws ScheduleNotFoundError. */
  async get(schedule: string): Promise<Schedule> {
    return this.#viewOf(await this.#find(schedule));
  }

  /** Its next times, at most 1,000, whether it is paused or not. @throws ScheduleNotFoundError. */
  async next(schedule: string, count = 5): Promise<readonly Date[]> {
    const { definition } = contents(await this.#find(schedule));
    const times = parseCron(definition);
    const found: Date[] = [];
    let time = times.after(this.#parts.store.upkeep.now());
    for (; time !== undefined && found.length < Math.min(count, 1_000); time = times.after(time)) {
      found.push(new Date(time));
    }
    return found;
  }

  /** Enqueues nothing more until it is resumed. Pausing twice keeps the first one's actor and note. @throws ScheduleNotFoundError. */
  async pause(schedule: string, options: ActionOptions = {}): Promise<Schedule> {
    const whose = by(options, 'schedules.pause');
    if (!(await this.#parts.store.schedules.pause(scheduleName(schedule), whose)))
      throw new ScheduleNotFoundError(schedule);
    return this.get(schedule);
  }

  /**
   * Ends a pause. Times during the pause are not made up for. A schedule that is not paused stays as it is.
   * @throws ScheduleNotFoundError.
   */
  async resume(schedule: string): Promise<Schedule> {
    const { store, onSet } = this.#parts;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const found = await this.#find(schedule);
      if (!found.paused) break;
      const { definition, progress: before } = contents(found);
      // A clock that was set back repeats no time.
      const newest = Math.max(store.upkeep.now(), before.last?.tick ?? 0);
      const progress = from(parseCron(definition).after(newest), before);
      const step = { progress: JSON.stringify(progress), lookAt: progress.nextAt };
      if (!(await store.schedules.resume(found.name, found.revision, step))) continue;
      onSet();
      break;
    }
    return this.get(schedule);
  }

  /**
   * Enqueues a task of it now, whether it is paused or not. With `overlap: 'allow'` always; otherwise, if its task before has not
   * ended, as at one of its times: the receipt names that task, with `created: false`. @throws ScheduleNotFoundError.
   */
  async run(schedule: string): Promise<Receipt> {
    const found = await this.#find(schedule);
    const { store, telemetry } = this.#parts;
    const task = taskNow(found.name, contents(found).definition);
    const [receipt] = await send(telemetry, [task], (tasks) => store.tasks.enqueue(tasks));
    return receipt as Receipt;
  }

  /** Removes a schedule. Its tasks stay. @throws ScheduleNotFoundError. */
  async remove(schedule: string): Promise<void> {
    if (!(await this.#parts.store.schedules.remove(scheduleName(schedule)))) throw new ScheduleNotFoundError(schedule);
  }

  async #find(schedule: string): Promise<ScheduleRecord> {
    const found = await this.#parts.store.schedules.find(scheduleName(schedule));
    if (!found) throw new ScheduleNotFoundError(schedule);
    return found;
  }

  async #definitionOf(called: string, options: ScheduleOptions): Promise<Definition> {
    const what = `The schedule '${called}'`;
    refuseUnknown(options, OPTIONS, what, {
      type: "Did you mean 'task'?",
      every: "Write it as `cron`: every five minutes is '*/5 * * * *'.",
      tz: "Did you mean 'timeZone'?",
      zone: "Did you mean 'timeZone'?",
      payload: "Did you mean 'input'?",
    });
    const { task, input = null, cron, timeZone = 'UTC', missed = 'latest', overlap = 'skip', ...rest } = options;
    oneOf(missed, MISSED, `\`missed\` of ${what}`);
    oneOf(overlap, OVERLAPS, `\`overlap\` of ${what}`);
    if (missed === 'all' && overlap === 'skip') {
      throw new InvalidInputError(
        `${what} has missed: 'all' and overlap: 'skip', so all missed times but one would be skipped at once. Use overlap: 'queue' or 'allow'.`,
      );
    }
    parseCron({ cron, timeZone });
    if (typeof task !== 'string' && !isRecord(task)) {
      throw new InvalidInputError(
        `${what} needs a \`task\`: what defineTask returns, or the name of a type, got ${show(task)}.`,
      );
    }
    const made = await this.#parts.taskFor(task as AnyTask | string, input, rest);
    const { type, queue, source, priority, category, needs, payload, idempotent, policy } = made;
    return {
      cron: cron.trim(),
      timeZone,
      missed,
      overlap,
      task: {
        type,
        queue,
        source,
        priority,
        payload,
        ...(category !== undefined && { category }),
        ...(needs !== undefined && { needs }),
        ...(idempotent !== undefined && { idempotent }),
        ...(policy !== undefined && { policy }),
      },
    };
  }

  async #viewOf(record: ScheduleRecord): Promise<Schedule> {
    const { definition, progress } = contents(record);
    const { cron, timeZone, missed, overlap, task } = definition;
    const { nextAt, last, waits = false, ...counts } = progress;
    const { lookAt, lastTask, paused } = record;
    const state = lastTask === undefined ? undefined : (await this.#parts.store.records.find(lastTask))?.state;
    return {
      name: record.name,
      cron,
      timeZone,
      missed,
      overlap,
      counts,
      type: task.type,
      queue: task.queue,
      source: task.source,
      priority: task.priority,
      ...(task.category !== undefined && { category: task.category }),
      ...(task.needs !== undefined && { needs: task.needs }),
      input: JSON.parse(task.payload) as Json,
      origin: record.origin,
      createdAt: new Date(record.createdAt),
      waits,
      ...(lookAt !== undefined && nextAt !== undefined && { nextAt: new Date(nextAt) }),
      ...(last && { last: { ...last, tick: new Date(last.tick), at: new Date(last.at) } }),
      ...(lastTask !== undefined && { lastTask: { id: lastTask, ...(state && { state }) } }),
      ...(paused && { paused: { ...paused, at: new Date(paused.at) } }),
    };
  }
}

function scheduleName(schedule: unknown): string {
  const called = name(schedule, 'The name of a schedule');
  if (called.length <= LONGEST_SCHEDULE_NAME) return called;
  throw new InvalidInputError(
    `The name of a schedule has at most ${LONGEST_SCHEDULE_NAME} characters, got ${called.length}.`,
  );
}

interface Contents {
  readonly definition: Definition;
  readonly progress: Progress;
}

/** @throws StoreError if they are damaged. */
function contents(record: ScheduleRecord): Contents {
  const read = readContents(record);
  if (read) return read;
  throw new StoreError(
    'store_corrupt',
    `The schedule '${record.name}' is damaged in the store. Set it again, or remove it.`,
  );
}

/** Undefined if they are damaged. */
function readContents({ definition, progress }: ScheduleRecord): Contents | undefined {
  try {
    return { definition: JSON.parse(definition) as Definition, progress: JSON.parse(progress) as Progress };
  } catch {
    return undefined;
  }
}

/** The progress after `set`. A damaged schedule begins anew. */
function progressFor(definition: Definition, times: Times, found: ScheduleRecord | undefined, now: number): Progress {
  const before = found && readContents(found);
  if (!before) return from(times.after(now), NEW_PROGRESS);
  const { cron, timeZone } = before.definition;
  if (cron === definition.cron && timeZone === definition.timeZone) return before.progress;
  return from(times.after(now), before.progress);
}

function sameOrigin(a: ScheduleOrigin, b: ScheduleOrigin): boolean {
  return a.by === b.by && (a.by === 'code' || (b.by === 'file' && a.file === b.file));
}
