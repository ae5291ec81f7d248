import { StoreError } from '../../errors.ts';
import { WHEN_GROUP_ENDS } from '../new-task.ts';
import type { Sql } from './driver.ts';

/**
 * The tables. The table of a task's row is its state: it has a row in exactly one of hf_scheduled, hf_ready, hf_running and
 * hf_resting; the row in hf_resting says which of the other states it has. Its wide row in hf_tasks is written when it is
 * enqueued, and rarely after that.
 *
 * A class is a combination of queue, type, category and needs; a lane belongs to one class, source and track. hf_active has a row
 * for every lane with ready tasks whose source may start them, with the key of its first task, so that a claim compares only
 * first tasks. In a fair queue the key is the source's turn, and seq the lane.
 */
const FIRST = `
CREATE TABLE hf_clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  high INTEGER NOT NULL,
  ahead INTEGER NOT NULL,
  catalogue INTEGER NOT NULL
) STRICT;
INSERT INTO hf_clock VALUES (1, 0, 0, 0);

CREATE TABLE hf_queues (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  ordering TEXT NOT NULL DEFAULT 'fifo',
  fair INTEGER NOT NULL DEFAULT 0,
  paused_at INTEGER,
  actor TEXT,
  note TEXT,
  last_key REAL NOT NULL DEFAULT 0,
  last_turn INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE hf_sources (
  name TEXT PRIMARY KEY,
  shut_at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  note TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_classes (
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL REFERENCES hf_queues,
  type TEXT NOT NULL,
  category TEXT NOT NULL,
  needs TEXT NOT NULL,
  UNIQUE (queue, type, category, needs)
) STRICT;

CREATE TABLE hf_lanes (
  id INTEGER PRIMARY KEY,
  class INTEGER NOT NULL REFERENCES hf_classes,
  source TEXT NOT NULL,
  track INTEGER NOT NULL,
  UNIQUE (source, class, track)
) STRICT;

CREATE TABLE hf_tasks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  class INTEGER NOT NULL,
  source TEXT NOT NULL,
  priority INTEGER NOT NULL,
  submitted_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  deadline INTEGER,
  idempotent INTEGER,
  key TEXT,
  unique_key TEXT,
  unique_while TEXT CHECK (unique_while IN ('unfinished', 'waiting')),
  policy TEXT,
  payload TEXT NOT NULL
) STRICT;

CREATE TABLE hf_resting (
  id INTEGER PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('held', 'succeeded', 'needs_manual', 'dead', 'cancelled')),
  since INTEGER NOT NULL,
  executions INTEGER NOT NULL,
  token TEXT,
  reason TEXT,
  result TEXT
) STRICT;
CREATE INDEX hf_resting_state ON hf_resting (state, id) WHERE state <> 'succeeded';

CREATE TABLE hf_keys (
  type TEXT NOT NULL,
  key TEXT NOT NULL,
  task INTEGER NOT NULL,
  PRIMARY KEY (key, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_unique (
  type TEXT NOT NULL,
  key TEXT NOT NULL,
  task INTEGER NOT NULL,
  PRIMARY KEY (key, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_scheduled (
  run_at INTEGER NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (run_at, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_ready (
  lane INTEGER NOT NULL,
  order_key REAL NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (lane, order_key, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_active (
  class INTEGER NOT NULL,
  track INTEGER NOT NULL,
  order_key REAL NOT NULL,
  seq INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  source TEXT NOT NULL,
  PRIMARY KEY (class, track, order_key, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_turns (
  queue INTEGER NOT NULL,
  source TEXT NOT NULL,
  turn INTEGER NOT NULL,
  PRIMARY KEY (queue, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_running (
  id INTEGER PRIMARY KEY,
  worker INTEGER NOT NULL,
  execution INTEGER NOT NULL,
  token TEXT NOT NULL,
  revision INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  deadline INTEGER,
  cancel INTEGER NOT NULL DEFAULT 0,
  why TEXT,
  lost_by TEXT,
  unique_while TEXT
) STRICT;

CREATE TABLE hf_deadlines (
  deadline INTEGER NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (deadline, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_facts (
  task INTEGER PRIMARY KEY,
  executions INTEGER NOT NULL DEFAULT 0,
  round_base INTEGER NOT NULL DEFAULT 0,
  first_started_at INTEGER,
  charged TEXT NOT NULL DEFAULT '[]',
  deferrals INTEGER NOT NULL DEFAULT 0,
  in_a_row INTEGER NOT NULL DEFAULT 0,
  deferred_since INTEGER,
  recoveries TEXT NOT NULL DEFAULT '[]',
  suspect INTEGER NOT NULL DEFAULT 0,
  run_at INTEGER,
  reason TEXT,
  error TEXT
) STRICT;

CREATE TABLE hf_executions (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  execution INTEGER NOT NULL,
  token TEXT NOT NULL,
  late INTEGER NOT NULL,
  worker TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  next TEXT NOT NULL,
  after_ms INTEGER,
  charge TEXT NOT NULL,
  failure TEXT,
  message TEXT,
  because TEXT NOT NULL
) STRICT;
CREATE INDEX hf_executions_task ON hf_executions (task);

CREATE TABLE hf_acts (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  after_execution INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  verb TEXT NOT NULL,
  note TEXT,
  from_state TEXT NOT NULL,
  to_state TEXT NOT NULL,
  brought TEXT
) STRICT;
CREATE INDEX hf_acts_task ON hf_acts (task);

CREATE TABLE hf_workers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  joined_at INTEGER NOT NULL,
  lease_for INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  takes TEXT NOT NULL,
  gone INTEGER NOT NULL DEFAULT 0,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  pid_started TEXT,
  boot TEXT,
  pid_space TEXT
) STRICT;

CREATE TABLE hf_types (
  type TEXT PRIMARY KEY,
  published TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;

/** Chores that processes share, and the last action that was written to a log. */
const SECOND = `
CREATE TABLE hf_chores (
  name TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE hf_clock ADD COLUMN acts_told INTEGER NOT NULL DEFAULT 0;
UPDATE hf_clock SET acts_told = (SELECT coalesce(max(id), 0) FROM hf_acts);
`;

/** Why a worker claims nothing now, as JSON. */
const TROUBLE = `
ALTER TABLE hf_workers ADD COLUMN trouble TEXT;
`;

/** One saved value of a task, which its later executions read. */
const CHECKPOINTS = `
CREATE TABLE hf_checkpoints (
  task INTEGER PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
`;

/**
 * Lost leases with their worker and token, so that a late success is recognized. Expired leases that are watched. And how long
 * after its lease has expired a living process of a worker keeps its tasks (NULL: without end).
 */
const LOST_LEASES = `
CREATE TABLE hf_lost (
  task INTEGER PRIMARY KEY,
  execution INTEGER NOT NULL,
  token TEXT NOT NULL,
  worker TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE hf_watches (
  worker INTEGER NOT NULL,
  timeline TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  since REAL NOT NULL,
  PRIMARY KEY (worker, timeline)
) STRICT, WITHOUT ROWID;

ALTER TABLE hf_workers ADD COLUMN may_run_for INTEGER DEFAULT 0;
`;

/** The time since the boot at the store's time, and a wall clock that is not trusted. */
const WALL_CLOCK = `
ALTER TABLE hf_clock ADD COLUMN timeline TEXT;
ALTER TABLE hf_clock ADD COLUMN uptime INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hf_clock ADD COLUMN doubt_offset INTEGER;
ALTER TABLE hf_clock ADD COLUMN doubt_since INTEGER;
ALTER TABLE hf_clock ADD COLUMN leap INTEGER;
ALTER TABLE hf_clock ADD COLUMN leap_since INTEGER;
ALTER TABLE hf_clock ADD COLUMN resets INTEGER NOT NULL DEFAULT 0;
`;

/**
 * How tasks are lost with their workers: from here on, `suspect` of hf_facts counts losses in a row. When a worker is first found
 * gone, `held_when_lost` stores how many tasks its process ran, for the leases that are taken over later. And when a task last
 * ran, which decides its position.
 */
const LOSSES = `
ALTER TABLE hf_workers ADD COLUMN stopping INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hf_workers ADD COLUMN held_when_lost INTEGER;
ALTER TABLE hf_running ADD COLUMN lost_how TEXT;
ALTER TABLE hf_facts ADD COLUMN last_started_at INTEGER;
`;

/**
 * Redrives, and the tasks that each has selected. They are put back in the order of their ids: those up to `put_back_to` were put
 * back and have a stage, or were skipped. `selected_to` is NULL once all are selected. The process `driver` runs a redrive until
 * its claim ends.
 */
const REDRIVES = `
CREATE TABLE hf_redrives (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  filter TEXT NOT NULL,
  actor TEXT NOT NULL,
  note TEXT NOT NULL,
  per_second REAL NOT NULL,
  accept_duplicate INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'stopped', 'done', 'cancelled')),
  since INTEGER NOT NULL,
  by_actor TEXT,
  by_note TEXT,
  because TEXT,
  selected_to INTEGER DEFAULT 0,
  selected INTEGER NOT NULL DEFAULT 0,
  put_back INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  failed_again INTEGER NOT NULL DEFAULT 0,
  ended_otherwise INTEGER NOT NULL DEFAULT 0,
  put_back_to INTEGER NOT NULL DEFAULT 0,
  next_at REAL NOT NULL DEFAULT 0,
  driver TEXT,
  driver_until INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX hf_redrives_running ON hf_redrives (id) WHERE state = 'running';

CREATE TABLE hf_redrive_tasks (
  redrive INTEGER NOT NULL,
  task INTEGER NOT NULL,
  stage INTEGER,
  skipped TEXT,
  at INTEGER,
  after_execution INTEGER,
  reason TEXT,
  fingerprint TEXT,
  outcome TEXT,
  PRIMARY KEY (redrive, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX hf_redrive_tasks_task ON hf_redrive_tasks (task);
CREATE INDEX hf_redrive_tasks_stage ON hf_redrive_tasks (redrive, stage) WHERE stage IS NOT NULL;
CREATE INDEX hf_redrive_tasks_undecided ON hf_redrive_tasks (redrive) WHERE stage IS NOT NULL AND outcome IS NULL;
CREATE INDEX hf_redrive_tasks_skipped ON hf_redrive_tasks (redrive) WHERE skipped IS NOT NULL;
`;

/**
 * States of sources that are not normal, limits of sources and queues, and budgets for retries.
 *
 * hf_restricted has a row for each source with a hold, a restriction, a limit, or a budget that is not full. It is derived from
 * those, and says which lanes of the source are not in hf_active: all if `held_by` is set (why none of its tasks may start now),
 * those of tasks that need a token if `no_token` is set. `opens_at` is when one of these ends by itself. Its pace uses
 * `next_start`. While it ramps, `backlog_next` says whether the backlog is next. Running tasks name the source and the queue whose
 * limits count them.
 */
const SOURCE_STATES = `
CREATE TABLE hf_source_states (
  source TEXT PRIMARY KEY,
  revision INTEGER NOT NULL,
  memory TEXT NOT NULL,
  written_at INTEGER NOT NULL,
  cause TEXT,
  shut_until INTEGER,
  until_released INTEGER NOT NULL DEFAULT 0,
  probing INTEGER NOT NULL DEFAULT 0,
  per_second REAL,
  burst INTEGER,
  ramping INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE hf_source_limits (
  source TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('pace', 'concurrency')),
  per_second REAL,
  burst INTEGER,
  concurrency INTEGER,
  origin TEXT NOT NULL,
  actor TEXT NOT NULL,
  note TEXT,
  set_at INTEGER NOT NULL,
  PRIMARY KEY (source, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE hf_budgets (
  source TEXT PRIMARY KEY,
  tokens REAL NOT NULL,
  counted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE hf_restricted (
  source TEXT PRIMARY KEY,
  held_by TEXT,
  no_token INTEGER NOT NULL DEFAULT 0,
  ramping INTEGER NOT NULL DEFAULT 0,
  opens_at INTEGER,
  next_start REAL,
  backlog_next INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX hf_restricted_opening ON hf_restricted (opens_at) WHERE opens_at IS NOT NULL;

ALTER TABLE hf_sources ADD COLUMN until INTEGER;
INSERT INTO hf_restricted (source, held_by) SELECT name, 'source_held' FROM hf_sources;
ALTER TABLE hf_queues ADD COLUMN per_second REAL;
ALTER TABLE hf_queues ADD COLUMN burst INTEGER;
ALTER TABLE hf_queues ADD COLUMN concurrency INTEGER;
ALTER TABLE hf_queues ADD COLUMN next_start REAL;
ALTER TABLE hf_facts ADD COLUMN needs_token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hf_facts ADD COLUMN verdict TEXT;
ALTER TABLE hf_running ADD COLUMN probe INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hf_running ADD COLUMN limited_source TEXT;
ALTER TABLE hf_running ADD COLUMN limited_queue INTEGER;
CREATE INDEX hf_running_source ON hf_running (limited_source) WHERE limited_source IS NOT NULL;
CREATE INDEX hf_running_queue ON hf_running (limited_queue) WHERE limited_queue IS NOT NULL;
ALTER TABLE hf_clock ADD COLUMN source_revision INTEGER NOT NULL DEFAULT 1000;
`;

/**
 * `restrictions` is 1 if any source has a state, a hold, a limit or a used budget, or any queue has a limit. Each transaction reads
 * it with the clock, so that a store without restrictions never looks for any.
 */
const RESTRICTIONS = `
ALTER TABLE hf_clock ADD COLUMN restrictions INTEGER NOT NULL DEFAULT 0;
UPDATE hf_clock SET restrictions = 1 WHERE EXISTS (SELECT 1 FROM hf_restricted) OR EXISTS (SELECT 1 FROM hf_source_states)
  OR EXISTS (SELECT 1 FROM hf_queues WHERE per_second IS NOT NULL OR concurrency IS NOT NULL);
`;

/** Tells a process for how long it may cache that nothing restricts a source. */
const NEWLY_RESTRICTED = 'ALTER TABLE hf_clock ADD COLUMN newly_restricted INTEGER NOT NULL DEFAULT 0;';

/** The last progress that an execution reported, and when. A task may have it without a checkpoint. */
const PROGRESS = `
CREATE TABLE hf_saved (
  task INTEGER PRIMARY KEY,
  value TEXT,
  progress TEXT,
  progress_at INTEGER
) STRICT;
INSERT INTO hf_saved (task, value) SELECT task, value FROM hf_checkpoints;
DROP TABLE hf_checkpoints;
ALTER TABLE hf_saved RENAME TO hf_checkpoints;
`;

/** `progress` and `definition` are JSON of the engine. `look_at` is null for a schedule that is paused or has no other time. */
const SCHEDULES = `
CREATE TABLE hf_schedules (
  name TEXT PRIMARY KEY,
  definition TEXT NOT NULL,
  origin TEXT NOT NULL,
  progress TEXT NOT NULL,
  look_at INTEGER,
  revision INTEGER NOT NULL,
  paused_at INTEGER,
  paused_by TEXT,
  pause_note TEXT,
  last_task INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hf_schedules_look ON hf_schedules (look_at) WHERE look_at IS NOT NULL;
`;

/**
 * Texts that executions share. `failure_text` and `because_text` name them; then `failure` holds the message of the failure, and
 * `because` the random number. If they are NULL, these hold the whole JSON.
 */
const SHARED_TEXTS = `
CREATE TABLE hf_texts (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
ALTER TABLE hf_executions ADD COLUMN failure_text INTEGER;
ALTER TABLE hf_executions ADD COLUMN because_text INTEGER;
`;

/** The versions of the policies that a worker published, as JSON. */
const WORKER_POLICIES = 'ALTER TABLE hf_workers ADD COLUMN policies TEXT;';

/** The script that a worker is in. And of each type, the last worker that took it and is gone: until when its lease lasted. */
const LAST_TAKERS = `
ALTER TABLE hf_workers ADD COLUMN program TEXT;
ALTER TABLE hf_types ADD COLUMN worker TEXT;
ALTER TABLE hf_types ADD COLUMN host TEXT;
ALTER TABLE hf_types ADD COLUMN program TEXT;
ALTER TABLE hf_types ADD COLUMN at INTEGER;
`;

/** Keys that a task has for a time. `released`: its state does not need the key any more, which is free at `until`. */
const UNIQUE_UNTIL = `
ALTER TABLE hf_unique ADD COLUMN until INTEGER;
ALTER TABLE hf_unique ADD COLUMN released INTEGER NOT NULL DEFAULT 0;
`;

/**
 * The kind and reason of the last failure of a task. And how many settlements were written: each settle call adds a row to
 * hf_counter_entries, as a JSON object by key; these are added to the counters of the minute, then of the hour and the day.
 */
const COUNTERS = `
ALTER TABLE hf_facts ADD COLUMN failed_as TEXT;
CREATE TABLE hf_counter_entries (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  counts TEXT NOT NULL
) STRICT;
CREATE TABLE hf_counters (
  span INTEGER NOT NULL,
  at INTEGER NOT NULL,
  counted_as TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  PRIMARY KEY (span, at, counted_as)
) STRICT, WITHOUT ROWID;
`;

/**
 * `ended`: how a task of a group ended for the first time. When none is open, the follow-up is due. `hf_clock.groups` is 1 if any
 * task is open; each transaction reads it with the clock, so that a store without groups never looks for any.
 */
const GROUPS = `
CREATE TABLE hf_group_tasks (
  task INTEGER PRIMARY KEY,
  follow_up INTEGER NOT NULL,
  ended TEXT,
  ended_at INTEGER
) STRICT;
CREATE INDEX hf_group_tasks_follow_up ON hf_group_tasks (follow_up);
CREATE INDEX hf_group_tasks_open ON hf_group_tasks (follow_up) WHERE ended IS NULL;
ALTER TABLE hf_clock ADD COLUMN groups INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER hf_group_ended AFTER UPDATE OF ended ON hf_group_tasks
  WHEN NOT EXISTS (SELECT 1 FROM hf_group_tasks WHERE follow_up = NEW.follow_up AND ended IS NULL)
BEGIN
  UPDATE hf_tasks SET run_at = NEW.ended_at WHERE id = NEW.follow_up AND run_at = ${WHEN_GROUP_ENDS};
  UPDATE hf_scheduled SET run_at = NEW.ended_at WHERE run_at = ${WHEN_GROUP_ENDS} AND id = NEW.follow_up;
  UPDATE hf_clock SET groups = 0 WHERE NOT EXISTS (SELECT 1 FROM hf_group_tasks WHERE ended IS NULL);
END;
`;

/** How many executions a task had when it got a new idempotency key in its present round. */
const KEY_FROM = 'ALTER TABLE hf_facts ADD COLUMN key_from INTEGER NOT NULL DEFAULT 0;';

/** Groups of failures. Each settle call with failures adds a row to hf_failure_entries; these are added to the groups later. */
const FAILURE_GROUPS = `
CREATE TABLE hf_failure_entries (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  seen TEXT NOT NULL
) STRICT;
CREATE TABLE hf_failure_groups (
  id TEXT PRIMARY KEY,
  last_at INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE hf_failure_revision (revision INTEGER NOT NULL) STRICT;
INSERT INTO hf_failure_revision VALUES (0);
`;

/** What happened to sources and queues: changes of the state of a source, and actions of people. */
/** Counts of what needs a person or is dead, by reason. It does not contain succeeded tasks. */
const REASONS = "CREATE INDEX hf_resting_reason ON hf_resting (state, reason) WHERE state <> 'succeeded';";

const CHANGES = `
CREATE TABLE hf_changes (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  facts TEXT NOT NULL
) STRICT;
CREATE INDEX hf_changes_of ON hf_changes (kind, name);
`;

/** What the counters of hours that are kept have in all by day: reading a week needs a twentieth of the rows. */
const COUNTER_DAYS = `
CREATE TABLE hf_counter_days (
  at INTEGER NOT NULL,
  counted_as TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  PRIMARY KEY (at, counted_as)
) STRICT, WITHOUT ROWID;
INSERT INTO hf_counter_days (at, counted_as, count, first_at)
  SELECT at - at % 86400000 AS day, counted_as, sum(count), min(first_at) FROM hf_counters WHERE span = 3600000
  GROUP BY day, counted_as;
`;

/** Triggers keep these sums, so that programs of the version before, which know no such table, may go on counting. */
const SUMMED_BY_TRIGGERS = `
CREATE TRIGGER hf_counters_added AFTER INSERT ON hf_counters WHEN new.span = 3600000 BEGIN
  INSERT INTO hf_counter_days (at, counted_as, count, first_at)
  VALUES (new.at - new.at % 86400000, new.counted_as, new.count, new.first_at)
  ON CONFLICT (at, counted_as) DO UPDATE SET count = count + excluded.count, first_at = min(first_at, excluded.first_at);
END;
CREATE TRIGGER hf_counters_changed AFTER UPDATE ON hf_counters WHEN new.span = 3600000 BEGIN
  UPDATE hf_counter_days SET count = count + new.count - old.count, first_at = min(first_at, new.first_at)
  WHERE at = new.at - new.at % 86400000 AND counted_as = new.counted_as;
END;
-- Counters of hours are removed for a whole day at once, when they are added to that of the day.
CREATE TRIGGER hf_counters_removed AFTER DELETE ON hf_counters WHEN old.span = 3600000 BEGIN
  DELETE FROM hf_counter_days WHERE at = old.at - old.at % 86400000;
END;
-- A program of the version before may have counted since the table was made.
DELETE FROM hf_counter_days;
INSERT INTO hf_counter_days (at, counted_as, count, first_at)
  SELECT at - at % 86400000 AS day, counted_as, sum(count), min(first_at) FROM hf_counters WHERE span = 3600000
  GROUP BY day, counted_as;
`;

/**
 * What is counted without reading all rows: how many tasks were removed, so that there are as many tasks as ids were given less these; and
 * whether a scheduled task has failed before (NULL: a program of the version before wrote it, so its facts say it).
 */
const COUNTED = `
CREATE TABLE hf_removed (tasks INTEGER NOT NULL) STRICT;
INSERT INTO hf_removed SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'hf_tasks'), 0) - (SELECT count(*) FROM hf_tasks);
CREATE TRIGGER hf_task_removed AFTER DELETE ON hf_tasks BEGIN UPDATE hf_removed SET tasks = tasks + 1; END;
ALTER TABLE hf_scheduled ADD COLUMN failed INTEGER;
UPDATE hf_scheduled SET failed = EXISTS (SELECT 1 FROM hf_facts f WHERE f.task = hf_scheduled.id AND f.reason IS NOT NULL);
`;

/**
 * Only for a new file, where the table is empty: SQLite makes a temporary table for each row that it compares with a list, which was 40 % of
 * the time to insert one. Files of earlier versions keep `IN`, which means the same. A later step that changes hf_resting must be repeated
 * here.
 */
const RESTING_OF_A_NEW_FILE = `
DROP TABLE hf_resting;
CREATE TABLE hf_resting (
  id INTEGER PRIMARY KEY,
  state TEXT NOT NULL CHECK (
    state = 'succeeded' OR state = 'dead' OR state = 'needs_manual' OR state = 'cancelled' OR state = 'held'),
  since INTEGER NOT NULL,
  executions INTEGER NOT NULL,
  token TEXT,
  reason TEXT,
  result TEXT
) STRICT;
CREATE INDEX hf_resting_state ON hf_resting (state, id) WHERE state <> 'succeeded';
${REASONS}
`;

/** Counts the removed tasks again. The number is wrong if ids were left out by hand, or if rows were lost with damaged pages. */
export const COUNT_REMOVED = `UPDATE hf_removed SET tasks = counted.removed FROM (
  SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'hf_tasks'), 0) - (SELECT count(*) FROM hf_tasks) AS removed) AS counted
  WHERE tasks <> counted.removed`;

/** For people who query with SQL. Each migration creates it again; if only the view changes, add an empty step. */
const VIEW = `
CREATE VIEW holdfast_tasks AS
SELECT t.id, c.type, q.name AS queue, t.source,
  coalesce(e.state, CASE WHEN r.id IS NOT NULL THEN 'running' WHEN s.id IS NOT NULL THEN 'scheduled' ELSE 'ready' END) AS state,
  t.priority, nullif(c.category, '') AS category, nullif(c.needs, '{}') AS needs, t.key,
  t.unique_key, t.unique_while, t.payload, e.result, t.policy,
  coalesce(t.idempotent, 1) AS idempotent, t.submitted_at, t.created_at, s.run_at AS due_at, t.deadline,
  CASE WHEN e.state IN ('succeeded', 'dead', 'cancelled') THEN e.since END AS ended_at,
  coalesce(r.execution, max(coalesce(f.executions, 0), coalesce(e.executions, 0))) AS executions,
  coalesce(f.charged, '[]') AS charged, coalesce(f.deferrals, 0) AS deferrals,
  iif(json_valid(coalesce(f.recoveries, '[]')), json_array_length(coalesce(f.recoveries, '[]')), NULL) AS recoveries, coalesce(f.suspect, 0) > 0 AS suspect,
  coalesce(e.reason, f.reason) AS reason,
  CASE WHEN e.id IS NULL AND r.id IS NULL AND s.id IS NULL THEN
    CASE WHEN q.paused_at IS NOT NULL THEN 'queue_paused'
      WHEN o.held_by IS NOT NULL THEN o.held_by
      WHEN o.no_token AND f.needs_token AND f.suspect = 0 THEN 'budget'
      WHEN (SELECT count(*) FROM hf_running l WHERE l.limited_queue = q.id) >= q.concurrency THEN 'concurrency'
      WHEN q.per_second IS NOT NULL AND q.next_start IS NOT NULL THEN 'pace' END END AS held_by,
  w.name AS worker, r.started_at AS running_since, r.cancel AS cancel_requested, coalesce(f.suspect, 0) AS lost_in_a_row,
  CASE WHEN e.id IS NULL AND r.id IS NULL AND s.id IS NULL AND q.paused_at IS NULL THEN
    CASE WHEN o.held_by IS NOT NULL OR o.no_token AND f.needs_token AND f.suspect = 0 THEN o.opens_at
      WHEN (SELECT count(*) FROM hf_running l WHERE l.limited_queue = q.id) >= q.concurrency THEN NULL
      WHEN q.per_second IS NOT NULL THEN q.next_start END END AS held_until,
  k.progress, k.progress_at, f.error,
  (SELECT coalesce(sum(value ->> 'count'), 0) FROM json_each(iif(json_valid(f.charged), f.charged, '[]'))) AS attempts,
  (SELECT iif(json_valid(b.because), b.because ->> 'limit', NULL) FROM (
    SELECT iif(x.because_text IS NULL, x.because, (SELECT text FROM hf_texts WHERE id = x.because_text)) AS because
    FROM hf_executions x WHERE x.task = t.id AND x.charge = 'task' ORDER BY x.id DESC LIMIT 1) b) AS max_attempts,
  w.lease_until
FROM hf_tasks t
JOIN hf_classes c ON c.id = t.class
JOIN hf_queues q ON q.id = c.queue
LEFT JOIN hf_resting e ON e.id = t.id
LEFT JOIN hf_facts f ON f.task = t.id
LEFT JOIN hf_running r ON r.id = t.id
LEFT JOIN hf_workers w ON w.id = r.worker
LEFT JOIN hf_restricted o ON o.source = t.source
LEFT JOIN hf_scheduled s ON s.run_at = coalesce(f.run_at, t.run_at) AND s.id = t.id
LEFT JOIN hf_checkpoints k ON k.task = t.id;
`;

/** Each step leads from the schema of its index to the next. */
const STEPS: readonly string[] = [
  FIRST,
  SECOND,
  TROUBLE,
  CHECKPOINTS,
  LOST_LEASES,
  '', // The view alone changed.
  WALL_CLOCK,
  LOSSES,
  REDRIVES,
  SOURCE_STATES,
  RESTRICTIONS,
  NEWLY_RESTRICTED,
  PROGRESS,
  SHARED_TEXTS,
  SCHEDULES,
  WORKER_POLICIES,
  UNIQUE_UNTIL,
  COUNTERS,
  GROUPS,
  '', // The view alone changed.
  KEY_FROM,
  FAILURE_GROUPS,
  LAST_TAKERS,
  CHANGES,
  REASONS,
  COUNTER_DAYS,
  SUMMED_BY_TRIGGERS,
  COUNTED,
];

export const SCHEMA = STEPS.length;

/**
 * Brings the tables up to date, inside the caller's transaction. Nothing is touched when they are.
 * @throws StoreError if a newer version of Holdfast wrote them in a way that this one cannot keep.
 */
export function migrate(sql: Sql, path: string): void {
  const found = refuseTooNew(sql, path);
  if (found.schema >= SCHEMA) return;
  const steps = ['DROP VIEW IF EXISTS holdfast_tasks;', ...STEPS.slice(found.schema)];
  if (found.schema === 0) steps.push(RESTING_OF_A_NEW_FILE);
  sql.exec([...steps, VIEW].join('\n'));
  if (found.schema === 0)
    sql.exec('CREATE TABLE hf_schema (version INTEGER NOT NULL, least_writer INTEGER NOT NULL) STRICT');
  sql.exec(`DELETE FROM hf_schema; INSERT INTO hf_schema VALUES (${SCHEMA}, ${SCHEMA})`);
}

/**
 * What the file's schema is, if this version may write it.
 * @throws StoreError if a newer version of Holdfast wrote it in a way that this one cannot keep.
 */
export function refuseTooNew(sql: Sql, path: string): Schema {
  const found = schemaOf(sql);
  if (found.leastWriter <= SCHEMA) return found;
  throw new StoreError(
    'store_too_new',
    `${path} was written by a newer Holdfast (schema ${found.schema}); this one knows schema ${SCHEMA}. Nothing was changed. Update holdfast, or open another store.`,
  );
}

interface Schema {
  readonly schema: number;
  /** The oldest schema that may still write the file. */
  readonly leastWriter: number;
}

/** The schema number of the file; 0 if it has none yet. */
function schemaOf(sql: Sql): Schema {
  const table = sql.get("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'hf_schema'");
  if (!table) return { schema: 0, leastWriter: 0 };
  const row = sql.get<{ version: number; least_writer: number }>('SELECT version, least_writer FROM hf_schema');
  return { schema: row?.version ?? 0, leastWriter: row?.least_writer ?? 0 };
}
