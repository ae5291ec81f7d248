import { outcomeOf } from '../failure/classify/classify.ts';
import type { Classifier } from '../failure/classify/rules.ts';
import { type Said, UNSAID } from '../failure/layers.ts';
import type { Limits } from '../pace.ts';
import type { QueueSettings } from '../store/store.ts';
import type { WorkerOptions } from './worker-options.ts';

/** What a task is called, as far as policies ask. */
export interface TaskNames {
  readonly type: string;
  readonly queue: string;
  readonly source: string;
}

/** What is said today beside the code, and may be said otherwise tomorrow. `Registry` of `holdfast/config` is one. */
export interface Configuration {
  /** What is said of the policies of such tasks. The same object for as long as nothing changes. */
  said(task: TaskNames): Said;
  /** The application's rules about errors, if there are any. */
  readonly classifier: Classifier | undefined;
  /** How queues are set up. */
  readonly queues: ReadonlyMap<string, Partial<QueueSettings> & Limits>;
  /** The limits of sources, by name. */
  readonly limits: ReadonlyMap<string, Limits>;
  /** For workers that are not told otherwise. */
  readonly worker: WorkerOptions;
  /** Calls after each change. Returns how to stop that. */
  onChange(listener: () => void): () => void;
}

/** Where there is none. */
export const UNCONFIGURED: Configuration = {
  said: () => UNSAID,
  classifier: undefined,
  queues: new Map(),
  limits: new Map(),
  worker: {},
  onChange: () => () => {},
};

/** What a thrown value is, by the rules that there are when it is thrown. */
export function outcomeBy(configuration: Configuration): Classifier['outcomeOf'] {
  return (thrown, context) => (configuration.classifier?.outcomeOf ?? outcomeOf)(thrown, context);
}
