import { InvalidInputError, TaskNotFoundError } from '../errors.ts';
import { type NameFilter, parseFilter, type TaskFilter } from '../filter.ts';
import { list, name, oneOf, refuseUnknown, wholeNumber } from '../options.ts';
import type { HistoryEntry, Store } from '../store/store.ts';
import { TASK_STATES, type TaskState } from '../task.ts';
import { checkTask } from '../worker/check-task.ts';
import type { AnyTask } from '../worker/define-task.ts';
import { idOf } from './operate.ts';
import { type Task, taskFrom } from './task-view.ts';

/** Which tasks `list` returns. With `filter`, the other members narrow it further. */
export interface ListOptions extends NameFilter {
  /** `'state:dead reason:http.* since:2h error:"timed out"'`, as on the command line. */
  readonly filter?: string;
  /** Only tasks in these states. */
  readonly states?: readonly TaskState[];
  /** Only tasks with a smaller id than this. */
  readonly before?: number;
  /** Default 100, at most 1,000. */
  readonly limit?: number;
}

/** The filters of `list` that take names. */
const FILTERS = ['types', 'queues', 'sources', 'reasons'] as const;

/** Reads tasks and their histories. */
export class TaskReader {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
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
    refuseUnknown(options, [...FILTERS, 'filter', 'states', 'before', 'limit'], 'list');
    const { filter: text, states, before, limit = 100, ...names } = options;
    if (states !== undefined) list(states, 'states', (state, what) => oneOf(state, TASK_STATES, what));
    for (const filter of FILTERS) if (options[filter] !== undefined) list(options[filter], filter, name);
    if (before !== undefined) wholeNumber(before, 'before', 1);
    const given = text === undefined ? {} : this.filterFrom(text);
    const both = [...FILTERS, 'states' as const].find((key) => options[key] !== undefined && given[key] !== undefined);
    if (both !== undefined) throw new InvalidInputError(`list has ${both} twice: in \`filter\` and in \`${both}\`.`);
    const filter = { ...given, ...names, ...(states && { states }), ...(before !== undefined && { before }) };
    return (await this.#store.records.list({ ...filter, limit: wholeNumber(limit, 'limit', 1, 1_000) })).map(taskFrom);
  }

  /** @throws InvalidFilterError. */
  filterFrom(filter: string): TaskFilter {
    return parseFilter(filter, new Date(this.#store.upkeep.now()));
  }

  async history(id: number): Promise<readonly HistoryEntry[]> {
    return this.#store.records.history(idOf(id));
  }
}
