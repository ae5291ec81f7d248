import type { Facts } from '../failure/decide.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import type { PolicyOptions, ReadOptions } from '../failure/policy.ts';
import { UNTRIED } from '../failure/untried.ts';
import { moment, name } from '../options.ts';
import type { Store } from '../store/store.ts';
import type { Explanation } from '../views/explain.ts';
import type { PastExplanation } from '../views/explain-at.ts';
import type { ExplainedFailure } from '../views/explain-failure.ts';
import type { AssumedPolicy } from '../views/explain-if.ts';
import { type SourceSeen, seenSource, sourceFacts } from '../views/source-state.ts';
import type { Configuration } from '../worker/configuration.ts';
import type { AnyTask } from '../worker/define-task.ts';
import { explainedPolicyFor } from '../worker/policy-for.ts';
import { TaskReader } from './task-reader.ts';
import type { Task } from './task-view.ts';

/** A task, or a type, queue and source, whose policy is wanted. */
export interface PolicyQuestion {
  readonly type: string;
  readonly queue?: string;
  readonly source?: string;
  /** Its own policy options. */
  readonly retry?: ReadOptions | PolicyOptions;
}

/**
 * Answers questions about policies: which applies to a task, why the task is in its state, and what comes next. What explains is loaded
 * when it is asked, because a list of tasks asks only for policies.
 */
export class Inspector {
  readonly #store: Store;
  readonly #reader: TaskReader;
  readonly #tasks: ReadonlyMap<string, AnyTask>;
  readonly #configuration: Configuration;

  constructor(store: Store, tasks: ReadonlyMap<string, AnyTask>, configuration: Configuration) {
    this.#store = store;
    this.#reader = new TaskReader(store);
    this.#tasks = tasks;
    this.#configuration = configuration;
  }

  async policyFor(task: PolicyQuestion, assumed?: ReadOptions | PolicyOptions): Promise<ExplainedPolicy> {
    const { type, retry } = task;
    name(type, 'type');
    const known = this.#tasks.get(type);
    const published = known ? undefined : await this.#store.records.published(type);
    const definition = known ?? (published === undefined ? this.#tasks.get('*') : undefined);
    const itsSource = typeof definition?.source === 'string' ? definition.source : type;
    const { queue = definition?.queue ?? 'default', source = itsSource } = task;
    const asked = { type, queue, source, ...(retry && { retry }) };
    return explainedPolicyFor(asked, definition, this.#configuration, published, assumed);
  }

  async explain(idOrKey: number | string): Promise<Explanation> {
    const { explain } = await import('../views/explain.ts');
    const task = await this.#reader.get(idOrKey);
    const history = await this.#reader.history(task.id);
    const { queue } = task;
    const source = await this.#sourceOf(task);
    const itsQueue = (await this.#store.records.queues()).find(({ name }) => name === queue);
    const redrive = await this.#store.redrives.ofTask(task.id);
    const [lastTaker] = await this.#store.records.lastTakers([task.type]);
    const now = this.#store.upkeep.now();
    return explain({
      now,
      task,
      history,
      facts: await this.#factsOf(task),
      policy: await this.policyFor(task),
      workers: await this.#store.records.workers(),
      ...(lastTaker && { lastTaker }),
      ...(source && { source }),
      ...(itsQueue && { queue: itsQueue }),
      ...(redrive && { redrive }),
    });
  }

  async explainAt(idOrKey: number | string, at: Date): Promise<PastExplanation> {
    const { explainAt } = await import('../views/explain-at.ts');
    const task = await this.#reader.get(idOrKey);
    const history = await this.#reader.history(task.id);
    return explainAt({ now: this.#store.upkeep.now(), task, history }, moment(at, 'at').getTime());
  }

  async explainIf(idOrKey: number | string, assumed: PolicyOptions | ReadOptions): Promise<AssumedPolicy> {
    const { explainIf } = await import('../views/explain-if.ts');
    const task = await this.#reader.get(idOrKey);
    const history = await this.#reader.history(task.id);
    const facts = await this.#factsOf(task);
    const policy = await this.policyFor(task, assumed);
    return explainIf({ now: this.#store.upkeep.now(), task, history, facts, policy });
  }

  async explainError(thrown: unknown, subject: number | string | PolicyQuestion): Promise<ExplainedFailure> {
    const [{ explainFailure }, { outcomeBy }, { adaptedReason, RetryCounts }] = await Promise.all([
      import('../views/explain-failure.ts'),
      import('../worker/outcome-by.ts'),
      import('../worker/known-retries.ts'),
    ]);
    const now = this.#store.upkeep.now();
    const task = typeof subject === 'object' ? undefined : await this.#reader.get(subject);
    const question = task ?? (subject as PolicyQuestion);
    const facts = task ? { ...(await this.#factsOf(task)), source: sourceFacts(await this.#sourceOf(task)) } : UNTRIED;
    const outcome = outcomeBy(this.#configuration)(thrown, { now, type: question.type });
    const policy = await this.policyFor(question);
    const reason = adaptedReason(outcome, policy.policy);
    if (reason === undefined) return explainFailure(facts, outcome, policy);
    const { type, source = type } = question;
    const observed = (await RetryCounts.read(this.#store)).of({ type, source }, reason);
    return explainFailure({ ...facts, observed }, outcome, policy);
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
