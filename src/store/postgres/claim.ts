import { claimedTask, leaseOf } from '../claimed.ts';
import { factsAt, NOTHING_REMEMBERED, type Remembered } from '../facts.ts';
import { lastFailure } from '../last-error.ts';
import type { Claimed, SourceState } from '../store.ts';
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
  past: PastRow | null,
];

/** A task as `handed_now` writes it if it has no other values. */
type ShortRow = [id: number, class_: number, source: string, priority: number, submittedAt: number, payload: string];

/** The same of a task that failed before, and has nothing else to tell. */
type RetriedRow = [
  ...task: ShortRow,
  execution: number,
  first_started_at: number | null,
  charged: Remembered['charged'],
  error: string | null,
  failed_as: string | null,
];

/** A task of a claim. */
export type ClaimedRow = HandedRow | ShortRow | RetriedRow;

const isShort = (row: ClaimedRow): row is ShortRow => row.length === 6;
const isRetried = (row: ClaimedRow): row is RetriedRow => row.length === 11;

/** The row of a task that was leased now. */
function handed(row: ClaimedRow, now: number): HandedRow {
  if (isShort(row)) {
    const [id, class_, source, priority, submittedAt, payload] = row;
    return [id, 1, class_, source, priority, submittedAt, payload, 0, now, null, true, null, null, false, null];
  }
  if (!isRetried(row)) return row;
  const [id, class_, source, priority, submittedAt, payload, execution, firstStartedAt, charged, error, failedAs] = row;
  const past: PastRow = [0, firstStartedAt, charged, 0, null, null, 0, null, error, failedAs, null, null, null];
  return [id, execution, class_, source, priority, submittedAt, payload, 0, now, null, true, null, null, false, past];
}

/** The facts of a task with earlier executions. */
type PastRow = [
  round_base: number,
  first_started_at: number | null,
  charged: Remembered['charged'],
  in_a_row: number,
  deferred_since: number | null,
  recoveries: readonly number[] | null,
  lost: number,
  verdict: string | null,
  error: string | null,
  failed_as: string | null,
  /** Its deadline passed while it waited, so this is no execution. */
  expired: boolean | null,
  checkpoint: string | null,
  key_from: number | null,
];

function pastFrom(row: PastRow) {
  const [round_base, first_started_at, charged, in_a_row, deferred_since, recoveries, lost, verdict] = row;
  const remembered = { round_base, first_started_at, charged, in_a_row, deferred_since, recoveries, lost, verdict };
  const [error, failedAs, expired, checkpoint, keyFrom] = row.slice(8) as [
    string | null,
    string | null,
    boolean | null,
    string | null,
    number | null,
  ];
  return { remembered, error, failedAs, expired, checkpoint, keyFrom };
}

/** The tasks that were leased with a token, as the store returns them. */
export async function claimedFrom(
  classes: Classes,
  token: string,
  given: readonly ClaimedRow[],
  now: number,
): Promise<readonly Claimed[]> {
  const rows = given.map((row) => handed(row, now));
  if (rows.some(([, , id]) => !classes.knows(id))) await classes.learn();
  return rows.map((row) => {
    const [id, execution, class_, source, priority, submittedAt, payload, revision, since, deadline] = row;
    const [idempotent, key, policy, cancelRequested, pastRow] = row.slice(10) as [
      boolean | null,
      string | null,
      string | null,
      boolean,
      PastRow | null,
    ];
    const past = pastRow && pastFrom(pastRow);
    const startedAt = past?.expired ? null : since;
    const of = { execution, startedAt, deadline, idempotent: idempotent !== false, cancelRequested };
    const { type, queue, category, unreadable } = classes.of(class_);
    const claimed = claimedTask({
      lease: leaseOf(id, execution, token),
      revision,
      type,
      queue,
      source,
      priority,
      payload,
      submittedAt,
      facts: factsAt(now, past?.remembered ?? NOTHING_REMEMBERED, of),
    });
    if (unreadable.length > 0) claimed.unreadable = unreadable;
    if (idempotent === null) claimed.idempotenceUnsaid = true;
    if (category !== '') claimed.category = category;
    if (key !== null) claimed.key = key;
    if (policy !== null) claimed.policy = policy;
    if (deadline !== null) claimed.deadline = deadline;
    if (past !== null && past.error !== null) claimed.lastFailure = lastFailure(past.error, past.failedAs);
    if (past !== null && past.checkpoint !== null) claimed.checkpoint = past.checkpoint;
    if (past?.keyFrom) claimed.keyFrom = past.keyFrom;
    return claimed;
  });
}

/** A state as `state_of` writes it. */
export type StateRow = readonly [revision: number, memory: string, age: number];

export function sourceState([revision, memory, age]: StateRow): SourceState {
  return { revision, memory, age };
}

/** The result of `states_of_sources` for the tasks of a claim. */
export interface StatesOfSources {
  readonly states: readonly [source: string, ...state: StateRow, drained: boolean][] | null;
  readonly probes: readonly number[] | null;
}

/** These tasks with the states of their sources. */
export function withSources(tasks: readonly Claimed[], news: StatesOfSources | null | undefined): readonly Claimed[] {
  const { states, probes } = news ?? {};
  if (!states && !probes) return tasks;
  const bySource = new Map(
    states?.map(([source, revision, memory, age, drained]) => [
      source,
      { state: sourceState([revision, memory, age]), drained },
    ]),
  );
  return tasks.map((task) => {
    const known = bySource.get(task.source);
    return {
      ...task,
      ...(known && { sourceState: known.state }),
      ...(known?.drained && { drained: true as const }),
      ...(probes?.includes(task.lease.task) && { probe: true as const }),
    };
  });
}
