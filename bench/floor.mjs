#!/usr/bin/env node
import { mkdtempSync, rmSync } from 'node:fs';
// The raw floor: the least durable state changes that a queue needs, batched, with nothing else. It is the denominator
// of Holdfast's speed figures. Packages are resolved from the folder that you stand in.
//   node ../shared/bench/floor.mjs sqlite [--durability full|process] [--batch 100] [--n 300000] [--dir DIR]
//   node ../shared/bench/floor.mjs postgres --url postgres://… [--batch 100] [--n 200000]
// Prints one JSON object a line: {system, scenario, concurrency, rate_per_s, durability, batch, n}.
// Scenarios: enqueue (bulk), drain (claim + settle, one lane), fail (each task fails twice, then succeeds: executions/s).
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(join(process.cwd(), 'package.json'));
const [engine, ...rest] = process.argv.slice(2);
const opt = (name, fallback) => {
  const i = rest.indexOf(`--${name}`);
  return i < 0 ? fallback : rest[i + 1];
};
const durability = opt('durability', 'full');
const batch = Number(opt('batch', 100));
const n = Number(opt('n', engine === 'sqlite' ? 300_000 : 200_000));
const payload = (i) =>
  JSON.stringify({ n: i, to: `user${i}@example.com`, subject: 'welcome', ref: 'abcdefghijklmnopqrstuvwxyz0123456789' });
const tick = () => new Promise((resolve) => setImmediate(resolve));
const report = (scenario, count, from) =>
  console.log(
    JSON.stringify({
      system: `floor-${engine}`,
      scenario,
      concurrency: 100,
      rate_per_s: Math.round(count / ((performance.now() - from) / 1000)),
      durability: engine === 'postgres' ? 'full' : durability,
      batch,
      n: count,
    }),
  );

async function sqlite() {
  const Database = require('better-sqlite3');
  const dir = mkdtempSync(join(opt('dir', tmpdir()), 'floor-'));
  const db = new Database(join(dir, 'q.db'));
  db.pragma('journal_mode = WAL');
  db.pragma(`synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`);
  db.exec(`CREATE TABLE tasks(id INTEGER PRIMARY KEY, state INTEGER NOT NULL DEFAULT 0, run_at INTEGER NOT NULL,
    lease_until INTEGER, attempts INTEGER NOT NULL DEFAULT 0, payload TEXT NOT NULL);
    CREATE INDEX ready ON tasks(run_at, id) WHERE state = 0;`);
  const insert = db.prepare('INSERT INTO tasks(run_at, payload) VALUES (?, ?)');
  const claim = db.prepare(`UPDATE tasks SET state = 1, lease_until = ?, attempts = attempts + 1 WHERE id IN
    (SELECT id FROM tasks WHERE state = 0 AND run_at <= ? ORDER BY run_at, id LIMIT ?) RETURNING id, attempts, payload`);
  const done = db.prepare('UPDATE tasks SET state = 2, lease_until = NULL WHERE id = ? AND state = 1 AND attempts = ?');
  const again = db.prepare(
    'UPDATE tasks SET state = 0, run_at = ?, lease_until = NULL WHERE id = ? AND state = 1 AND attempts = ?',
  );
  const settle = db.transaction((rows) => {
    for (const r of rows) r.ok ? done.run(r.id, r.attempts) : again.run(Date.now(), r.id, r.attempts);
  });
  const fill = db.transaction((from, count) => {
    for (let i = 0; i < count; i++) insert.run(Date.now(), payload(from + i));
  });
  const drain = async (handler) => {
    let executions = 0;
    for (;;) {
      const now = Date.now();
      const rows = claim.all(now + 30_000, now, batch);
      if (!rows.length) return executions;
      executions += rows.length;
      settle(
        await Promise.all(
          rows.map(async (r) => ({
            id: r.id,
            attempts: r.attempts,
            ok: await handler(JSON.parse(r.payload), r.attempts),
          })),
        ),
      );
      await tick();
    }
  };
  let from = performance.now();
  for (let i = 0; i < n; i += batch) fill(i, Math.min(batch, n - i));
  report('enqueue', n, from);
  from = performance.now();
  report('drain', await drain(async () => true), from);
  for (let i = 0; i < n / 3; i += batch) fill(i, batch);
  from = performance.now();
  report('fail', await drain(async (_, attempt) => attempt > 2), from);
  db.close();
  rmSync(dir, { recursive: true });
}

async function postgres() {
  const { Client } = require('pg');
  const db = new Client({ connectionString: opt('url') });
  await db.connect();
  await db.query(`DROP SCHEMA IF EXISTS floor CASCADE; CREATE SCHEMA floor; CREATE TABLE floor.tasks(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state smallint NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT clock_timestamp(), lease_until timestamptz, attempts int NOT NULL DEFAULT 0, payload jsonb NOT NULL);
    CREATE INDEX ready ON floor.tasks(run_at, id) WHERE state = 0;`);
  const q = (name, text, values) => db.query({ name, text, values });
  const fill = (from, count) =>
    q('fill', 'INSERT INTO floor.tasks(payload) SELECT unnest($1::jsonb[])', [
      Array.from({ length: count }, (_, i) => payload(from + i)),
    ]);
  const claim = () =>
    q(
      'claim',
      `UPDATE floor.tasks t SET state = 1, lease_until = clock_timestamp() + interval '30 s', attempts = attempts + 1 FROM
    (SELECT id FROM floor.tasks WHERE state = 0 AND run_at <= clock_timestamp() ORDER BY run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED) c
    WHERE t.id = c.id RETURNING t.id, t.attempts, t.payload`,
      [batch],
    );
  const done = (rows) =>
    q(
      'done',
      `UPDATE floor.tasks t SET state = 2, lease_until = NULL FROM unnest($1::bigint[], $2::int[]) AS u(id, attempts)
    WHERE t.id = u.id AND t.state = 1 AND t.attempts = u.attempts`,
      [rows.map((r) => r.id), rows.map((r) => r.attempts)],
    );
  const again = (rows) =>
    q(
      'again',
      `UPDATE floor.tasks t SET state = 0, run_at = clock_timestamp(), lease_until = NULL FROM unnest($1::bigint[], $2::int[]) AS u(id, attempts)
    WHERE t.id = u.id AND t.state = 1 AND t.attempts = u.attempts`,
      [rows.map((r) => r.id), rows.map((r) => r.attempts)],
    );
  const drain = async (handler) => {
    let executions = 0;
    for (;;) {
      const { rows } = await claim();
      if (!rows.length) return executions;
      executions += rows.length;
      const ended = await Promise.all(rows.map(async (r) => ({ ...r, ok: await handler(r.payload, r.attempts) })));
      const ok = ended.filter((r) => r.ok),
        failed = ended.filter((r) => !r.ok);
      if (ok.length) await done(ok);
      if (failed.length) await again(failed);
    }
  };
  let from = performance.now();
  for (let i = 0; i < n; i += batch) await fill(i, Math.min(batch, n - i));
  report('enqueue', n, from);
  from = performance.now();
  report('drain', await drain(async () => true), from);
  for (let i = 0; i < n / 3; i += batch) await fill(i, batch);
  from = performance.now();
  report('fail', await drain(async (_, attempt) => attempt > 2), from);
  await db.query('DROP SCHEMA floor CASCADE');
  await db.end();
}

const run = { sqlite, postgres }[engine];
if (!run) {
  console.error(
    'usage: floor.mjs sqlite|postgres [--durability full|process] [--batch 100] [--n N] [--url postgres://…] [--dir DIR]',
  );
  process.exit(2);
}
await run();
