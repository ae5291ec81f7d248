import type { Charge, Charged, Decision, Facts } from '../../failure/decide.ts';
import { readStored } from '../../stored-json.ts';
import { factsAt, NOTHING_REMEMBERED, type Remembered } from '../facts.ts';
import { failedAs, lastError } from '../last-error.ts';
import { reasonOf } from '../settlement.ts';
import type { Report } from '../store.ts';
import type { Sql } from './driver.ts';
import { among } from './ids.ts';

/** The facts of a task with earlier executions. They contain times; the counts are of the present round. */
export interface FactsRow {
  readonly executions: number;
  readonly round_base: number;
  readonly first_started_at: number | null;
  readonly charged: string;
  readonly deferrals: number;
  readonly in_a_row: number;
  readonly deferred_since: number | null;
  readonly recoveries: string;
  /** How many times in a row it was lost. */
  readonly suspect: number;
  readonly run_at: number | null;
  readonly reason: string | null;
  readonly error: string | null;
  /** When the handler was last called in this round. */
  readonly last_started_at: number | null;
  /** 1 if its next start takes a token of its source's budget. */
  readonly needs_token: number;
  /**
   * While it waits to see whether its source is down: the reason with which it ends otherwise. Null if it does not wait for this.
   */
  readonly verdict: string | null;
  /** The kind and reason of the last failure; its message is `error`. */
  readonly failed_as: string | null;
  /** How many executions it had when it got a new idempotency key in this round; 0 if it did not. */
  readonly key_from: number;
}

/** The facts of a task without a row. */
export const UNTOUCHED: FactsRow = {
  executions: 0,
  round_base: 0,
  first_started_at: null,
  charged: '[]',
  deferrals: 0,
  in_a_row: 0,
  deferred_since: null,
  recoveries: '[]',
  suspect: 0,
  run_at: null,
  reason: null,
  error: null,
  last_started_at: null,
  needs_token: 0,
  verdict: null,
  failed_as: null,
  key_from: 0,
};

export class FactsTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The facts of a task, or the object `UNTOUCHED` itself. */
  of(id: number): FactsRow {
    return this.#sql.get<FactsRow>('SELECT * FROM hf_facts WHERE task = ?', id) ?? UNTOUCHED;
  }

  /** The same for many. Tasks without facts are missing. */
  ofAll(ids: readonly number[]): ReadonlyMap<number, FactsRow> {
    const byId = new Map<number, FactsRow>();
    const { sql, values } = among(ids);
    let others = false;
    // Most tasks that failed were never deferred or lost. Of those, only the columns are read that may differ.
    for (const row of this.#sql.rows<CommonColumns>(`SELECT ${COMMON} FROM hf_facts WHERE task ${sql}`, ...values)) {
      if (row[8] === 1) byId.set(row[0], commonRowFrom(row));
      else others = true;
    }
    if (!others) return byId;
    for (const row of this.#sql.rows<FactsColumns>(
      `SELECT ${COLUMNS} FROM hf_facts WHERE task ${sql} AND NOT (${IS_COMMON})`,
      ...values,
    )) {
      byId.set(row[0], rowFrom(row));
    }
    return byId;
  }

  write(id: number, facts: FactsRow): void {
    this.writeAll([[id, facts]]);
  }

  writeAll(all: readonly (readonly [id: number, facts: FactsRow])[]): void {
    const values: unknown[] = [];
    for (const [id, facts] of all) {
      values.push(
        id,
        facts.executions,
        facts.round_base,
        facts.first_started_at,
        facts.charged,
        facts.deferrals,
        facts.in_a_row,
        facts.deferred_since,
        facts.recoveries,
        facts.suspect,
        facts.run_at,
        facts.reason,
        facts.error,
        facts.last_started_at,
        facts.needs_token,
        facts.verdict,
        facts.failed_as,
        facts.key_from,
      );
    }
    this.#sql.insertAll(`hf_facts (${COLUMNS})`, FACTS.length, values, UNLESS_NEW);
  }
}

/** A row as an array, in the order of `FACTS`. */
type FactsColumns = [
  task: number,
  executions: number,
  roundBase: number,
  firstStartedAt: number | null,
  charged: string,
  deferrals: number,
  inARow: number,
  deferredSince: number | null,
  recoveries: string,
  suspect: number,
  runAt: number | null,
  reason: string | null,
  error: string | null,
  lastStartedAt: number | null,
  needsToken: number,
  verdict: string | null,
  failedAs: string | null,
  keyFrom: number,
];

function rowFrom(row: FactsColumns): FactsRow {
  return {
    executions: row[1],
    round_base: row[2],
    first_started_at: row[3],
    charged: row[4],
    deferrals: row[5],
    in_a_row: row[6],
    deferred_since: row[7],
    recoveries: row[8],
    suspect: row[9],
    run_at: row[10],
    reason: row[11],
    error: row[12],
    last_started_at: row[13],
    needs_token: row[14],
    verdict: row[15],
    failed_as: row[16],
    key_from: row[17],
  };
}

/** The columns of a row that is otherwise like `UNTOUCHED`, in the order of `COMMON`. */
type CommonColumns = [
  task: number,
  executions: number,
  firstStartedAt: number | null,
  charged: string,
  runAt: number | null,
  reason: string | null,
  error: string | null,
  lastStartedAt: number | null,
  isCommon: 0 | 1,
  failedAs: string | null,
];

function commonRowFrom(row: CommonColumns): FactsRow {
  return {
    executions: row[1],
    round_base: 0,
    first_started_at: row[2],
    charged: row[3],
    deferrals: 0,
    in_a_row: 0,
    deferred_since: null,
    recoveries: UNTOUCHED.recoveries,
    suspect: 0,
    run_at: row[4],
    reason: row[5],
    error: row[6],
    last_started_at: row[7],
    needs_token: 0,
    verdict: null,
    failed_as: row[9],
    key_from: 0,
  };
}

/** Whether the other columns of a row are those of `UNTOUCHED`. */
const IS_COMMON = `round_base = 0 AND deferrals = 0 AND in_a_row = 0 AND deferred_since IS NULL AND recoveries = '[]'
  AND suspect = 0 AND needs_token = 0 AND verdict IS NULL AND key_from = 0`;

const COMMON = `task, executions, first_started_at, charged, run_at, reason, error, last_started_at, ${IS_COMMON}, failed_as`;

const FACTS = [
  'task',
  'executions',
  'round_base',
  'first_started_at',
  'charged',
  'deferrals',
  'in_a_row',
  'deferred_since',
  'recoveries',
  'suspect',
  'run_at',
  'reason',
  'error',
  'last_started_at',
  'needs_token',
  'verdict',
  'failed_as',
  'key_from',
] as const;

const COLUMNS = FACTS.join();

const UNLESS_NEW = `ON CONFLICT (task) DO UPDATE SET ${FACTS.slice(1)
  .map((column) => `${column} = excluded.${column}`)
  .join()}`;

/** What all tasks share whose first execution starts now. */
const FIRST = factsOfFirst(true);
const FIRST_OF_NOT_IDEMPOTENT = factsOfFirst(false);

function factsOfFirst(idempotent: boolean): Facts {
  const first = { execution: 1, startedAt: 0, deadline: null, idempotent, cancelRequested: false };
  return factsAt(0, NOTHING_REMEMBERED, first);
}

/** The facts of an execution: the present one, or the next one if `started_at` is null. */
export function factsOf(
  now: number,
  facts: FactsRow,
  task: { readonly idempotent: number | null; readonly deadline: number | null },
  lease: { readonly execution: number; readonly started_at: number | null; readonly cancel: number },
  unreadable: string[] = [],
): Facts {
  const startsFirst = facts === UNTOUCHED && lease.execution === 1 && lease.started_at === now && lease.cancel === 0;
  if (startsFirst && task.deadline === null) return task.idempotent === 0 ? FIRST_OF_NOT_IDEMPOTENT : FIRST;
  return factsAt(now, remembered(facts, unreadable), {
    execution: lease.execution,
    // A task whose deadline passed while it waited has a lease and no execution.
    startedAt: lease.execution > facts.executions ? lease.started_at : null,
    deadline: task.deadline,
    idempotent: task.idempotent !== 0,
    cancelRequested: lease.cancel === 1,
  });
}

function remembered(facts: FactsRow, unreadable: string[]): Remembered {
  if (facts === UNTOUCHED) return NOTHING_REMEMBERED;
  const charged = chargedFrom(facts.charged, unreadable);
  // Not a copy of all columns, which is slow.
  return {
    round_base: facts.round_base,
    first_started_at: facts.first_started_at,
    charged,
    in_a_row: facts.in_a_row,
    deferred_since: facts.deferred_since,
    recoveries: recoveriesOf(facts, unreadable),
    lost: facts.suspect,
    verdict: facts.verdict,
  };
}

/** The facts after a decision: with its charge. */
export function afterDecision(
  facts: FactsRow,
  running: { readonly execution: number; readonly started_at: number },
  decision: Decision,
  report: Report,
  now: number,
): FactsRow {
  const charge = 'charge' in decision ? decision.charge : ({ to: 'nobody' } as const);
  const row = charge.to === 'task' ? { in_a_row: 0, deferred_since: null } : facts;
  const deferred = charge.to === 'deferrals' ? 1 : 0;
  const isExecution = running.execution > facts.executions;
  return {
    executions: running.execution,
    round_base: facts.round_base,
    first_started_at: report.unbegun ? facts.first_started_at : firstStart(facts, running),
    charged: withCharge(facts.charged, charge, decision.next === 'scheduled' ? decision.after : 0),
    deferrals: facts.deferrals + deferred,
    in_a_row: row.in_a_row + deferred,
    deferred_since: deferred === 1 ? (row.deferred_since ?? now) : row.deferred_since,
    recoveries: charge.to === 'recoveries' ? JSON.stringify([...recoveriesOf(facts, []), now]) : facts.recoveries,
    suspect: decision.next === 'scheduled' ? decision.lostInARow : 0,
    run_at: decision.next === 'scheduled' ? now + decision.after : facts.run_at,
    reason: reasonOf(decision),
    error: report.failure ? lastError(report.failure.message) : facts.error,
    last_started_at: report.unbegun || !isExecution ? facts.last_started_at : running.started_at,
    needs_token: decision.next === 'scheduled' && decision.needsToken ? 1 : 0,
    verdict: decision.next === 'scheduled' ? (decision.verdict ?? null) : null,
    failed_as: report.failure ? failedAs(report.failure) : facts.failed_as,
    key_from: facts.key_from,
  };
}

/** The facts of a new round: all counts begin at zero. */
export function newRound(facts: FactsRow, executions: number): FactsRow {
  const all = Math.max(facts.executions, executions);
  return { ...UNTOUCHED, executions: all, round_base: all };
}

/** When the first execution of this round started here; null if there was none and a deadline passed. */
function firstStart(
  facts: FactsRow,
  { execution, started_at }: { readonly execution: number; readonly started_at: number },
): number | null {
  return facts.first_started_at ?? (execution > facts.executions ? started_at : null);
}

function recoveriesOf({ recoveries }: FactsRow, unreadable: string[]): readonly number[] {
  if (recoveries === UNTOUCHED.recoveries) return [];
  return readStored<number[]>(recoveries, 'recoveries', unreadable, []);
}

/** How many different texts are kept. If there are more, the process starts again with none. */
const MOST_READ = 1_000;
const alreadyRead = new Map<string, readonly Charged[]>();

/** Reads counts. Most tasks that failed have the same ones, so each text is read once. */
function chargedFrom(json: string, unreadable: string[]): readonly Charged[] {
  const known = alreadyRead.get(json);
  if (known) return known;
  const before = unreadable.length;
  const charged = readStored<readonly Charged[]>(json, 'charged', unreadable, []);
  if (unreadable.length > before) return charged;
  if (alreadyRead.size >= MOST_READ) alreadyRead.clear();
  alreadyRead.set(json, charged);
  return charged;
}

/** The charges after one of this reason, and the wait after it, was refunded. */
export function withoutCharge(json: string, reason: string, kind: Charged['kind'], delay: number): string {
  return JSON.stringify(
    chargedFrom(json, []).flatMap((one) => {
      if (one.reason !== reason || one.kind !== kind) return [one];
      return one.count > 1 ? [changed(one, -1, -delay)] : [];
    }),
  );
}

/** The charges after one more, if it is the task's, and the wait after it. */
function withCharge(json: string, charge: Charge, delay: number): string {
  if (charge.to !== 'task') return json;
  const { reason, kind } = charge;
  const last = lastCharged;
  if (last.json === json && last.delay === delay && last.reason === reason && last.kind === kind) return last.after;
  const counts = chargedFrom(json, []);
  const same = counts.find((one) => one.reason === reason && one.kind === kind);
  const after = JSON.stringify(
    same
      ? counts.map((one) => (one === same ? changed(one, 1, delay) : one))
      : [...counts, changed({ reason, kind, count: 0 }, 1, delay)],
  );
  lastCharged = { json, reason, kind, delay, after };
  return after;
}

/** Tasks that fail one after the other mostly fail alike. */
let lastCharged = { json: '', reason: '', kind: '', delay: 0, after: '' };

function changed({ reason, kind, count: before, delayMs = 0 }: Charged, by: number, delay: number): Charged {
  const count = before + by;
  const all = Math.max(0, delayMs + delay);
  return all > 0 ? { reason, kind, count, delayMs: all } : { reason, kind, count };
}
