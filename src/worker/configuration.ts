import type { Classifier } from '../failure/classify/rules.ts';
import { type Said, UNSAID } from '../failure/layers.ts';
import type { Limits } from '../pace.ts';
import type { FileSchedules } from '../schedule/definition.ts';
import type { QueueSettings } from '../store/store.ts';
import type { WorkerOptions } from './worker-options.ts';

/** The properties of a task by which policies are found. */
export interface TaskNames {
  readonly type: string;
  readonly queue: string;
  readonly source: string;
}

/** A configuration outside of the code, which may change while the program runs. `Registry` of `holdfast/config` is one. */
export interface Configuration {
  /** The policy layers of such tasks. It is the same object until something changes. */
  said(task: TaskNames): Said;
  /** The types for which its file has a policy. */
  readonly types?: readonly string[];
  /** The rules by which this application classifies errors, if it has any. */
  readonly classifier: Classifier | undefined;
  /** How queues are set up. */
  readonly queues: ReadonlyMap<string, Partial<QueueSettings> & Limits>;
  /** The limits of sources, by name. */
  readonly limits: ReadonlyMap<string, Limits>;
  /** The schedules of its file; undefined if it has no file. */
  readonly schedules: FileSchedules | undefined;
  /** The defaults of workers. */
  readonly worker: WorkerOptions;
  /** Calls after each change. Returns how to stop that. */
  onChange(listener: () => void): () => void;
}

/** Used if there is no configuration. */
export const UNCONFIGURED: Configuration = {
  said: () => UNSAID,
  classifier: undefined,
  queues: new Map(),
  limits: new Map(),
  schedules: undefined,
  worker: {},
  onChange: () => () => {},
};
