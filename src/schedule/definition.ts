import type { NewTask } from '../store/store.ts';
import type { Json } from '../task.ts';
import type { Timing } from './cron.ts';
import type { Answers } from './turn.ts';

/** A schedule as a configuration file has it. */
export interface FileSchedule extends Partial<Answers> {
  readonly type: string;
  readonly input?: Json;
  readonly cron: string;
  readonly timeZone?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly source?: string;
  readonly category?: string;
  readonly idempotent?: boolean;
}

/** The schedules of a configuration file, by name. */
export interface FileSchedules {
  readonly file: string;
  readonly all: ReadonlyMap<string, FileSchedule>;
}

/** A schedule as it is stored: when it fires, and which task it enqueues. */
export interface Definition extends Timing, Answers {
  readonly task: Template;
}

/** What all tasks of a schedule have in common. */
type Template = Pick<
  NewTask,
  'type' | 'queue' | 'source' | 'priority' | 'category' | 'needs' | 'payload' | 'idempotent' | 'policy'
>;

/** The task of a schedule for one of its times. A time has a key, so that it never gets two tasks. */
export function taskAt(name: string, definition: Definition, tick: number): NewTask {
  return { ...taskNow(name, definition), dueAt: tick, key: `schedule:${name}:${new Date(tick).toISOString()}` };
}

/** A task of a schedule that somebody enqueues now. Only one of them is unfinished at a time, unless they may overlap. */
export function taskNow(name: string, { task, overlap }: Definition): NewTask {
  if (overlap === 'allow') return { ...task, delay: 0 };
  const onConflict = overlap === 'skip' ? 'replace' : 'ignore';
  return { ...task, delay: 0, unique: { key: `schedule:${name}`, while: 'unfinished', onConflict } };
}

/** The longest name of a schedule: its keys, which have the name in them, are names too. */
export const LONGEST_SCHEDULE_NAME = 200;
