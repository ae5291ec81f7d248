import pg from 'pg';
import { countersOfCopy, groupOfAll, stretched } from './copies.mjs';

const ENDED = {
  task: 'id',
  times: ['since', 'submitted_at', 'created_at', 'run_at', 'first_started_at', 'deferred_since'],
  key: 'key',
};

/** As for SQLite: what differs between the rows of two copies. */
const TABLES = {
  bodies: { task: 'id', times: ['submitted_at', 'created_at'], key: 'key' },
  live: {
    task: 'id',
    times: ['order_key', 'run_at', 'since', 'first_started_at', 'deferred_since', 'ran_at'],
    stays: { run_at: "state = 'scheduled'", order_key: "state <> 'ready'" },
  },
  ended: ENDED,
  succeeded: ENDED,
  executions: { task: 'task', own: 'id', times: ['started_at', 'ended_at'] },
  acts: { task: 'task', own: 'id', times: ['at'] },
  keys: { task: 'task', times: [], key: 'key' },
};

const DAY = 86_400_000;

/** Copies the rows of the sample in a database. Says how many rows of what there are. */
export async function copyInPostgres(url, plan) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const ask = (text, values) => client.query(text, values);
  await ask(
    "SET search_path = holdfast; SET synchronous_commit = off; SET work_mem = '256MB'; SET maintenance_work_mem = '256MB'",
  );
  await makeDays(ask, plan);
  const {
    rows: [{ rows }],
  } = await ask('SELECT max(id)::float8 AS rows FROM (SELECT id FROM executions UNION ALL SELECT id FROM acts) h');
  for (const [table, how] of Object.entries(TABLES)) await copyTable(ask, table, how, plan, rows);
  await ask(
    `SELECT setval('history_id', ${rows * plan.copies}), setval(pg_get_serial_sequence('bodies', 'id'), ${plan.sample * plan.copies})`,
  );
  // A lane's rank is the key of its first task or less.
  await ask(
    "UPDATE lanes SET rank = first.order_key, rank_seq = first.seq FROM (SELECT DISTINCT ON (lane) lane, order_key, seq FROM live WHERE state = 'ready' ORDER BY lane, order_key, seq) first WHERE lanes.id = first.lane",
  );
  await copyCounters(ask, plan);
  await copyGroups(ask, plan);
  await ask('VACUUM ANALYZE');
  const {
    rows: [counted],
  } =
    await ask(`SELECT (SELECT count(*) FROM ended) + (SELECT count(*) FROM succeeded) + (SELECT count(*) FROM live) AS tasks,
    (SELECT count(*) FROM executions) AS history, (SELECT count(*) FROM failure_groups) AS groups`);
  await client.end();
  return counted;
}

/** Partitions of the days before today, which a store has that is older than a day. */
async function makeDays(ask, { start }) {
  await ask('DROP TABLE IF EXISTS succeeded_earlier');
  const today = Math.floor(Date.now() / DAY);
  for (let day = Math.floor(start / DAY); day < today; day += 1) await ask('SELECT add_day($1)', [day]);
}

async function copyTable(ask, table, { task, own, times, key, stays = {} }, plan, rows) {
  for (const column of times) {
    const unless = stays[column] === undefined ? '' : ` WHERE NOT (${stays[column]})`;
    await ask(`UPDATE ${table} SET ${column} = ${stretched(column, plan)}${unless}`);
  }
  const found = await ask(
    'SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped',
    [table],
  );
  const columns = found.rows.map(({ name }) => name);
  const copied = columns.map((column) => {
    if (column === task || (table === 'live' && column === 'seq')) return `${column} + copy * ${plan.sample}`;
    if (column === own) return `${column} + copy * ${rows}::bigint`;
    if (column === key) return `${column} || '-' || copy`;
    if (!times.includes(column)) return column;
    const later = `${column} + copy * ${plan.period}::bigint`;
    return stays[column] === undefined ? later : `CASE WHEN ${stays[column]} THEN ${column} ELSE ${later} END`;
  });
  await ask(`CREATE TEMP TABLE sample AS SELECT * FROM ${table}`);
  await ask(
    `INSERT INTO ${table} (${columns}) SELECT ${copied} FROM sample, generate_series(1, ${plan.copies - 1}) copy ORDER BY copy, ${task}`,
  );
  await ask('DROP TABLE sample');
}

async function copyCounters(ask, plan) {
  const { rows: totals } = await ask(
    'SELECT counted_as, sum(count)::bigint AS count FROM counters GROUP BY counted_as',
  );
  await ask('DELETE FROM counters');
  for (let copy = 0; copy < plan.copies; copy += 1) {
    const { span, at, firstAt } = countersOfCopy(plan, copy);
    await ask(
      `INSERT INTO counters (span, at, counted_as, count, first_at)
       SELECT $1, $2, name, count, $3 FROM unnest($4::text[], $5::bigint[]) t (name, count)
       ON CONFLICT (span, at, counted_as) DO UPDATE SET count = counters.count + excluded.count`,
      [span, at, firstAt, totals.map((row) => row.counted_as), totals.map((row) => row.count)],
    );
  }
}

async function copyGroups(ask, plan) {
  const { rows: groups } = await ask('SELECT id, data FROM failure_groups');
  for (const { id, data } of groups) {
    const group = groupOfAll(data, plan);
    await ask('UPDATE failure_groups SET last_at = $1, data = $2 WHERE id = $3', [
      group.lastAt,
      JSON.stringify(group),
      id,
    ]);
  }
}
