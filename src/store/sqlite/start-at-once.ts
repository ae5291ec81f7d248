import type { Claim, Claimed, ClaimRequest, NewTask, Receipt } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import { answer, type Claiming } from './claim.ts';
import type { Sql } from './driver.ts';
import type { Enqueuing } from './enqueue.ts';
import { UNTOUCHED } from './facts.ts';
import { mustBeLegal } from './places.ts';
import { isLimited } from './queue-limits.ts';
import { newToken } from './token.ts';
import type { Walk } from './walk.ts';

/** What the store looks like before the tasks are recorded. */
type Look = [isKnown: 1 | null, isReady: 1 | null, due: number | null, deadline: number | null];

const LOOK = `SELECT (SELECT 1 FROM hf_workers WHERE id = ? AND gone = 0), (SELECT 1 FROM hf_active LIMIT 1),
  (SELECT min(run_at) FROM hf_scheduled), (SELECT min(deadline) FROM hf_deadlines)`;

interface Parts {
  readonly sql: Sql;
  readonly catalogue: Catalogue;
  readonly walk: Walk;
  readonly enqueuing: Enqueuing;
}

/**
 * Tasks that an idle worker of this process starts in the transaction that records them: while nothing else is ready, they are written
 * as running, and are never put into a lane. Everything unusual is left to the usual enqueue and claim.
 */
export class StartAtOnce {
  readonly #parts: Parts;
  readonly #claiming: Claiming;
  /** The answer for the claim that follows in the transaction. */
  #given: { readonly request: ClaimRequest; readonly claim: Claim } | undefined;

  constructor(parts: Parts, claiming: Claiming) {
    this.#parts = parts;
    this.#claiming = claiming;
  }

  /** Records and leases these tasks for the claim that comes next in the transaction. Undefined if they need the usual way. */
  enqueue(tasks: readonly NewTask[], request: ClaimRequest | undefined, now: number): readonly Receipt[] | undefined {
    this.#given = undefined;
    if (!request || request.only || tasks.length > request.limit || this.#parts.catalogue.restrictions)
      return undefined;
    const classes = tasks.map((task) => (isPlain(task, now) ? this.#classOf(task, request) : undefined));
    if (classes.includes(undefined)) return undefined;
    const { sql, enqueuing } = this.#parts;
    const [[isKnown, isReady, due, deadline]] = sql.rows<Look>(LOOK, request.worker) as [Look];
    const next = { due: due ?? NEVER, deadline: deadline ?? NEVER, opening: NEVER };
    if (!isKnown || isReady || next.due <= now || next.deadline <= now) return undefined;

    mustBeLegal('new', 'ready');
    mustBeLegal('ready', 'running');
    const ids = enqueuing.recordLeased(tasks, now);
    const token = newToken();
    const rows = ids.flatMap((id) => [id, request.worker, 1, token, now]);
    sql.insertAll('hf_running (id, worker, execution, token, started_at)', 5, rows);
    const claimed = tasks.map((task, i) => this.#claimed(ids[i] as number, task, classes[i] as number, token, now));
    this.#given = { request, claim: answer(claimed, next, now) };
    return ids.map((id) => ({ id, created: true }));
  }

  /** The answer to this claim, if tasks were started for it in this transaction. */
  given(request: ClaimRequest): Claim | undefined {
    return this.#given?.request === request ? this.#given.claim : undefined;
  }

  /** The class of a task, if a claim may take it now and nothing has to be counted or put in turn for it. */
  #classOf({ queue, type, category }: NewTask, request: ClaimRequest): number | undefined {
    const { catalogue, walk } = this.#parts;
    const id = catalogue.classIdOf(queue, type, category, undefined);
    const itsQueue = catalogue.queueOfClass(id);
    const isOrdinary = itsQueue.fair === 0 && itsQueue.ordering !== 'weighted_random' && !isLimited(itsQueue);
    return isOrdinary && walk.admits(request, id) ? id : undefined;
  }

  #claimed(id: number, task: NewTask, class_: number, token: string, now: number): Claimed {
    const { source, priority, payload, policy = null, submittedAt = now } = task;
    const row = {
      id,
      class: class_,
      source,
      priority,
      key: null,
      policy,
      submitted_at: submittedAt,
      deadline: null,
      idempotent: task.idempotent ? 1 : 0,
      unique_while: null,
      payload,
    };
    const lease = { execution: 1, token, revision: 0, started_at: now, cancel: 0 };
    return this.#claiming.claimed(row, lease, UNTOUCHED, now);
  }
}

const NEVER = Number.POSITIVE_INFINITY;

function isPlain({ key, unique, deadline, needs, groupOf, idempotent, delay, dueAt }: NewTask, now: number): boolean {
  if (key !== undefined || unique || deadline !== undefined || needs || groupOf !== undefined) return false;
  return idempotent !== undefined && (dueAt ?? now + delay) <= now;
}
