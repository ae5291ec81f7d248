import { InvalidInputError, TaskNotFoundError } from '../errors.ts';
import type { Facts } from '../failure/decide.ts';
import { UNTRIED } from '../failure/foresee.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import type { PolicyOptions, ReadOptions } from '../failure/policy.ts';
import { list, name, oneOf, refuseUnknown, wholeNumber } from '../options.ts';
import type { HistoryEntry, ListFilter, Store } from '../store/store.ts';
import { TASK_STATES } from '../task.ts';
import { type Explanation, explain } from '../views/explain.ts';
import { type ExplainedFailure, explainFailure } from '../views/explain-failure.ts';
import { type SourceSeen, seenSource, sourceFacts } from '../views/source-state.ts';
import { type Configuration, outcomeBy } from '../worker/configuration.ts';
import { type AnyTask, checkTask } from '../worker/define-task.ts';
import { explainedPolicyFor } from '../worker/policy-for.ts';
import { idOf } from './operate.ts';
import { type Task, taskFrom } from './task-view.ts';

/** A task, or a type, queue and source, whose policy is wanted. */
export interface PolicyQuestion {
  readonly type: string;
  readonly queue?: string;
  readonly source?: string;
  /** Its own policy options. */
  readonly retry?: ReadOptions | PolicyOptions;
}

export interface ListOptions extends Partial<Omit<ListFilter, 'limit'>> {
  /** Default 100, at most 1,000. */
  readonly limit?: number;
}

/** The filters of `list` that take names. */
const FILTERS = ['types', 'queues', 'sources', 'reasons'] as const;

/** Answers questions about tasks and their policies. */
export class Inspector {
  readonly #store: Store;
  readonly #tasks: ReadonlyMap<string, AnyTask>;
  readonly #configuration: Configuration;

  constructor(store: Store, tasks: ReadonlyMap<string, AnyTask>, configuration: Configuration) {
    this.#store = store;
    this.#tasks = tasks;
    this.#configuration = configuration;
  }

  async find(idOrKey: number | string, definition?: AnyTask): Promise<Task | undefined> {
    const { records } = this.#store;
    const type = definition === undefined ? undefined : checkTask(definition, 'find').type;
    if (typeof idOrKey === 'string') {
      const record = await records.find({ key: name(idOrKey, 'The key of a task'), type });
      return record && taskFrom(record);
    }
    if (typeof Object(idOrKey).id === 'number') {
      throw new InvalidInputError(
        `A task is found by its id or key, got an object. Pass its \`id\`: ${Object(idOrKey).id}.`,
      );
    }
    const record = await records.find(idOf(idOrKey));
    if (record && type !== undefined && type !== '*' && record.type !== type) {
      throw new InvalidInputError(
        `Task #${record.id} is of the type '${record.type}', not '${type}'. Name it with its own definition, or without one.`,
      );
    }
    return record && taskFrom(record);
  }

  async get(idOrKey: number | string, definition?: AnyTask): Promise<Task> {
    const task = await this.find(idOrKey, definition);
    if (!task) throw new TaskNotFoundError(idOrKey);
    return task;
  }

  async list(options: ListOptions = {}): Promise<readonly Task[]> {
    refuseUnknown(options, [...FILTERS, 'states', 'before', 'limit'], 'list');
    const { states, before, limit = 100 } = options;
    if (states !== undefined) list(states, 'states', (state, what) => oneOf(state, TASK_STATES, what));
    for (const filter of FILTERS) if (options[filter] !== undefined) list(options[filter], filter, name);
    if (before !== undefined) wholeNumber(before, 'before', 1);
    const filter = { ...options, limit: wholeNumber(limit, 'limit', 1, 1_000) };
    return (await this.#store.records.list(filter)).map(taskFrom);
  }

  async history(id: number): Promise<readonly HistoryEntry[]> {
    return this.#store.records.history(idOf(id));
  }

  async policyFor(task: PolicyQuestion): Promise<ExplainedPolicy> {
    const { type, retry } = task;
    name(type, 'type');
    const known = this.#tasks.get(type);
    const published = known ? undefined : await this.#store.records.published(type);
    const definition = known ?? (published === undefined ? this.#tasks.get('*') : undefined);
    const itsSource = typeof definition?.source === 'string' ? definition.source : type;
    const { queue = definition?.queue ?? 'default', source = itsSource } = task;
    const asked = { type, queue, source, ...(retry && { retry }) };
    return explainedPolicyFor(asked, definition, this.#configuration, published);
  }

  async explain(idOrKey: number | string): Promise<Explanation> {
    const task = await this.get(idOrKey);
    const history = await this.history(task.id);
    const { queue } = task;
    const source = await this.#sourceOf(task);
    const itsQueue = (await this.#store.records.queues()).find(({ name }) => name === queue);
    const redrive = await this.#store.redrives.ofTask(task.id);
    const now = this.#store.upkeep.now();
    return explain({
      now,
      task,
      history,
      facts: await this.#factsOf(task),
      policy: await this.policyFor(task),
      workers: await this.#store.records.workers(),
      ...(source && { source }),
      ...(itsQueue && { queue: itsQueue }),
      ...(redrive && { redrive }),
    });
  }

  async explainError(thrown: unknown, subject: number | string | PolicyQuestion): Promise<ExplainedFailure> {
    const now = this.#store.upkeep.now();
    const task = typeof subject === 'object' ? undefined : await this.get(subject);
    const question = task ?? (subject as PolicyQuestion);
    const facts = task ? { ...(await this.#factsOf(task)), source: sourceFacts(await this.#sourceOf(task)) } : UNTRIED;
    const outcome = outcomeBy(this.#configuration)(thrown, { now, type: question.type });
    return explainFailure(facts, outcome, await this.policyFor(question));
  }

  /** The source of a task, if it is not in its normal state. */
  async #sourceOf({ source }: Task): Promise<SourceSeen | undefined> {
    const record = (await this.#store.records.sources()).find(({ name }) => name === source);
    return record && seenSource(record);
  }

  /** The facts with which its next failure would be decided. A task that was removed meanwhile has those of a new task. */
  async #factsOf({ id }: Task): Promise<Facts> {
    return (await this.#store.records.facts(id)) ?? UNTRIED;
  }
}
