import type { Milliseconds } from '../../duration.ts';
import type { RedriveProgress, RedriveSkip, StageCounts } from '../../redrive.ts';
import type { TaskState } from '../../task.ts';
import {
  REDRIVE_CHANGES,
  type RedriveRow,
  type RedriveTaskRow,
  redriveNote,
  redriveOfTask,
  redriveProgress,
  redriveRecord,
  SELECTED_AT_ONCE,
  SKIPPED_AT_ONCE,
  STAGES_LOOKED_AT,
  undecidedOf,
} from '../redrive-row.ts';
import type {
  NewRedrive,
  RedriveFilter,
  RedriveOfTask,
  RedrivePreview,
  RedriveRecord,
  RedriveStore,
} from '../redrives.ts';
import type { News } from '../store.ts';
import type { Sql } from './driver.ts';
import { filterSql } from './filter.ts';
import type { Moving } from './move.ts';
import type { Read } from './records.ts';
import { failureMember, lastFingerprint } from './shared-texts.ts';
import type { Writer } from './writer.ts';

interface Parts {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly read: Read;
  readonly moving: Moving;
  readonly now: () => number;
  readonly notify: (news: News) => void;
}

/** A selected task as it is now, and its last execution. */
interface Candidate {
  readonly task: number;
  readonly state: TaskState | null;
  readonly since: number | null;
  readonly executions: number;
  readonly is_there: 0 | 1;
  readonly may_have_happened: 0 | 1;
  readonly must_not_run_twice: 0 | 1;
  readonly reason: string | null;
  readonly fingerprint: string | null;
}

type Outcome = 'succeeded' | 'failed_again' | 'ended_otherwise';

export class SqliteRedrives implements RedriveStore {
  readonly #sql: Sql;
  readonly #writer: Writer;
  readonly #read: Read;
  readonly #moving: Moving;
  readonly #now: () => number;
  readonly #notify: (news: News) => void;

  constructor({ sql, writer, read, moving, now, notify }: Parts) {
    this.#sql = sql;
    this.#writer = writer;
    this.#read = read;
    this.#moving = moving;
    this.#now = now;
    this.#notify = notify;
  }

  start({ filter, actor, note, perSecond, acceptDuplicate }: NewRedrive): Promise<number> {
    return this.#writer.write(
      (now) =>
        this.#sql.run(
          `INSERT INTO hf_redrives (filter, actor, note, per_second, accept_duplicate, started_at, state, since)
           VALUES (?, ?, ?, ?, ?, ?, 'running', ?)`,
          JSON.stringify(filter),
          actor,
          note,
          perSecond,
          acceptDuplicate ? 1 : 0,
          now,
          now,
        ).id,
    );
  }

  select(id: number): Promise<boolean> {
    return this.#writer.write(() => {
      const row = rowOf(this.#sql, id);
      if (!row || row.selected_to === null || isOver(row)) return false;
      const { values, where } = conditionsOf(JSON.parse(row.filter) as RedriveFilter, row.started_at);
      const slice = { after: row.selected_to, last: lastOf(this.#sql, values.states, row.selected_to) };
      const { changes } = this.#sql.run(
        `INSERT INTO hf_redrive_tasks (redrive, task) SELECT :redrive, e.id ${FROM} WHERE ${where}`,
        { ...values, ...ends(slice), redrive: id },
      );
      this.#sql.run('UPDATE hf_redrives SET selected = selected + :changes, selected_to = :last WHERE id = :id', {
        id,
        changes,
        last: slice.last ?? null,
      });
      return slice.last !== undefined;
    });
  }

  preview(filter: RedriveFilter, after = 0): Promise<RedrivePreview> {
    return this.#read((sql) => {
      const { values, where } = conditionsOf(filter, this.#now());
      const slice = { after, last: lastOf(sql, values.states, after) };
      const counts = sql.get<Omit<RedrivePreview, 'next'>>(
        `SELECT count(*) AS matches, coalesce(sum(may_have_happened), 0) AS mayHaveHappened,
           coalesce(sum(may_have_happened AND idempotent = 0), 0) AS mustNotRunTwice
         FROM (SELECT coalesce(t.idempotent, 1) AS idempotent,
           coalesce((SELECT ${MAY_HAVE_HAPPENED} FROM hf_executions x WHERE x.id = ${LAST_EXECUTION}), 0) AS may_have_happened
           ${FROM} WHERE ${where})`,
        { ...values, ...ends(slice) },
      ) as Omit<RedrivePreview, 'next'>;
      return { ...counts, ...(slice.last !== undefined && { next: slice.last }) };
    });
  }

  find(id: number): Promise<RedriveRecord | undefined> {
    return this.#read((sql) => {
      const row = rowOf(sql, id);
      return row && redriveRecord(row);
    });
  }

  list(limit: number): Promise<readonly RedriveRecord[]> {
    return this.#read((sql) =>
      sql.all<RedriveRow>('SELECT * FROM hf_redrives ORDER BY id DESC LIMIT ?', limit).map(redriveRecord),
    );
  }

  skips(id: number): Promise<Readonly<Partial<Record<RedriveSkip, number>>>> {
    return this.#read((sql) =>
      Object.fromEntries(
        sql.rows<[skip: RedriveSkip, count: number]>(
          'SELECT skipped, count(*) FROM hf_redrive_tasks WHERE redrive = ? AND skipped IS NOT NULL GROUP BY 1 ORDER BY 1',
          id,
        ),
      ),
    );
  }

  ofTask(task: number): Promise<RedriveOfTask | undefined> {
    return this.#read((sql) => {
      const row = sql.get<RedriveTaskRow & { readonly redrive: number }>(
        'SELECT redrive, stage, skipped, at FROM hf_redrive_tasks WHERE task = ? ORDER BY redrive DESC LIMIT 1',
        task,
      );
      const redrive = row && rowOf(sql, row.redrive);
      return redrive && redriveOfTask(redrive, row);
    });
  }

  change(
    id: number,
    to: 'paused' | 'running' | 'cancelled',
    { actor, note }: { readonly actor: string; readonly note?: string },
  ): Promise<boolean> {
    return this.#writer.write((now) => {
      const { changes } = this.#sql.run(
        `UPDATE hf_redrives SET state = :to, since = :now, by_actor = :actor, by_note = :note
         WHERE id = :id AND state IN (SELECT value FROM json_each(:from))`,
        { id, to, now, actor, note: note ?? null, from: JSON.stringify(REDRIVE_CHANGES[to]) },
      );
      return changes > 0;
    });
  }

  // ── For the one process that drives it ──

  open(driver: string): Promise<readonly number[]> {
    return this.#read((sql) =>
      sql.column<number>(
        `SELECT id FROM hf_redrives WHERE state = 'running' AND (driver IS NULL OR driver = ? OR driver_until <= ?) ORDER BY id`,
        driver,
        this.#now(),
      ),
    );
  }

  advance(
    id: number,
    driver: string,
    claimFor: Milliseconds,
  ): Promise<{ readonly record: RedriveRecord; readonly progress: RedriveProgress } | undefined> {
    return this.#writer.write((now) => {
      const mine = this.#sql.get<{ until: number }>(
        `SELECT iif(driver = :driver, driver_until, 0) AS until FROM hf_redrives
         WHERE id = :id AND state = 'running' AND (driver IS NULL OR driver = :driver OR driver_until <= :now)`,
        { id, driver, now },
      );
      if (!mine) return undefined;
      if (mine.until < now + claimFor / 2) {
        this.#sql.run('UPDATE hf_redrives SET driver = ?, driver_until = ? WHERE id = ?', driver, now + claimFor, id);
      }
      this.#recordOutcomes(id);
      const row = rowOf(this.#sql, id) as RedriveRow;
      return { record: redriveRecord(row), progress: redriveProgress(row, this.#newestStages(id), now) };
    });
  }

  async putBack(
    id: number,
    driver: string,
    { stage, count, nextIn }: { readonly stage: number; readonly count: number; readonly nextIn: Milliseconds },
  ): Promise<void> {
    const putBack = await this.#writer.write((now) => {
      const row = this.#drivenRow(id, driver, now);
      if (!row) return 0;
      const candidates = this.#sql.all<Candidate>(CANDIDATES, {
        id,
        after: row.put_back_to,
        limit: count + SKIPPED_AT_ONCE,
      });
      let done = 0;
      let skipped = 0;
      let last = row.put_back_to;
      for (const candidate of candidates) {
        if (done === count) break;
        const skip = this.#putBackOne(row, candidate, stage, now);
        if (skip === undefined) done += 1;
        else skipped += 1;
        last = candidate.task;
      }
      const ranOut = done < count && candidates.length < count + SKIPPED_AT_ONCE;
      this.#sql.run(
        `UPDATE hf_redrives SET put_back = put_back + :done, put_back_to = :last, next_at = :next,
           skipped = iif(:ranOut, selected - put_back - :done, skipped + :skipped) WHERE id = :id`,
        { id, done, last, skipped, ranOut: ranOut ? 1 : 0, next: now + nextIn },
      );
      return done;
    });
    if (putBack > 0) this.#notify('work');
  }

  end(id: number, driver: string, state: 'stopped' | 'done', because: string): Promise<boolean> {
    return this.#writer.write((now) => {
      if (!this.#drivenRow(id, driver, now)) return false;
      this.#sql.run(
        `UPDATE hf_redrives SET state = ?, since = ?, because = ?, by_actor = NULL, by_note = NULL, driver = NULL WHERE id = ?`,
        state,
        now,
        because,
        id,
      );
      return true;
    });
  }

  async release(driver: string): Promise<void> {
    await this.#writer.write(() => this.#sql.run('UPDATE hf_redrives SET driver = NULL WHERE driver = ?', driver));
  }

  /** The redrive, if it runs and this process has it. */
  #drivenRow(id: number, driver: string, now: number): RedriveRow | undefined {
    return this.#sql.get<RedriveRow>(
      `SELECT * FROM hf_redrives WHERE id = ? AND state = 'running' AND driver = ? AND driver_until > ?`,
      id,
      driver,
      now,
    );
  }

  /** Returns why the task was skipped, if it was. */
  #putBackOne(row: RedriveRow, candidate: Candidate, stage: number, now: number): RedriveSkip | undefined {
    const skip = this.#objectionTo(row, candidate) ?? this.#move(row, candidate, now);
    const values = { redrive: row.id, task: candidate.task, now };
    if (skip !== undefined) {
      this.#sql.run(
        'UPDATE hf_redrive_tasks SET skipped = :skip, at = :now WHERE redrive = :redrive AND task = :task',
        {
          ...values,
          skip,
        },
      );
      return skip;
    }
    const { executions, reason, fingerprint } = candidate;
    this.#sql.run(
      `UPDATE hf_redrive_tasks SET stage = :stage, at = :now, after_execution = :executions, reason = :reason, fingerprint = :fingerprint
       WHERE redrive = :redrive AND task = :task`,
      { ...values, stage, executions, reason, fingerprint },
    );
    return undefined;
  }

  #objectionTo(row: RedriveRow, candidate: Candidate): RedriveSkip | undefined {
    if (!candidate.is_there) return 'missing';
    const { states } = JSON.parse(row.filter) as RedriveFilter;
    const hasEnded = (states as readonly (TaskState | null)[]).includes(candidate.state);
    if (!hasEnded || (candidate.since ?? 0) > row.started_at) return 'changed';
    const mayRun = row.accept_duplicate || !candidate.must_not_run_twice || !candidate.may_have_happened;
    return mayRun ? undefined : 'may_have_happened';
  }

  #move(row: RedriveRow, { task }: Candidate, now: number): RedriveSkip | undefined {
    const moved = this.#moving.move(task, { verb: 'redrive', actor: row.actor, note: redriveNote(row) }, now);
    if (moved.moved) return undefined;
    return moved.why === 'conflict' && moved.occupiedBy !== undefined ? 'unique_key' : 'changed';
  }

  #recordOutcomes(id: number): void {
    const decided = this.#sql.rows<[task: number, outcome: Outcome]>(
      `SELECT task, outcome FROM (${OUTCOMES}) WHERE outcome IS NOT NULL`,
      id,
    );
    const counts: Record<Outcome, number> = { succeeded: 0, failed_again: 0, ended_otherwise: 0 };
    for (const [task, outcome] of decided) {
      counts[outcome] += 1;
      this.#sql.run('UPDATE hf_redrive_tasks SET outcome = ? WHERE redrive = ? AND task = ?', outcome, id, task);
    }
    const row = rowOf(this.#sql, id) as RedriveRow;
    const [open = 0] = this.#sql.column<number>(
      'SELECT count(*) FROM hf_redrive_tasks WHERE redrive = ? AND stage IS NOT NULL AND outcome IS NULL',
      id,
    );
    // Tasks that were removed meanwhile are missing here.
    counts.ended_otherwise += undecidedOf(row) - decided.length - open;
    if (decided.length === 0 && counts.ended_otherwise === 0) return;
    this.#sql.run(
      `UPDATE hf_redrives SET succeeded = succeeded + :succeeded, failed_again = failed_again + :failed_again,
         ended_otherwise = ended_otherwise + :ended_otherwise WHERE id = :id`,
      { id, ...counts },
    );
  }

  #newestStages(id: number): readonly StageCounts[] {
    return this.#sql.all<StageCounts>(
      `SELECT stage, count(*) AS putBack, sum(outcome IS NULL) AS undecided, sum(outcome IS 'failed_again') AS failedAgain
       FROM hf_redrive_tasks WHERE redrive = :id AND stage IS NOT NULL
         AND stage > (SELECT max(stage) FROM hf_redrive_tasks WHERE redrive = :id AND stage IS NOT NULL) - :most
       GROUP BY stage ORDER BY stage`,
      { id, most: STAGES_LOOKED_AT },
    );
  }
}

function rowOf(sql: Sql, id: number): RedriveRow | undefined {
  return sql.get<RedriveRow>('SELECT * FROM hf_redrives WHERE id = ?', id);
}

function isOver({ state }: RedriveRow): boolean {
  return state !== 'running' && state !== 'paused';
}

// ── Selection ──

/** A slice of the tasks, by id; without `last` it has no end. */
interface Slice {
  readonly after: number;
  readonly last: number | undefined;
}

function ends({ after, last }: Slice): { readonly after: number; readonly last: number } {
  return { after, last: last ?? Number.MAX_SAFE_INTEGER };
}

/** The last id of the slice after this one; undefined if the rest fits into one slice. */
function lastOf(sql: Sql, states: string, after: number): number | undefined {
  const lasts = sql.column<number | null>(
    `SELECT (SELECT id FROM hf_resting WHERE state <> 'succeeded' AND state = s.value AND id > :after
       ORDER BY id LIMIT 1 OFFSET :size) FROM json_each(:states) s`,
    { states, after, size: SELECTED_AT_ONCE - 1 },
  );
  const found = lasts.filter((last) => last !== null);
  return found.length === 0 ? undefined : Math.min(...found);
}

const FROM = `FROM hf_resting e JOIN hf_tasks t ON t.id = e.id JOIN hf_classes c ON c.id = t.class JOIN hf_queues q ON q.id = c.queue`;

/** A late report decided nothing. */
const LAST_EXECUTION = '(SELECT max(l.id) FROM hf_executions l WHERE l.task = e.id AND l.late = 0)';

/** Of the execution `x`. */
const MAY_HAVE_HAPPENED = `(x.outcome = 'loss' OR coalesce(${failureMember('x', 'ambiguous')}, 0))`;

/** The conditions on a task, and their values; `after` and `last` are the bounds of a slice. */
function conditionsOf(filter: RedriveFilter, until: number) {
  const { conditions, values } = filterSql(filter, COLUMNS);
  const where = [
    // The index does not contain succeeded tasks.
    `e.state <> 'succeeded' AND e.state IN (SELECT value FROM json_each(:states))`,
    'e.id > :after AND e.id <= :last AND e.since <= :until',
    ...conditions,
  ];
  return { where: where.join(' AND '), values: { ...values, until, states: JSON.stringify(filter.states) } };
}

/** What a filter compares. */
const COLUMNS = {
  type: 'c.type',
  queue: 'q.name',
  source: 't.source',
  reason: 'e.reason',
  fingerprint: lastFingerprint('e.id'),
  error: '(SELECT error FROM hf_facts WHERE task = e.id)',
  attempts: `(SELECT coalesce(sum(value ->> 'count'), 0) FROM hf_facts f, json_each(iif(json_valid(f.charged), f.charged, '[]')) WHERE f.task = e.id)`,
  executions: 'max(coalesce(e.executions, 0), coalesce((SELECT executions FROM hf_facts WHERE task = e.id), 0))',
  priority: 't.priority',
  since: 'e.since',
};

// ── Putting back ──

/** The next tasks of a redrive, as they are now. */
const CANDIDATES = `
  SELECT i.task, e.state, e.since, max(coalesce(e.executions, 0), coalesce(f.executions, 0)) AS executions,
    t.id IS NOT NULL AS is_there, coalesce(t.idempotent, 1) = 0 AS must_not_run_twice,
    coalesce(${MAY_HAVE_HAPPENED}, 0) AS may_have_happened,
    coalesce(${failureMember('x', 'reason')}, e.reason) AS reason, ${failureMember('x', 'fingerprint')} AS fingerprint
  FROM hf_redrive_tasks i LEFT JOIN hf_tasks t ON t.id = i.task LEFT JOIN hf_resting e ON e.id = i.task
    LEFT JOIN hf_facts f ON f.task = i.task LEFT JOIN hf_executions x ON x.id = ${LAST_EXECUTION}
  WHERE i.redrive = :id AND i.task > :after ORDER BY i.task LIMIT :limit`;

/**
 * The outcomes of the tasks of a redrive that have none yet. The first failure since a task was put back counts, or a loss that was
 * charged to it; without one, its end.
 */
const OUTCOMES = `
  SELECT i.task, CASE
    WHEN x.outcome = 'failure' THEN iif(${failureMember('x', 'reason')} IS i.reason
      AND coalesce(${failureMember('x', 'fingerprint')}, i.fingerprint, '') = coalesce(i.fingerprint, ${failureMember('x', 'fingerprint')}, ''),
      'failed_again', 'ended_otherwise')
    WHEN x.outcome = 'loss' THEN iif(i.reason LIKE 'worker.%', 'failed_again', 'ended_otherwise')
    WHEN e.state = 'succeeded' THEN 'succeeded'
    WHEN e.state IN ('dead', 'cancelled', 'needs_manual') THEN 'ended_otherwise' END AS outcome
  FROM hf_redrive_tasks i LEFT JOIN hf_resting e ON e.id = i.task LEFT JOIN hf_executions x ON x.id = (
    SELECT min(id) FROM hf_executions WHERE task = i.task AND late = 0 AND execution > i.after_execution
      AND (outcome = 'failure' OR outcome = 'loss' AND charge = 'recoveries'))
  WHERE i.redrive = ? AND i.stage IS NOT NULL AND i.outcome IS NULL`;
