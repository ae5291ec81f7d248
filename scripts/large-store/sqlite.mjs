import Database from 'better-sqlite3';
import { countersOfCopy, groupOfAll, stretched } from './copies.mjs';

const WAITS = 'id IN (SELECT id FROM hf_scheduled)';

/** What differs between the rows of two copies: numbers of tasks, numbers of the rows themselves, times, and keys. */
const TABLES = {
  hf_tasks: { task: 'id', times: ['submitted_at', 'created_at', 'run_at'], key: 'key', stays: { run_at: WAITS } },
  hf_resting: { task: 'id', times: ['since'] },
  hf_facts: {
    task: 'task',
    times: ['first_started_at', 'deferred_since', 'last_started_at', 'run_at'],
    stays: { run_at: 'task IN (SELECT id FROM hf_scheduled)' },
  },
  hf_executions: { task: 'task', own: 'id', times: ['started_at', 'ended_at'] },
  hf_acts: { task: 'task', own: 'id', times: ['at'] },
  hf_keys: { task: 'task', times: [], key: 'key' },
  hf_scheduled: { task: 'id', times: [] },
  // Its tasks are of a queue whose order is by time.
  hf_ready: { task: 'seq', times: ['order_key'] },
};

/** Copies the rows of the sample in a file. Says how many rows of what there are. */
export function copyInSqlite(path, plan) {
  const sql = new Database(path);
  sql.pragma('synchronous = OFF');
  sql.pragma('cache_size = -400000');
  sql.pragma('wal_autocheckpoint = 100000');
  for (const [table, how] of Object.entries(TABLES)) sql.transaction(() => copyTable(sql, table, how, plan))();
  sql.transaction(() => {
    sql.exec(`UPDATE hf_active SET (order_key, seq) =
      (SELECT order_key, seq FROM hf_ready r WHERE r.lane = hf_active.lane ORDER BY order_key, seq LIMIT 1)`);
    sql.exec('UPDATE hf_clock SET acts_told = (SELECT max(id) FROM hf_acts)');
    copyCounters(sql, plan);
    copyGroups(sql, plan);
  })();
  sql.exec('ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)');
  const count = (table) => sql.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
  const counted = { tasks: count('hf_tasks'), history: count('hf_executions'), groups: count('hf_failure_groups') };
  sql.close();
  return counted;
}

function copyTable(sql, table, { task, own, times, key, stays = {} }, plan) {
  for (const column of times) {
    const unless = stays[column] === undefined ? '' : ` WHERE NOT ${stays[column]}`;
    // An order is a number with a fraction.
    const cast = table === 'hf_ready' ? 'real' : 'integer';
    sql.exec(`UPDATE ${table} SET ${column} = CAST(${stretched(column, plan)} AS ${cast})${unless}`);
  }
  const rows = own && sql.prepare(`SELECT max(${own}) FROM ${table}`).pluck().get();
  const columns = sql.pragma(`table_info(${table})`).map(({ name }) => name);
  const copied = columns.map((column) => {
    if (column === task) return `${column} + copy * ${plan.sample}`;
    if (column === own) return `${column} + copy * ${rows}`;
    if (column === key) return `${column} || '-' || copy`;
    if (!times.includes(column)) return column;
    const later = `${column} + copy * ${plan.period}`;
    return stays[column] === undefined ? later : `CASE WHEN ${stays[column]} THEN ${column} ELSE ${later} END`;
  });
  sql.exec(`CREATE TEMP TABLE sample AS SELECT * FROM ${table}`);
  const insert = sql.prepare(
    `INSERT INTO ${table} (${columns}) SELECT ${copied} FROM (SELECT *, ? AS copy FROM sample)`,
  );
  for (let copy = 1; copy < plan.copies; copy += 1) insert.run(copy);
  sql.exec('DROP TABLE sample');
}

function copyCounters(sql, plan) {
  const totals = sql.prepare('SELECT counted_as, sum(count) AS count FROM hf_counters GROUP BY counted_as').all();
  sql.exec('DELETE FROM hf_counters');
  const add = sql.prepare(`INSERT INTO hf_counters (span, at, counted_as, count, first_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (span, at, counted_as) DO UPDATE SET count = count + excluded.count`);
  for (let copy = 0; copy < plan.copies; copy += 1) {
    const { span, at, firstAt } = countersOfCopy(plan, copy);
    for (const { counted_as, count } of totals) add.run(span, at, counted_as, count, firstAt);
  }
  sql.exec(`DELETE FROM hf_counter_days; INSERT INTO hf_counter_days (at, counted_as, count, first_at)
    SELECT at - at % 86400000 AS day, counted_as, sum(count), min(first_at) FROM hf_counters WHERE span = 3600000 GROUP BY day, counted_as`);
}

function copyGroups(sql, plan) {
  const update = sql.prepare('UPDATE hf_failure_groups SET last_at = ?, data = ? WHERE id = ?');
  for (const { id, data } of sql.prepare('SELECT id, data FROM hf_failure_groups').all()) {
    const group = groupOfAll(JSON.parse(data), plan);
    update.run(group.lastAt, JSON.stringify(group), id);
  }
}
