import { FULL, tokensAfter } from '../../budget.ts';
import type { Facts } from '../../failure/decide.ts';
import type { TaskFilter } from '../../filter.ts';
import { TASK_STATES, type TaskState } from '../../task.ts';
import type { ChangeFilter, ChangeRecord } from '../changes.ts';
import {
  type ActionRow,
  actionEntry,
  type ExecutionRow,
  eventsFrom,
  executionEntry,
  STRAY_VERB,
} from '../history-row.ts';
import {
  type ActRecord,
  type ActRow,
  actRecord,
  type CountedPeriods,
  type DueQuestion,
  type FallingDue,
} from '../insight.ts';
import { livenessOnOneKernel } from '../liveness.ts';
import { WHEN_GROUP_ENDS } from '../new-task.ts';
import { COMPARED_AT_ONCE, listInSlices, sliceOf } from '../slices.ts';
import { type QueueRow, queueRecord, type SourceRow, sourceRecord } from '../source-row.ts';
import type {
  Counters,
  Counts,
  CountsBy,
  EventSpan,
  ExecutionEntry,
  HistoryEntry,
  LastTaker,
  ListFilter,
  QueueRecord,
  QueueSince,
  ReadyCount,
  ReadyKind,
  Records,
  Selected,
  Slice,
  SourceRecord,
  Takes,
  TaskEvent,
  TaskKey,
  TaskOfGroup,
  TaskRecord,
  WorkerRecord,
} from '../store.ts';
import { type KindRow, kindsWithout, lastTakersFrom, readyKinds, takesFrom } from '../takes.ts';
import { TASK_COLUMNS, type TaskRow, taskRecord } from '../task-row.ts';
import { type WorkerRow, workerFrom } from '../worker-row.ts';
import { retryWhileBusy } from './busy-retry.ts';
import { readChanges } from './changes.ts';
import { readCounterPeriods, readCounters } from './counters.ts';
import type { Sql } from './driver.ts';
import { FactsTable, factsOf } from './facts.ts';
import { storeError } from './failures.ts';
import { filterSql } from './filter.ts';
import { groupOf } from './groups.ts';
import { TRACK } from './lanes.ts';
import type { OpenFiles } from './open-files.ts';
import { lastFingerprint } from './shared-texts.ts';

/** Runs a read, and turns SQLite's failures into errors of the store. */
export type Read = <T>(read: (sql: Sql) => T) => Promise<T>;

/** A reader on the writer's connection, which sees committed data. It does not wait for writers. */
export function reader(sql: Sql, path: string, files: OpenFiles, refuseClosed: () => void): Read {
  return async (read) => {
    try {
      return await retryWhileBusy(() => {
        refuseClosed();
        files.check();
        return read(sql);
      });
    } catch (error) {
      throw storeError(error, path);
    }
  };
}

export class SqliteRecords implements Records {
  readonly #read: Read;
  readonly #now: () => number;

  constructor(read: Read, now: () => number) {
    this.#read = read;
    this.#now = now;
  }

  find(task: number | TaskKey): Promise<TaskRecord | undefined> {
    return this.#read((sql) => {
      const [id, values] =
        typeof task === 'number'
          ? ['?1', { 1: task }]
          : [
              '(SELECT max(task) FROM hf_keys WHERE key = ?1 AND (?2 IS NULL OR type = ?2))',
              { 1: task.key, 2: task.type ?? null },
            ];
      const row = sql.get<TaskRow>(`SELECT ${TASK_COLUMNS} FROM holdfast_tasks WHERE id = ${id}`, values);
      return row && taskRecord(row, this.#takersOf(sql), this.#now());
    });
  }

  list(filter: ListFilter): Promise<readonly TaskRecord[]> {
    return listInSlices(filter, {
      select: (traits, slice) => this.select(traits, slice),
      records: (ids) => this.records(ids),
    });
  }

  select(filter: TaskFilter, slice: Slice = {}): Promise<Selected> {
    return this.#read((sql) => selected(sql, filter, slice));
  }

  records(ids: readonly number[]): Promise<readonly TaskRecord[]> {
    return this.#read((sql) => {
      const [takers, now] = [this.#takersOf(sql), this.#now()];
      return sql
        .all<TaskRow>(
          `SELECT ${TASK_COLUMNS} FROM holdfast_tasks WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id DESC`,
          JSON.stringify(ids),
        )
        .map((row) => taskRecord(row, takers, now));
    });
  }

  lastExecutions(ids: readonly number[], which: 'any' | 'failed'): Promise<ReadonlyMap<number, ExecutionEntry>> {
    return this.#read((sql) => {
      const failed = which === 'failed' ? 'AND x.failure IS NOT NULL' : '';
      const rows = sql.all<ExecutionRow & { readonly task: number }>(
        `SELECT e.*, f.text AS shared_failure, b.text AS shared_because
         FROM json_each(?) j CROSS JOIN hf_executions e ON e.id = (
           SELECT x.id FROM hf_executions x WHERE x.task = j.value AND x.late = 0 ${failed} ORDER BY x.id DESC LIMIT 1)
         LEFT JOIN hf_texts f ON f.id = e.failure_text LEFT JOIN hf_texts b ON b.id = e.because_text`,
        JSON.stringify(ids),
      );
      return new Map(rows.map((row) => [row.task, executionEntry(row)]));
    });
  }

  facts(id: number): Promise<Facts | undefined> {
    return this.#read((sql) => {
      const row = sql.get<FactsSource>(
        `SELECT t.idempotent, t.deadline, coalesce(e.executions, 0) AS executions, r.execution, r.started_at, r.cancel
         FROM hf_tasks t LEFT JOIN hf_resting e ON e.id = t.id LEFT JOIN hf_running r ON r.id = t.id WHERE t.id = ?`,
        id,
      );
      if (!row) return undefined;
      const facts = new FactsTable(sql).of(id);
      const { execution, started_at, cancel } = row;
      const next = { execution: Math.max(facts.executions, row.executions) + 1, started_at: null, cancel: 0 };
      const present = execution === null ? next : { execution, started_at, cancel: cancel ?? 0 };
      return factsOf(this.#now(), facts, row, present);
    });
  }

  history(id: number): Promise<readonly HistoryEntry[]> {
    return this.#read((sql) => {
      const executions = sql
        .all<ExecutionRow & { readonly id: number }>(
          `SELECT e.*, f.text AS shared_failure, b.text AS shared_because FROM hf_executions e
           LEFT JOIN hf_texts f ON f.id = e.failure_text LEFT JOIN hf_texts b ON b.id = e.because_text
           WHERE e.task = ? ORDER BY e.id`,
          id,
        )
        .map((row) => ({ entry: executionEntry(row), after: row.id, action: 0 }));
      const actions = sql
        .all<ActionRow & { readonly id: number; readonly after_execution: number }>(
          'SELECT * FROM hf_acts WHERE task = ? ORDER BY id',
          id,
        )
        .map((row) => ({ entry: actionEntry(row), after: row.after_execution, action: row.id }));
      return [...executions, ...actions]
        .sort((a, b) => a.after - b.after || a.action - b.action)
        .map(({ entry }) => entry);
    });
  }

  events(span: EventSpan): Promise<readonly TaskEvent[]> {
    const order = span.newestFirst ? 'DESC' : 'ASC';
    const joined = (
      table: string,
    ) => `FROM ${table} e JOIN hf_tasks t ON t.id = e.task JOIN hf_classes c ON c.id = t.class
      JOIN hf_queues q ON q.id = c.queue`;
    const page = (ids: { readonly from: number; readonly before: number }) => ({ ...ids, limit: span.limit });
    const where = `WHERE e.id >= :from AND e.id < :before ORDER BY e.id ${order} LIMIT :limit`;
    return this.#read((sql) =>
      eventsFrom(
        sql.all(
          `SELECT e.*, f.text AS shared_failure, b.text AS shared_because, c.type, q.name AS queue, t.source ${joined('hf_executions')}
           LEFT JOIN hf_texts f ON f.id = e.failure_text LEFT JOIN hf_texts b ON b.id = e.because_text ${where}`,
          page(idsIn(sql, 'hf_executions', 'ended_at', span)),
        ),
        sql.all(
          `SELECT e.*, c.type, q.name AS queue, t.source ${joined('hf_acts')} ${where}`,
          page(idsIn(sql, 'hf_acts', 'at', span)),
        ),
        span,
      ),
    );
  }

  counters(since: number): Promise<Counters> {
    return this.#read((sql) => readCounters(sql, since));
  }

  totals(): Promise<Counts['byState']> {
    return this.#read((sql) =>
      atOneMoment(sql, () => {
        const scheduled = sql.column<number>('SELECT count(*) FROM hf_scheduled')[0] as number;
        // The index on states does not contain succeeded tasks, which are most of them.
        const others = sql.all<{ state: TaskState; n: number }>(
          "SELECT state, count(*) AS n FROM hf_resting WHERE state <> 'succeeded' GROUP BY state",
        );
        return byStateOf(sql, scheduled, others);
      }),
    );
  }

  counts(): Promise<Counts> {
    return this.#read((sql) =>
      atOneMoment(sql, () => {
        const { scheduled, retrying } = scheduledIn(sql);
        const others = sql.all<{ state: TaskState; reason: string | null; n: number }>(
          "SELECT state, reason, count(*) AS n FROM hf_resting WHERE state <> 'succeeded' GROUP BY state, reason",
        );
        const byState = byStateOf(sql, scheduled, others);
        const [overdue = 0] = sql.column<number>('SELECT count(*) FROM hf_scheduled WHERE run_at <= ?', this.#now());
        const [next] = sql.column<number>(
          `SELECT run_at FROM hf_scheduled WHERE run_at < ${WHEN_GROUP_ENDS} ORDER BY run_at LIMIT 1`,
        );
        return {
          byState,
          retrying,
          due: byState.ready + overdue,
          byReason: byReasonOf(others),
          ...(next !== undefined && { nextDueAt: next }),
        };
      }),
    );
  }

  counterPeriods(since: number): Promise<Counters<CountedPeriods>> {
    return this.#read((sql) => readCounterPeriods(sql, since));
  }

  acts({ before, limit }: Parameters<Records['acts']>[0]): Promise<readonly ActRecord[]> {
    return this.#read((sql) =>
      sql
        .all<ActRow>(
          `SELECT id, task, at, actor, verb, note, from_state AS "from", to_state AS "to" FROM hf_acts
           WHERE id < ? AND verb <> '${STRAY_VERB}' ORDER BY id DESC LIMIT ?`,
          before ?? Number.MAX_SAFE_INTEGER,
          limit,
        )
        .map(actRecord),
    );
  }

  fallingDue(question: DueQuestion): Promise<FallingDue> {
    return this.#read((sql) => ({
      counts: sql.all<FallingDue['counts'][number]>(
        `SELECT span, count(*) AS count FROM (SELECT CAST((run_at - :from) / :span AS INTEGER) AS span FROM hf_scheduled
           WHERE run_at >= :from AND run_at < :until ORDER BY run_at LIMIT :mostCounted) GROUP BY span ORDER BY span`,
        { ...question },
      ),
      kinds: sql.all<FallingDue['kinds'][number]>(
        `SELECT d.span, c.type, t.source, f.reason, count(*) AS count
         FROM (SELECT CAST((run_at - :from) / :span AS INTEGER) AS span, id FROM hf_scheduled
           WHERE run_at >= :from AND run_at < :until ORDER BY run_at LIMIT :mostRead) d
         JOIN hf_tasks t ON t.id = d.id JOIN hf_classes c ON c.id = t.class LEFT JOIN hf_facts f ON f.task = d.id
         GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`,
        { ...question },
      ),
    }));
  }

  changes(filter: ChangeFilter): Promise<readonly ChangeRecord[]> {
    return this.#read((sql) => readChanges(sql, filter));
  }

  workers(): Promise<readonly WorkerRecord[]> {
    return this.#read((sql) =>
      sql
        .all<WorkerRow>(
          `SELECT w.id, w.name, w.host, w.pid, w.joined_at AS joinedAt, w.lease_until AS leaseUntil, w.takes, w.trouble, w.policies, w.program,
             w.lease_for AS leaseFor, w.may_run_for AS mayRunFor, w.pid_started, w.boot, w.pid_space,
             (SELECT count(*) FROM hf_running r WHERE r.worker = w.id) AS running
           FROM hf_workers w WHERE w.gone = 0 ORDER BY w.id`,
        )
        .map((row) => workerFrom(row, this.#now(), livenessOnOneKernel)),
    );
  }

  sources(mostInTrouble?: number): Promise<readonly SourceRecord[]> {
    return this.#read((sql) => {
      const now = this.#now();
      const query = sourcesAmong(mostInTrouble === undefined ? ALL_SOURCES : SOURCES_IN_TROUBLE);
      const rows = sql.all<SourceRow & { readonly counted_at: number | null }>(query, {
        now,
        most: mostInTrouble ?? 0,
      });
      return rows.flatMap(({ counted_at, ...row }) => {
        const tokens = row.tokens == null ? FULL : tokensAfter(row.tokens, Math.max(0, now - (counted_at ?? now)));
        const record = sourceRecord({ ...row, tokens: tokens < FULL ? tokens : null }, now);
        // A budget that is full again is removed by the next claim.
        return record.hold || record.state || record.limits || record.tokens !== undefined ? [record] : [];
      });
    });
  }

  queues(): Promise<readonly QueueRecord[]> {
    return this.#read((sql) =>
      sql
        .all<QueueRow>(
          'SELECT name, ordering, fair, paused_at, actor, note, per_second, burst, concurrency FROM hf_queues ORDER BY name',
        )
        .map(queueRecord),
    );
  }

  countsBy<By extends keyof CountsBy>(by: By, most: number): Promise<readonly CountsBy[By][]> {
    return this.#read((sql) =>
      sql
        .all<CountsBy[By] & { readonly exact?: number }>(COUNTS_BY[by], { most, now: this.#now() })
        .map((row) => (row.exact === undefined ? row : { ...row, exact: Boolean(row.exact) })),
    );
  }

  readyOf(sources: readonly string[]): Promise<readonly ReadyCount[]> {
    return this.#read((sql) =>
      sql.all<ReadyCount>(
        `SELECT l.source AS name, count(*) AS ready FROM hf_lanes l JOIN hf_ready r ON r.lane = l.id
         WHERE l.source IN (SELECT value FROM json_each(?)) GROUP BY 1 ORDER BY 1`,
        JSON.stringify(sources),
      ),
    );
  }

  withoutWorker(most: number): Promise<readonly ReadyKind[]> {
    return this.#read((sql) => {
      const kinds = sql.all<KindRow>(
        `SELECT c.id, q.name AS queue, c.type, c.category, c.needs FROM hf_classes c JOIN hf_queues q ON q.id = c.queue
         WHERE q.paused_at IS NULL AND EXISTS (SELECT 1 FROM hf_active a WHERE a.class = c.id) ORDER BY c.type, c.id`,
      );
      const missed = kindsWithout(this.#takersOf(sql), kinds);
      const counts = sql.all<{ id: number; ready: number }>(
        `SELECT c.value AS id, (SELECT count(*) FROM (
           SELECT 1 FROM hf_active a JOIN hf_ready r ON r.lane = a.lane WHERE a.class = c.value LIMIT :most)) AS ready
         FROM json_each(:ids) c`,
        { most, ids: JSON.stringify(missed.map(({ id }) => id)) },
      );
      return readyKinds(missed, counts);
    });
  }

  oldestRunning(): Promise<readonly QueueSince[]> {
    return this.#read((sql) =>
      sql.all<QueueSince>(
        `SELECT q.name AS queue, min(r.started_at) AS since
         FROM hf_running r CROSS JOIN hf_tasks t ON t.id = r.id JOIN hf_classes c ON c.id = t.class JOIN hf_queues q ON q.id = c.queue
         WHERE r.why IS NULL GROUP BY q.name ORDER BY q.name`,
      ),
    );
  }

  oldestReady(): Promise<readonly QueueSince[]> {
    return this.#read((sql) => sql.all<QueueSince>(OLDEST_READY));
  }

  sourceNames(from = '', most = -1): Promise<readonly string[]> {
    return this.#read((sql) =>
      sql
        .all<{ source: string }>(
          'SELECT DISTINCT source FROM hf_lanes WHERE source >= ? ORDER BY source LIMIT ?',
          from,
          most,
        )
        .map(({ source }) => source),
    );
  }

  lastTakers(types: readonly string[]): Promise<readonly LastTaker[]> {
    return this.#read((sql) =>
      lastTakersFrom(
        types,
        sql.all('SELECT name AS worker, host, program, min(lease_until, ?) AS at, takes FROM hf_workers', this.#now()),
        sql.all(
          'SELECT type, worker, host, program, at FROM hf_types WHERE at IS NOT NULL AND type IN (SELECT value FROM json_each(?))',
          JSON.stringify(types),
        ),
      ),
    );
  }

  published(type: string): Promise<string | undefined> {
    return this.#read((sql) => sql.column<string>('SELECT published FROM hf_types WHERE type = ?', type)[0]);
  }

  groupOf(followUp: number): Promise<readonly TaskOfGroup[]> {
    return this.#read((sql) => groupOf(sql, followUp));
  }

  /** What the workers with valid leases take. */
  #takersOf(sql: Sql): readonly Takes[] {
    return sql
      .all<{ takes: string }>('SELECT takes FROM hf_workers WHERE gone = 0 AND lease_until > ?', this.#now())
      .map(({ takes }) => takesFrom(takes));
  }
}

/** The ids of the rows of a span of time: rows are written in the order of their times. */
function idsIn(
  sql: Sql,
  table: 'hf_executions' | 'hf_acts',
  time: 'ended_at' | 'at',
  { from, before }: EventSpan,
): { readonly from: number; readonly before: number } {
  const [end = 1] = sql.column<number>(`SELECT coalesce(max(id), 0) + 1 FROM ${table}`);
  const firstAt = (at: number): number => {
    let [low, high] = [1, end];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [found] = sql.column<number>(`SELECT ${time} FROM ${table} WHERE id >= ? ORDER BY id LIMIT 1`, middle);
      if (found === undefined || found >= at) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return { from: firstAt(from), before: firstAt(before) };
}

/**
 * The first tasks of lanes with the key of a time. Of the lanes that may start a task, only the first of a class and track is read. Lanes
 * of restricted sources may be missing there, and in a fair queue the key there is a turn: then each lane is read.
 */
const OLDEST_READY = `
  WITH first_tasks (queue, since) AS (
    SELECT q.id, (SELECT order_key FROM hf_active a WHERE a.class = c.id AND a.track = t.value ORDER BY order_key LIMIT 1)
    FROM hf_queues q JOIN hf_classes c ON c.queue = q.id, json_each('${JSON.stringify(Object.values(TRACK))}') t WHERE NOT q.fair
    UNION ALL
    SELECT q.id, m.since
    FROM (SELECT l.class, min((SELECT order_key FROM hf_ready r WHERE r.lane = l.id ORDER BY order_key LIMIT 1)) AS since
      FROM hf_restricted s CROSS JOIN hf_lanes l ON l.source = s.source GROUP BY l.class) m
    JOIN hf_classes c ON c.id = m.class JOIN hf_queues q ON q.id = c.queue
    WHERE NOT q.fair
    UNION ALL
    SELECT q.id, (SELECT min(order_key) FROM hf_ready r WHERE r.lane = l.id)
    FROM hf_queues q JOIN hf_classes c ON c.queue = q.id JOIN hf_lanes l ON l.class = c.id WHERE q.fair)
  SELECT q.name AS queue, min(f.since) AS since FROM first_tasks f JOIN hf_queues q ON q.id = f.queue
  WHERE q.ordering = 'fifo' GROUP BY q.name HAVING since IS NOT NULL ORDER BY q.name`;

/** The names of all sources with a hold, a state, a limit, or a budget that is not full. */
const ALL_SOURCES = `SELECT name FROM hf_sources UNION SELECT source FROM hf_source_states
  UNION SELECT source FROM hf_source_limits UNION SELECT source FROM hf_budgets`;

/** The names of at most `:most` sources that need a person, are down or are held. */
const SOURCES_IN_TROUBLE = `
  SELECT source AS name FROM (SELECT source FROM hf_source_states WHERE until_released = 1 OR probing = 1 ORDER BY until_released DESC)
  UNION ALL SELECT name FROM hf_sources h WHERE coalesce(until > :now, 1)
    AND NOT EXISTS (SELECT 1 FROM hf_source_states s WHERE s.source = h.name AND (s.until_released = 1 OR s.probing = 1))
  LIMIT :most`;

function sourcesAmong(names: string): string {
  return `
  WITH names AS (${names}),
  running AS MATERIALIZED (SELECT t.source, count(*) AS n FROM hf_running r CROSS JOIN hf_tasks t ON t.id = r.id GROUP BY t.source)
  SELECT n.name, h.shut_at, h.actor, h.note, h.until, s.revision, s.memory, s.written_at, s.cause, s.shut_until, s.until_released,
    s.probing, s.per_second, s.burst, s.ramping, b.tokens, b.counted_at, p.per_second AS limit_per_second, p.burst AS limit_burst,
    c.concurrency AS limit_concurrency, l.origin AS limit_origin, l.actor AS limit_actor, l.note AS limit_note, l.set_at AS limit_at,
    coalesce(r.n, 0) AS running
  FROM names n
  LEFT JOIN hf_sources h ON h.name = n.name AND coalesce(h.until > :now, 1)
  LEFT JOIN hf_source_states s ON s.source = n.name
  LEFT JOIN hf_budgets b ON b.source = n.name
  LEFT JOIN hf_source_limits p ON p.source = n.name AND p.kind = 'pace'
  LEFT JOIN hf_source_limits c ON c.source = n.name AND c.kind = 'concurrency'
  LEFT JOIN hf_source_limits l ON l.source = n.name
    AND l.kind = (SELECT kind FROM hf_source_limits k WHERE k.source = n.name ORDER BY set_at DESC LIMIT 1)
  LEFT JOIN running r ON r.source = n.name
  WHERE h.name IS NOT NULL OR s.source IS NOT NULL OR l.source IS NOT NULL OR b.source IS NOT NULL
  ORDER BY n.name`;
}

/** With `CROSS JOIN`, SQLite reads the few rows of the first table first: it does not know that hf_tasks is large. */
const COUNTS_BY: Readonly<Record<keyof CountsBy, string>> = {
  source: `
    WITH listed AS MATERIALIZED (SELECT source AS name FROM hf_restricted UNION SELECT source FROM hf_source_states),
      active AS MATERIALIZED (
        SELECT t.source AS name, count(*) AS n FROM hf_running r CROSS JOIN hf_tasks t ON t.id = r.id GROUP BY t.source),
      busiest AS MATERIALIZED (
        SELECT l.source AS name FROM hf_ready r CROSS JOIN hf_lanes l ON l.id = r.lane GROUP BY l.source
        ORDER BY count(*) DESC, l.source LIMIT :most + (SELECT count(*) FROM listed)),
      found AS MATERIALIZED (SELECT name FROM listed UNION SELECT name FROM active UNION SELECT name FROM busiest)
    SELECT f.name,
      coalesce((SELECT sum((SELECT count(*) FROM hf_ready r WHERE r.lane = l.id)) FROM hf_lanes l WHERE l.source = f.name), 0) AS ready,
      coalesce((SELECT n FROM active a WHERE a.name = f.name), 0) AS running
    FROM found f ORDER BY f.name IN (SELECT name FROM listed) DESC, 2 DESC, 3 DESC, 1
    LIMIT :most + (SELECT count(*) FROM listed)`,
  queue: `
    WITH soon AS MATERIALIZED (
        SELECT id, run_at <= :now AS is_due FROM (SELECT * FROM hf_scheduled ORDER BY run_at LIMIT :most) ORDER BY id),
      load (class, ready, running, scheduled) AS MATERIALIZED (
        SELECT l.class, count(*), 0, 0 FROM hf_ready r CROSS JOIN hf_lanes l ON l.id = r.lane GROUP BY l.class
        UNION ALL SELECT t.class, 0, count(*), 0 FROM hf_running r CROSS JOIN hf_tasks t ON t.id = r.id GROUP BY t.class
        UNION ALL SELECT t.class, sum(is_due), 0, sum(1 - is_due) FROM soon CROSS JOIN hf_tasks t ON t.id = soon.id GROUP BY t.class)
    SELECT q.name, coalesce(sum(ready), 0) AS ready, coalesce(sum(running), 0) AS running, coalesce(sum(scheduled), 0) AS scheduled,
      NOT EXISTS (SELECT 1 FROM hf_scheduled LIMIT 1 OFFSET :most) AS exact
    FROM hf_queues q LEFT JOIN hf_classes c ON c.queue = q.id LEFT JOIN load ON load.class = c.id GROUP BY q.name ORDER BY q.name`,
};

/** A task, and its lease if it runs. */
interface FactsSource {
  readonly idempotent: number | null;
  readonly deadline: number | null;
  /** Its executions when it ended or was put aside. */
  readonly executions: number;
  readonly execution: number | null;
  readonly started_at: number | null;
  readonly cancel: number | null;
}

/** Runs reads of what one moment has: what others commit meanwhile is not seen. */
function atOneMoment<T>(sql: Sql, read: () => T): T {
  sql.run('BEGIN');
  try {
    return read();
  } finally {
    // SQLite may have ended it by itself, because the disk failed. The error that says so must not be lost.
    if (sql.inTransaction) sql.run('COMMIT');
  }
}

/** How many tasks are scheduled, and how many of them have failed before. */
function scheduledIn(sql: Sql): { readonly scheduled: number; readonly retrying: number } {
  const { scheduled, failed, known } = sql.get<{ scheduled: number; failed: number; known: number }>(
    'SELECT count(*) AS scheduled, coalesce(sum(failed), 0) AS failed, count(failed) AS known FROM hf_scheduled',
  ) as { scheduled: number; failed: number; known: number };
  if (known === scheduled) return { scheduled, retrying: failed };
  // A program of the version before, which was open already when the table got this column, does not write it.
  const [more = 0] = sql.column<number>(
    'SELECT count(*) FROM hf_scheduled s CROSS JOIN hf_facts f ON f.task = s.id WHERE s.failed IS NULL AND f.reason IS NOT NULL',
  );
  return { scheduled, retrying: failed + more };
}

/**
 * The numbers of tasks by state. `others`: tasks at rest that have not succeeded. Those that have succeeded are not counted, but are what is
 * left of all: ids are given without a gap, and each removed task is counted.
 */
function byStateOf(
  sql: Sql,
  scheduled: number,
  others: readonly { readonly state: TaskState; readonly n: number }[],
): Record<TaskState, number> {
  const byState = Object.fromEntries(TASK_STATES.map((state) => [state, 0])) as Record<TaskState, number>;
  const { all, ready, running } = sql.get<{ all: number; ready: number; running: number }>(
    `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'hf_tasks'), 0) - (SELECT tasks FROM hf_removed) AS "all",
       (SELECT count(*) FROM hf_ready) AS ready, (SELECT count(*) FROM hf_running) AS running`,
  ) as { all: number; ready: number; running: number };
  Object.assign(byState, { scheduled, ready, running });
  for (const { state, n } of others) byState[state] += n;
  byState.succeeded = all - Object.values(byState).reduce((sum, n) => sum + n, 0);
  return byState;
}

/** The tasks that need a person or are dead, by reason: the most frequent first. */
function byReasonOf(
  others: readonly { readonly state: TaskState; readonly reason: string | null; readonly n: number }[],
): Counts['byReason'] {
  const named = others.flatMap(({ state, reason, n }) =>
    state === 'needs_manual' || state === 'dead' ? [{ state, reason: reason ?? 'unknown', count: n }] : [],
  );
  // A task without a reason is counted as if it was unknown.
  const byName = new Map<string, (typeof named)[number]>();
  for (const one of named) {
    const name = `${one.state} ${one.reason}`;
    byName.set(name, { ...one, count: one.count + (byName.get(name)?.count ?? 0) });
  }
  return [...byName.values()].sort(
    (a, b) => inOrder(b.state, a.state) || b.count - a.count || inOrder(a.reason, b.reason),
  );
}

function inOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function selected(sql: Sql, { states, ...filter }: TaskFilter, slice: Slice): Selected {
  const { before = 2 ** 53 - 1, compared = COMPARED_AT_ONCE } = slice;
  const { size = compared } = slice;
  const { conditions, values } = filterSql(filter, COLUMNS);
  const places = states?.map((state) => PLACES[state]) ?? ['SELECT id FROM hf_tasks'];
  if (places.length === 0) return { ids: [] };
  const candidates = (most: string) => {
    const newest = places.map(
      (place) => `SELECT id FROM (SELECT id FROM (${place}) WHERE id < :before ORDER BY id DESC LIMIT ${most})`,
    );
    return `SELECT id FROM (${newest.join(' UNION ALL ')}) ORDER BY id DESC LIMIT ${most}`;
  };
  const ofClasses = classesIn(sql, filter);
  if (ofClasses?.length === 0) return { ids: [] };
  if (!ofClasses && conditions.length === 0) {
    return sliceOf(sql.column<number>(candidates(':size'), { before, size }), size, undefined);
  }
  const where = ofClasses ? ['t.class IN (SELECT value FROM json_each(:classes))', ...conditions] : conditions;
  const [lowest] = sql.column<number>(`${candidates(':compared')} OFFSET :compared - 1`, { before, compared });
  // In the order of their ids, as the rows of most tasks are stored.
  const from = states
    ? `(${candidates(':compared')}) k CROSS JOIN hf_tasks t ON t.id = k.id`
    : '(SELECT * FROM hf_tasks WHERE id < :before AND id >= :lowest) t';
  const ids = sql.column<number>(
    `SELECT t.id FROM ${from} LEFT JOIN hf_facts f ON f.task = t.id LEFT JOIN hf_resting e ON e.id = t.id
     LEFT JOIN hf_running r ON r.id = t.id WHERE ${where.join(' AND ')} ORDER BY t.id DESC LIMIT :size`,
    {
      ...values,
      before,
      size,
      ...(states ? { compared } : { lowest: lowest ?? 0 }),
      ...(ofClasses && { classes: JSON.stringify(ofClasses) }),
    },
  );
  return sliceOf(ids, size, lowest);
}

/** The classes whose types and queues match; undefined if the filter names neither. */
function classesIn(sql: Sql, filter: TaskFilter): readonly number[] | undefined {
  const { conditions, values } = filterSql(filter, { type: 'c.type', queue: 'q.name' });
  if (conditions.length === 0) return undefined;
  return sql.column<number>(
    `SELECT c.id FROM hf_classes c JOIN hf_queues q ON q.id = c.queue WHERE ${conditions.join(' AND ')}`,
    values,
  );
}

/** What a filter compares besides types and queues. */
const COLUMNS = {
  source: 't.source',
  reason: 'coalesce(e.reason, f.reason)',
  fingerprint: lastFingerprint('t.id'),
  error: 'f.error',
  attempts: `(SELECT coalesce(sum(value ->> 'count'), 0) FROM json_each(iif(json_valid(f.charged), f.charged, '[]')))`,
  executions: 'coalesce(r.execution, max(coalesce(f.executions, 0), coalesce(e.executions, 0)))',
  priority: 't.priority',
  since: 'e.since',
};

/** The tables of each state. */
const PLACES: Readonly<Record<TaskState, string>> = {
  running: 'SELECT id FROM hf_running',
  scheduled: 'SELECT id FROM hf_scheduled',
  ready: 'SELECT abs(seq) AS id FROM hf_ready',
  succeeded: "SELECT id FROM hf_resting WHERE state = 'succeeded'",
  held: atRest('held'),
  needs_manual: atRest('needs_manual'),
  dead: atRest('dead'),
  cancelled: atRest('cancelled'),
};

/** With the index, which does not contain succeeded tasks. */
function atRest(state: TaskState): string {
  return `SELECT id FROM hf_resting WHERE state <> 'succeeded' AND state = '${state}'`;
}
