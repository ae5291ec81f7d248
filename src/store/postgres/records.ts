import { FULL, REFILL_EVERY } from '../../budget.ts';
import type { Facts } from '../../failure/decide.ts';
import type { TaskFilter } from '../../filter.ts';
import { type EndedState, isOver, TASK_STATES, type TaskState } from '../../task.ts';
import { type ChangeFilter, type ChangeRecord, type ChangeRow, changeRecord } from '../changes.ts';
import { type FactsFor, factsAt, type Remembered } from '../facts.ts';
import { conditionsOf, type FilterColumn, type FilterCondition } from '../filter.ts';
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
import type { Counting } from './counters.ts';
import type { Database } from './database.ts';
import { list } from './writer.ts';

export class PostgresRecords implements Records {
  readonly #database: Database;

  readonly #counting: Counting;

  constructor(database: Database, counting: Counting) {
    this.#database = database;
    this.#counting = counting;
  }

  async find(task: number | TaskKey): Promise<TaskRecord | undefined> {
    const [id, values] =
      typeof task === 'number'
        ? ['$1', [task]]
        : [
            '(SELECT max(task) FROM $.keys WHERE key = $1 AND ($2::text IS NULL OR type = $2))',
            [task.key, task.type ?? null],
          ];
    const [found] = await this.#records(
      this.#in(`SELECT ${TASK_COLUMNS} FROM $.holdfast_tasks WHERE id = ${id}`),
      values,
    );
    return found;
  }

  list(filter: ListFilter): Promise<readonly TaskRecord[]> {
    return listInSlices(filter, {
      select: (traits, slice) => this.select(traits, slice),
      records: (ids) => this.records(ids),
    });
  }

  async select(filter: TaskFilter, slice: Slice = {}): Promise<Selected> {
    const { compared = COMPARED_AT_ONCE, before } = slice;
    const { size = compared } = slice;
    const page = pageOf(filter, size, compared, before);
    if (page === undefined) return { ids: [] };
    const [row] = await this.#database.rows<{ ids: readonly number[]; lowest: number | null }>(
      this.#in(page.text),
      page.values,
    );
    return sliceOf(row?.ids ?? [], size, row?.lowest ?? undefined);
  }

  records(ids: readonly number[]): Promise<readonly TaskRecord[]> {
    return this.#records(
      this.#in(`SELECT ${TASK_COLUMNS} FROM $.holdfast_tasks v WHERE v.id = ANY($1::bigint[]) ORDER BY v.id DESC`),
      [list(ids)],
    );
  }

  async lastExecutions(ids: readonly number[], which: 'any' | 'failed'): Promise<ReadonlyMap<number, ExecutionEntry>> {
    const rows = await this.#database.rows<{ task: number; execution: ExecutionRow }>(
      this.#in(`SELECT t.task, to_json(e) AS execution FROM unnest($1::bigint[]) t (task) CROSS JOIN LATERAL (
        SELECT * FROM (SELECT * FROM $.executions UNION ALL SELECT * FROM $.old_executions) x
        WHERE x.task = t.task AND NOT x.late ${which === 'failed' ? 'AND x.failure IS NOT NULL' : ''} ORDER BY x.id DESC LIMIT 1) e`),
      [list(ids)],
    );
    return new Map(rows.map(({ task, execution }) => [task, executionEntry(execution)]));
  }

  async facts(id: number): Promise<Facts | undefined> {
    const columns = (lost: string, verdict: string, running: string) =>
      `round_base, first_started_at, charged, in_a_row, deferred_since, recoveries, ${lost} AS lost, ${verdict} AS verdict,
       deadline, coalesce(idempotent, true) AS idempotent, executions + (NOT ${running})::int AS execution`;
    const [row] = await this.#database.rows<Remembered & FactsFor & { readonly now: number }>(
      this.#in(`SELECT ${columns('CASE WHEN suspect THEN greatest(lost_in_a_row, 1) ELSE 0 END', 'verdict', "(state = 'running')")},
          CASE WHEN state = 'running' AND why IS DISTINCT FROM 'expiry' THEN since END AS "startedAt",
          cancel AS "cancelRequested", $.now_ms() AS now FROM $.live WHERE id = $1
        UNION ALL SELECT ${columns('suspect::int', 'NULL::text', 'false')}, NULL, false, $.now_ms()
        FROM (SELECT * FROM $.ended UNION ALL SELECT * FROM $.succeeded) e WHERE id = $1`),
      [id],
    );
    return row && factsAt(row.now, row, row);
  }

  async history(id: number): Promise<readonly HistoryEntry[]> {
    const rows = await this.#database.rows<EventRow>(
      this.#in(`SELECT id, to_json(e) AS execution, NULL::json AS action FROM (SELECT * FROM $.executions UNION ALL SELECT * FROM $.old_executions) e WHERE task = $1
        UNION ALL SELECT id, NULL, to_json(a) FROM $.acts a WHERE task = $1 ORDER BY id`),
      [id],
    );
    return rows.map(({ execution, action }) =>
      execution ? executionEntry(execution) : actionEntry(action as ActionRow),
    );
  }

  async events(span: EventSpan): Promise<readonly TaskEvent[]> {
    if (!span.newestFirst) return this.#eventsIn(span);
    // There is an index by time, and none in its order: so the span grows backwards until it has enough.
    for (const back of GROWING_SPANS_MS) {
      const from = Math.max(span.from, span.before - back, 0);
      const found = await this.#eventsIn({ ...span, from });
      if (found.length >= span.limit || from <= span.from) return found;
    }
    return this.#eventsIn(span);
  }

  async #eventsIn(span: EventSpan): Promise<readonly TaskEvent[]> {
    const { from, before, limit, newestFirst } = span;
    const order = newestFirst ? 'DESC' : 'ASC';
    const page = (table: string, at: string) =>
      `SELECT * FROM (${table}) x WHERE ${at} >= $1 AND ${at} < $2 ORDER BY ${at} ${order}, id ${order} LIMIT $3`;
    const joined = `LEFT JOIN $.live l ON l.id = e.task LEFT JOIN $.bodies b ON b.id = e.task LEFT JOIN $.ended d ON d.id = e.task
      LEFT JOIN LATERAL (SELECT class, source FROM $.succeeded s WHERE s.id = e.task LIMIT 1) s ON true
      JOIN $.classes c ON c.id = coalesce(l.class, d.class, s.class) JOIN $.queues q ON q.id = c.queue`;
    const columns = 'e.*, c.type, q.name AS queue, coalesce(b.source, d.source, s.source) AS source';
    const executions = page('SELECT * FROM $.executions UNION ALL SELECT * FROM $.old_executions', 'ended_at');
    const read = <Row extends object>(rows: string, at: string) =>
      this.#database.rows<Row>(
        this.#in(`SELECT ${columns} FROM (${rows}) e ${joined} ORDER BY e.${at} ${order}, e.id ${order}`),
        [from, before, limit],
      );
    type Rows = Parameters<typeof eventsFrom>;
    return eventsFrom(
      await read<Rows[0][number]>(executions, 'ended_at'),
      await read<Rows[1][number]>(page('SELECT * FROM $.acts', 'at'), 'at'),
      span,
    );
  }

  counters(since: number): Promise<Counters> {
    return this.#counting.since(since);
  }

  counterPeriods(since: number): Promise<Counters<CountedPeriods>> {
    return this.#counting.periodsSince(since);
  }

  async acts({ before, limit }: Parameters<Records['acts']>[0]): Promise<readonly ActRecord[]> {
    const rows = await this.#database.rows<ActRow>(
      this.#in(`SELECT id, task, at, actor, verb, note, from_state AS "from", to_state AS "to" FROM $.acts
        WHERE id < $1 AND verb <> '${STRAY_VERB}' ORDER BY id DESC LIMIT $2`),
      [before ?? Number.MAX_SAFE_INTEGER, limit],
    );
    return rows.map(actRecord);
  }

  async fallingDue({ from, until, span, mostCounted, mostRead }: DueQuestion): Promise<FallingDue> {
    const due = (columns: string) => `SELECT ((run_at - $1) / $2)::integer AS span${columns} FROM $.live
      WHERE state = 'scheduled' AND run_at >= $1 AND run_at < $3 ORDER BY run_at LIMIT $4`;
    const counts = await this.#database.rows<FallingDue['counts'][number]>(
      this.#in(`SELECT span, count(*) AS count FROM (${due('')}) d GROUP BY span ORDER BY span`),
      [from, span, until, mostCounted],
    );
    // Without the view of all tasks, which is costly to plan and to compile.
    const kinds = await this.#database.rows<FallingDue['kinds'][number]>(
      this.#in(`SELECT d.span, c.type, b.source, d.reason, count(*) AS count FROM (${due(', id, class, reason')}) d
        JOIN $.classes c ON c.id = d.class JOIN $.bodies b ON b.id = d.id GROUP BY d.span, c.type, b.source, d.reason
        ORDER BY d.span, c.type COLLATE "C", b.source COLLATE "C", d.reason COLLATE "C" NULLS FIRST`),
      [from, span, until, mostRead],
    );
    return { counts, kinds };
  }

  async totals(): Promise<Counts['byState']> {
    const rows = await this.#database.rows<Pick<StateCounts, 'state' | 'n'>>(
      this.#in(`SELECT state, count(*) AS n FROM $.live GROUP BY state UNION ALL ${ENDED_COUNTS}`),
    );
    return totalsOf(rows);
  }

  async counts(): Promise<Counts> {
    // A statement that calls a function of ours reads its tables with one process only.
    const [at] = await this.#database.rows<{ now: number }>(this.#in('SELECT $.now_ms() AS now'));
    // One statement, so that a task that ends meanwhile is counted once. What is due is found by an index: to compare the time of each
    // task takes longer than to count them.
    const rows = await this.#database.rows<StateCounts>(
      this.#in(`SELECT * FROM (
          SELECT state, NULL AS reason, count(*) AS n, count(reason) AS retrying,
            (SELECT count(*) FROM $.live WHERE state = 'scheduled' AND run_at <= $1) AS overdue,
            (SELECT run_at FROM $.live WHERE state = 'scheduled' AND run_at < ${WHEN_GROUP_ENDS} ORDER BY run_at LIMIT 1) AS next
          FROM $.live GROUP BY state
          UNION ALL SELECT 'succeeded', NULL, count(*), 0, 0, NULL FROM $.succeeded
          UNION ALL SELECT state, CASE WHEN state IN ('needs_manual', 'dead') THEN coalesce(reason, 'unknown') END, count(*), 0, 0, NULL
          FROM $.ended GROUP BY 1, 2) c
        ORDER BY state COLLATE "C" DESC, n DESC, reason COLLATE "C"`),
      [(at as { now: number }).now],
    );
    const byState = totalsOf(rows);
    const { retrying, overdue, next } = rows.find(({ state }) => state === 'scheduled') ?? {
      retrying: 0,
      overdue: 0,
      next: null,
    };
    const byReason = rows.flatMap(({ state, reason, n }) => (reason === null ? [] : [{ state, reason, count: n }]));
    return { byState, retrying, due: byState.ready + overdue, byReason, ...(next !== null && { nextDueAt: next }) };
  }

  async changes({ kind, name, since, before, actions, limit }: ChangeFilter): Promise<readonly ChangeRecord[]> {
    const rows = await this.#database.call<readonly ChangeRow[] | null>('changes_of', [
      kind ?? null,
      name ?? null,
      since ?? 0,
      before ?? null,
      actions ?? false,
      limit,
    ]);
    return (rows ?? []).map(changeRecord);
  }

  async workers(): Promise<readonly WorkerRecord[]> {
    const rows = await this.#database.rows<WorkerRow & { readonly now: number }>(
      this.#in(`SELECT w.id, w.name, w.host, w.pid, w.joined_at AS "joinedAt", w.lease_until AS "leaseUntil", w.takes, w.trouble, w.policies, w.program,
        w.lease_for AS "leaseFor", w.may_run_for AS "mayRunFor", w.pid_started, w.boot, w.pid_space, $.now_ms() AS now,
        (SELECT count(*) FROM $.live r WHERE r.worker = w.id AND r.state = 'running') AS running
        FROM $.workers w WHERE NOT w.gone ORDER BY w.id`),
    );
    return rows.map(({ now, ...row }) => workerFrom(row, now));
  }

  async sources(mostInTrouble?: number): Promise<readonly SourceRecord[]> {
    const [names, values] = mostInTrouble === undefined ? [LISTED, []] : [IN_TROUBLE, [mostInTrouble]];
    const rows = await this.#database.rows<SourceRow & { readonly now: number }>(this.#in(sourcesAmong(names)), values);
    return rows.map(({ now, ...row }) => sourceRecord(row, now));
  }

  async queues(): Promise<readonly QueueRecord[]> {
    const rows = await this.#database.rows<QueueRow>(
      this.#in(
        'SELECT name, ordering, fair, paused_at, actor, note, per_second, burst, concurrency FROM $.queues ORDER BY name COLLATE "C"',
      ),
    );
    return rows.map(queueRecord);
  }

  countsBy<By extends keyof CountsBy>(by: By, most: number): Promise<readonly CountsBy[By][]> {
    return this.#database.rows<CountsBy[By]>(this.#in(COUNTS_BY[by]), [most]);
  }

  async readyOf(sources: readonly string[]): Promise<readonly ReadyCount[]> {
    // The tasks of each lane are counted by themselves, so that only their index is read.
    const counts = await this.#database.rows<ReadyCount>(
      this.#in(`SELECT l.source AS name, sum((SELECT count(*) FROM $.live t WHERE t.lane = l.id AND t.state = 'ready'))::bigint AS ready
        FROM $.lanes l WHERE l.source = ANY(ARRAY(SELECT json_array_elements_text($1::json))) GROUP BY l.source ORDER BY l.source COLLATE "C"`),
      [JSON.stringify(sources)],
    );
    // A condition in the statement would count them twice.
    return counts.filter(({ ready }) => ready > 0);
  }

  async withoutWorker(most: number): Promise<readonly ReadyKind[]> {
    const kinds = await this.#database.rows<KindRow>(
      this.#in(`SELECT c.id, q.name AS queue, c.type, c.category, c.needs FROM $.classes c JOIN $.queues q ON q.id = c.queue
        WHERE q.paused_at IS NULL AND EXISTS (SELECT 1 FROM $.lanes l WHERE l.class = c.id AND l.active)
        ORDER BY c.type COLLATE "C", c.id`),
    );
    const missed = kindsWithout(await this.#takers(), kinds);
    if (missed.length === 0) return [];
    const ids = missed.map(({ id }) => id);
    const counts = await this.#database.call<readonly { id: number; ready: number }[]>('ready_of', [ids, most]);
    return readyKinds(missed, counts);
  }

  oldestRunning(): Promise<readonly QueueSince[]> {
    return this.#database.rows(
      this.#in(`SELECT q.name AS queue, min(r.since) AS since
        FROM $.live r JOIN $.classes c ON c.id = r.class JOIN $.queues q ON q.id = c.queue
        WHERE r.state = 'running' AND r.why IS NULL GROUP BY q.name ORDER BY q.name COLLATE "C"`),
    );
  }

  oldestReady(): Promise<readonly QueueSince[]> {
    return this.#database.rows<QueueSince>(this.#in(OLDEST_READY));
  }

  async sourceNames(from?: string, most?: number): Promise<readonly string[]> {
    // The index has the order of the database's language.
    const text =
      from === undefined
        ? 'SELECT source FROM (SELECT DISTINCT source FROM $.lanes WHERE was_active) s ORDER BY source COLLATE "C"'
        : 'SELECT DISTINCT source FROM $.lanes WHERE was_active AND source >= $1 ORDER BY source LIMIT $2';
    const rows = await this.#database.rows<{ source: string }>(
      this.#in(text),
      from === undefined ? [] : [from, most ?? null],
    );
    return rows.map(({ source }) => source);
  }

  async lastTakers(types: readonly string[]): Promise<readonly LastTaker[]> {
    const [row] = await this.#database.rows<{
      readonly there: Parameters<typeof lastTakersFrom>[1];
      readonly gone: Parameters<typeof lastTakersFrom>[2];
    }>(
      this.#in(`SELECT
        coalesce((SELECT json_agg(json_build_object('worker', name, 'host', host, 'program', program, 'at', least(lease_until, $.now_ms()),
          'takes', takes)) FROM $.workers), '[]') AS there,
        coalesce((SELECT json_agg(json_build_object('type', type, 'worker', worker, 'host', host, 'program', program, 'at', at))
          FROM $.types WHERE at IS NOT NULL AND type = ANY($1::text[])), '[]') AS gone`),
      [types],
    );
    return row ? lastTakersFrom(types, row.there, row.gone) : [];
  }

  async published(type: string): Promise<string | undefined> {
    const [row] = await this.#database.rows<{ published: string }>(
      this.#in('SELECT published FROM $.types WHERE type = $1'),
      [type],
    );
    return row?.published;
  }

  async groupOf(followUp: number): Promise<readonly TaskOfGroup[]> {
    const rows = await this.#database.rows<
      TaskOfGroup & { readonly ended: EndedState | null; readonly result: string | null }
    >(
      this.#in(`SELECT g.task AS id, g.ended, s.result FROM $.group_tasks g LEFT JOIN $.succeeded s ON s.id = g.task
        WHERE g.follow_up = $1 ORDER BY g.task`),
      [followUp],
    );
    return rows.map(({ id, ended, result }) => ({ id, ...(ended && { ended }), ...(result !== null && { result }) }));
  }

  async #records(text: string, values: readonly unknown[]): Promise<readonly TaskRecord[]> {
    const rows = await this.#database.rows<TaskRow & { readonly now: number }>(
      `SELECT v.*, ${this.#database.schema}.now_ms() AS now FROM (${text}) v`,
      values,
    );
    const takers = rows.some(({ state, held_by }) => state === 'ready' && held_by === null) ? await this.#takers() : [];
    return rows.map(({ now, ...row }) => taskRecord(row, takers, now));
  }

  /** What the workers with valid leases take. */
  async #takers(): Promise<readonly Takes[]> {
    const rows = await this.#database.rows<{ takes: string }>(
      this.#in('SELECT takes FROM $.workers WHERE NOT gone AND lease_until > $.now_ms()'),
    );
    return rows.map(({ takes: text }) => takesFrom(text));
  }

  /** `$.` stands for the schema. */
  #in(text: string): string {
    const { schema, functions } = this.#database;
    return text.replaceAll('$.', () => `${schema}.`).replaceAll('$functions.', () => `${functions}.`);
  }
}

/** The names of all sources with a hold, a state, a limit, or a budget that is not full. */
const LISTED = `
  SELECT name FROM $.sources WHERE coalesce(until > $.now_ms(), true)
  UNION SELECT name FROM $.source_states WHERE revision > 0 OR limit_per_second IS NOT NULL OR limit_concurrency IS NOT NULL
    OR tokens + ($.now_ms() - tokens_at) / ${REFILL_EVERY}::double precision < ${FULL}`;

/** The names of at most `$1` sources that need a person, are down or are held. */
const IN_TROUBLE = `
  SELECT name FROM (SELECT name FROM $.source_states WHERE shut_until = 9223372036854775807 OR is_probing
    ORDER BY shut_until DESC NULLS LAST) s
  UNION ALL SELECT name FROM $.sources h WHERE coalesce(until > $.now_ms(), true) AND NOT EXISTS (
    SELECT 1 FROM $.source_states s WHERE s.name = h.name AND (s.shut_until = 9223372036854775807 OR s.is_probing))
  LIMIT $1`;

/**
 * An inactive lane has tasks only if its source has a state or is held. There may be very many of those, so they are not read by a
 * function, whose plans have no hash joins, and the first key of a lane not by `first_key`: a call takes longer than the read.
 */
const OLDEST_READY = `
  SELECT queue, min(since) AS since FROM (
    SELECT a ->> 'queue' AS queue, (a ->> 'since')::double precision AS since FROM json_array_elements($functions.oldest_ready()) a
    UNION ALL
    SELECT q.name, min((SELECT order_key FROM $.live t WHERE t.lane = l.id AND t.state = 'ready' ORDER BY order_key, seq LIMIT 1))
    FROM (SELECT name FROM $.source_states UNION ALL SELECT name FROM $.sources) s JOIN $.lanes l ON l.source = s.name AND NOT l.active
    JOIN $.classes c ON c.id = l.class JOIN $.queues q ON q.id = c.queue WHERE q.ordering = 'fifo' GROUP BY q.name) f
  GROUP BY queue HAVING min(since) IS NOT NULL ORDER BY queue COLLATE "C"`;

function sourcesAmong(names: string): string {
  return `
  SELECT n.name, h.shut_at, h.actor, h.note, h.until, nullif(s.revision, 0) AS revision, s.memory, s.written_at, s.cause,
    nullif(s.shut_until, 9223372036854775807) AS shut_until, s.shut_until = 9223372036854775807 AS until_released,
    s.is_probing AS probing, s.per_second, s.burst, s.is_ramping AS ramping,
    nullif(least(s.tokens + (t.now - s.tokens_at) / ${REFILL_EVERY}::double precision, ${FULL}), ${FULL}) AS tokens,
    s.limit_per_second, s.limit_burst, s.limit_concurrency, l.by ->> 'origin' AS limit_origin, l.by ->> 'actor' AS limit_actor,
    l.by ->> 'note' AS limit_note, (l.by ->> 'at')::bigint AS limit_at, coalesce(r.running, 0) AS running, t.now
  FROM (SELECT $.now_ms() AS now OFFSET 0) t CROSS JOIN (${names}) n
  LEFT JOIN $.sources h ON h.name = n.name AND coalesce(h.until > t.now, true)
  LEFT JOIN $.source_states s ON s.name = n.name
  LEFT JOIN LATERAL (SELECT by FROM unnest(ARRAY[s.pace_by, s.concurrency_by]) by WHERE by IS NOT NULL
    ORDER BY (by ->> 'at')::bigint DESC LIMIT 1) l ON true
  LEFT JOIN (SELECT a.source, count(*) AS running FROM $.live l JOIN $.lanes a ON a.id = l.lane WHERE l.state = 'running'
    GROUP BY a.source) r ON r.source = n.name
  ORDER BY n.name COLLATE "C"`;
}

const COUNTS_BY: Readonly<Record<keyof CountsBy, string>> = {
  source: `WITH listed AS MATERIALIZED (${LISTED})
    SELECT coalesce(c.name, s.name) AS name, coalesce(c.ready, 0) AS ready, coalesce(c.running, 0) AS running
    FROM (SELECT l.source AS name, count(*) FILTER (WHERE t.state = 'ready') AS ready, count(*) FILTER (WHERE t.state = 'running') AS running
      FROM $.live t JOIN $.lanes l ON l.id = t.lane WHERE t.state IN ('ready', 'running') GROUP BY l.source) c
    FULL JOIN listed s ON s.name = c.name
    ORDER BY s.name IS NOT NULL DESC, 2 DESC, 3 DESC, coalesce(c.name, s.name) COLLATE "C"
    LIMIT $1 + (SELECT count(*) FROM listed)`,
  queue: `WITH soon AS (SELECT class, run_at <= $.now_ms() AS is_due FROM $.live WHERE state = 'scheduled' ORDER BY run_at, id LIMIT $1),
    load (class, ready, running, scheduled) AS (
      SELECT class, count(*) FILTER (WHERE state = 'ready'), count(*) FILTER (WHERE state = 'running'), 0
      FROM $.live WHERE state IN ('ready', 'running') GROUP BY class
      UNION ALL SELECT class, count(*) FILTER (WHERE is_due), 0, count(*) FILTER (WHERE NOT is_due) FROM soon GROUP BY class),
    totals AS (SELECT c.queue, sum(ready) AS ready, sum(running) AS running, sum(scheduled) AS scheduled
      FROM load JOIN $.classes c ON c.id = load.class GROUP BY c.queue)
    SELECT q.name, coalesce(ready, 0) AS ready, coalesce(running, 0) AS running, coalesce(scheduled, 0) AS scheduled,
      NOT EXISTS (SELECT 1 FROM $.live WHERE state = 'scheduled' OFFSET $1 LIMIT 1) AS exact
    FROM $.queues q LEFT JOIN totals ON totals.queue = q.id ORDER BY q.name COLLATE "C"`,
};

const ENDED_COUNTS = `SELECT state, count(*) AS n FROM $.ended GROUP BY state
  UNION ALL SELECT 'succeeded', count(*) FROM $.succeeded`;

function totalsOf(rows: readonly Pick<StateCounts, 'state' | 'n'>[]): Counts['byState'] {
  const byState = Object.fromEntries(TASK_STATES.map((state) => [state, 0])) as Record<TaskState, number>;
  for (const { state, n } of rows) byState[state] += n;
  return byState;
}

interface StateCounts {
  readonly state: TaskState;
  /** Of tasks that are dead or need a person. */
  readonly reason: string | null;
  readonly n: number;
  /** Of scheduled tasks: those that failed before. */
  readonly retrying: number;
  readonly overdue: number;
  readonly next: number | null;
}

interface EventRow {
  readonly execution: ExecutionRow | null;
  readonly action: ActionRow | null;
}

/** A minute, ten, an hour, six, a day, a week, and 30 days. */
const GROWING_SPANS_MS = [1, 10, 60, 360, 1_440, 10_080, 43_200].map((minutes) => minutes * 60_000);

/**
 * Reads one row: `ids`, those of the newest tasks before `before` that match, newest first; and `lowest`, the last task that was
 * compared, if there may be more below it. Undefined if no state is wanted.
 */
function pageOf(
  { states, ...filter }: TaskFilter,
  size: number,
  compared: number,
  before = Number.MAX_SAFE_INTEGER,
): { readonly text: string; readonly values: readonly unknown[] } | undefined {
  const values: unknown[] = [before, size];
  const conditions = conditionsOf(filter);
  const classTest = testOf(conditions, { type: 'c.type', queue: 'q.name' }, values);
  const ofClasses =
    classTest && `SELECT c.id FROM $.classes c JOIN $.queues q ON q.id = c.queue WHERE true${classTest}`;
  // If no task ever had such a type or queue, no table is read: this condition has no column, so it is tested once.
  const someClass = ofClasses && ` AND (SELECT EXISTS (${ofClasses}))`;
  const classes = ofClasses && `${someClass} AND t.class IN (${ofClasses})`;
  const columns = {
    reason: 't.reason',
    error: 't.error',
    fingerprint: '$functions.last_fingerprint(t.id)',
    attempts: '$functions.charged_count(t.charged)',
    executions: 't.executions',
  };
  const traits = testOf(conditions, columns, values);
  // Of a live task they are in its body.
  const others = testOf(conditions, { source: 'source', priority: 'priority' }, values);
  const ofBody = others && ` AND EXISTS (SELECT 1 FROM $.bodies b WHERE b.id = t.id${others})`;
  const times = timesOf(filter, values);
  const isNarrower = conditions.length > 0 || times !== '';
  const testsIn = { ended: others, succeeded: others, live: ofBody };
  const tables = tablesOf(states, times !== '').map(([table, state]) => [table, state, testsIn[table]] as const);
  if (tables.length === 0) return undefined;
  // The newest tasks of each table, one page of each: no others can be on this page.
  const newest = (most: string, test: (others: string) => string) => {
    const pages = tables.map(
      ([table, state, others]) =>
        `(SELECT t.id FROM $.${table} t WHERE t.id < $1 AND ${state}${test(others)} ORDER BY t.id DESC LIMIT ${most})`,
    );
    return `SELECT id FROM (${pages.join(' UNION ALL ')}) p ORDER BY id DESC LIMIT ${most}`;
  };
  if (!isNarrower) return { text: `SELECT ARRAY(${newest('$2', () => '')}) AS ids, NULL::bigint AS lowest`, values };
  const n = `$${values.push(compared)}`;
  const ids = newest(
    '$2',
    (others) => `${classes}${others}${times}${traits} AND t.id >= coalesce((SELECT id FROM lowest), 0)`,
  );
  const text = `WITH lowest AS MATERIALIZED (SELECT min(id) AS id FROM (${newest(n, () => someClass)}) c HAVING count(*) = ${n})
    SELECT ARRAY(${ids}) AS ids, (SELECT id FROM lowest) AS lowest`;
  return { text, values };
}

/** Where tasks in these states are, and their conditions. `ended`: only those that have ended, or were put aside at a time. */
function tablesOf(states: TaskFilter['states'], ended: boolean): (readonly ['succeeded' | 'ended' | 'live', string])[] {
  if (!states)
    return [
      ['succeeded', 'true'],
      ['ended', 'true'],
      ['live', ended ? "t.state = 'held'" : 'true'],
    ];
  return states.flatMap((state): (readonly ['succeeded' | 'ended' | 'live', string])[] => {
    if (state === 'succeeded') return [['succeeded', 'true']];
    if (isOver(state)) return [['ended', `t.state = '${state}'`]];
    return ended && state !== 'held' ? [] : [['live', `t.state = '${state}'`]];
  });
}

/** The conditions on these columns, in SQL. */
function testOf(
  conditions: readonly FilterCondition[],
  columns: Partial<Record<FilterColumn, string>>,
  values: unknown[],
): string {
  const listed = (list: readonly string[]) =>
    `SELECT part FROM json_array_elements_text($${values.push(JSON.stringify(list))}::json) part`;
  return conditions
    .map(({ column, exactly, like, contains, ranges, not }) => {
      const name = columns[column];
      if (name === undefined) return '';
      const value = not ? `coalesce(${name}, '')` : name;
      const found = `strpos(lower(${value} COLLATE "C"), lower(part COLLATE "C")) > 0`;
      const any = [
        ...(exactly.length > 0 ? [`${value} IN (${listed(exactly)})`] : []),
        ...(like.length > 0 ? [`${value} LIKE ANY(ARRAY(${listed(like.map(likeOf))}))`] : []),
        ...(contains.length > 0 ? [`EXISTS (${listed(contains)} WHERE ${found})`] : []),
        ...ranges.map(
          ({ from = 0, to = Number.MAX_SAFE_INTEGER }) =>
            `${name} BETWEEN $${values.push(from)}::bigint AND $${values.push(to)}::bigint`,
        ),
      ];
      return any.length === 0 ? ` AND ${not}` : ` AND ${not ? 'NOT ' : ''}(${any.join(' OR ')})`;
    })
    .join('');
}

/** Only `*` has a meaning of its own. */
function likeOf(pattern: string): string {
  return pattern.replaceAll(/[\\%_]/g, '\\$&').replaceAll('*', '%');
}

function timesOf({ endedFrom, endedBefore }: TaskFilter, values: unknown[]): string {
  const compared = [
    ['>=', endedFrom],
    ['<', endedBefore],
  ] as const;
  return compared
    .map(([operator, time]) => (time === undefined ? '' : ` AND t.since ${operator} $${values.push(time)}`))
    .join('');
}
