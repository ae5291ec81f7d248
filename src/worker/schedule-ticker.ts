import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { parseCron } from '../schedule/cron.ts';
import { type Definition, taskAt } from '../schedule/definition.ts';
import { nextTurn, type Progress } from '../schedule/turn.ts';
import type { ScheduleRecord, ScheduleStep, ScheduleStore } from '../store/schedules.ts';
import type { ScheduleTurned } from '../telemetry/events.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import { beginSending } from './traces.ts';

interface Options {
  readonly store: ScheduleStore;
  readonly clock: Clock;
  readonly now: () => number;
  readonly telemetry: Telemetry | undefined;
  readonly keyOf: (task: number) => Promise<string | undefined>;
  readonly onTurn: (turned: ScheduleTurned) => void;
  readonly onError: (schedule: string, error: unknown) => void;
  /** Called when a schedule is due. */
  readonly onDue: () => void;
}

/** Enqueues the tasks of schedules at their times, and sets a timer for the next one. Every process does this; each step counts once. */
export class ScheduleTicker {
  readonly #options: Options;
  #clearTimer = () => {};

  constructor(options: Options) {
    this.#options = options;
  }

  /** Takes the steps of all schedules that are due. */
  async look(): Promise<void> {
    const failed = new Set<string>();
    for (;;) {
      const { schedules, nextIn } = await this.#options.store.due();
      const left = schedules.filter(({ name }) => !failed.has(name));
      for (const schedule of left) {
        try {
          await this.#turn(schedule);
        } catch (error) {
          failed.add(schedule.name);
          this.#options.onError(schedule.name, error);
        }
      }
      if (left.length === 0) return this.#wakeIn(nextIn);
    }
  }

  /** Clears the timer. */
  rest(): void {
    this.#clearTimer();
  }

  #wakeIn(time: Milliseconds | undefined): void {
    this.#clearTimer();
    if (time === undefined) return;
    this.#clearTimer = this.#options.clock.after(time, this.#options.onDue);
  }

  async #turn({ name, revision, definition: text, progress: kept, lookAt }: ScheduleRecord): Promise<void> {
    const { store, now, telemetry, keyOf, onTurn } = this.#options;
    const definition = JSON.parse(text) as Definition;
    const before = JSON.parse(kept) as Progress;
    const times = parseCron(definition);
    const progress = lookAt === 0 ? from(times.after(now()), before) : before;
    const turn = nextTurn(times, definition, progress, now());
    const planned = turn.ticks.map((tick) => taskAt(name, definition, tick));
    const { tasks, ended } = beginSending(telemetry, planned, name);
    const taking = store.turn({
      name,
      revision,
      tasks,
      step: stored(turn.progress, turn.lookAt),
      ...(turn.otherwise && { otherwise: stored(turn.otherwise.progress, turn.otherwise.lookAt) }),
    });
    taking.then((made) => made?.some(({ created }) => created) && ended(), ended);
    const receipts = await taking;
    if (receipts === undefined) return;
    const taken = receipts.find(({ created }) => !created);
    if (turn.otherwise?.progress.waits && taken && (await keyOf(taken.id)) === tasks[0]?.key) {
      // This time has a task already, so there is nothing to wait for.
      const step = stored({ ...turn.progress, enqueued: before.enqueued }, turn.lookAt);
      await store.turn({ name, revision: revision + 1, tasks: [], step });
      return;
    }
    const isRecorded = receipts.every(({ created }) => created);
    const { last, skipped, missed } = !isRecorded && turn.otherwise ? turn.otherwise.progress : turn.progress;
    if (!last || last.tick === before.last?.tick) return;
    onTurn({
      schedule: name,
      type: definition.task.type,
      tick: last.tick,
      was: last.was,
      tasks: receipts.flatMap(({ id, created }) => (created ? [id] : [])),
      passedOver: skipped - before.skipped + missed - before.missed - (last.was === 'enqueued' ? 0 : 1),
    });
  }
}

/** The same progress with another next time. */
export function from(nextAt: number | undefined, { nextAt: _, waits: __, ...progress }: Progress): Progress {
  return { ...progress, ...(nextAt !== undefined && { nextAt }) };
}

function stored(progress: Progress, lookAt: number | undefined): ScheduleStep {
  return { progress: JSON.stringify(progress), lookAt };
}
