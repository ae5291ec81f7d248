import type { ChargedCount, Facts } from '../../failure/decide.ts';
import type { Writable } from '../../writable.ts';
import type { Claimed } from '../store.ts';
import type { Classes } from './classes.ts';

/** A task as `handed` writes it. */
export type HandedRow = [
  id: number,
  execution: number,
  class_: number,
  source: string,
  priority: number,
  submittedAt: number,
  payload: string,
  revision: number,
  since: number,
  deadline: number | null,
  idempotent: boolean | null,
  key: string | null,
  policy: string | null,
  cancel: boolean,
  past: Past | null,
];

/** What is remembered of a task that did not simply succeed: times, and the counts of the present round. */
interface Past {
  readonly round_base: number;
  readonly first_started_at: number | null;
  readonly charged: readonly ChargedCount[] | null;
  readonly in_a_row: number;
  readonly deferred_since: number | null;
  readonly recoveries: readonly number[] | null;
  /** How often in a row. */
  readonly lost: number;
  readonly error: string | null;
  /** Its deadline passed while it waited, so this is no execution. */
  readonly expired: boolean | null;
  readonly checkpoint: string | null;
}

/** What leaves the store of tasks that it handed out under a token. */
export async function claimedFrom(
  classes: Classes,
  token: string,
  rows: readonly HandedRow[],
  now: number,
): Promise<readonly Claimed[]> {
  if (rows.some(([, , id]) => !classes.knows(id))) await classes.learn();
  return rows.map((row) => {
    const [id, execution, class_, source, priority, submittedAt, payload, revision, , deadline] = row;
    const [idempotent, key, policy, , past] = row.slice(10) as [
      boolean | null,
      string | null,
      string | null,
      boolean,
      Past | null,
    ];
    const { type, queue, category } = classes.of(class_);
    const claimed: Writable<Claimed> = {
      lease: { task: id, execution, token },
      revision,
      type,
      queue,
      source,
      priority,
      payload,
      submittedAt,
      facts: factsOf(row, now),
    };
    if (idempotent === null) claimed.idempotenceUnsaid = true;
    if (category !== '') claimed.category = category;
    if (key !== null) claimed.key = key;
    if (policy !== null) claimed.policy = policy;
    if (deadline !== null) claimed.deadline = deadline;
    if (past !== null && past.error !== null) claimed.lastError = past.error;
    if (past !== null && past.checkpoint !== null) claimed.checkpoint = past.checkpoint;
    return claimed;
  });
}

const UNTOUCHED: Past = {
  round_base: 0,
  first_started_at: null,
  charged: null,
  in_a_row: 0,
  deferred_since: null,
  recoveries: null,
  lost: 0,
  error: null,
  expired: null,
  checkpoint: null,
};

const NONE: readonly never[] = [];

/** Times become durations: what leaves the store carries no clock of its own. */
function factsOf(row: HandedRow, now: number): Facts {
  const [, execution, , , , , , , since, deadline, idempotent, , , cancel, remembered] = row;
  const past = remembered ?? UNTOUCHED;
  const started = past.first_started_at ?? (past.expired ? now : since);
  const facts = {
    executions: execution - past.round_base,
    charged: past.charged ?? NONE,
    deferralsInARow: past.in_a_row,
    deferredForMs: past.deferred_since === null ? 0 : now - past.deferred_since,
    recoveriesAgoMs: past.recoveries?.map((at) => now - at) ?? NONE,
    lostInARow: past.lost,
    idempotent: idempotent !== false,
    cancelRequested: cancel,
    sinceFirstStartMs: now - started,
  };
  return deadline === null ? facts : { ...facts, untilDeadlineMs: deadline - now };
}
