import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openInput } from '../../src/cli/import/input.ts';
import { linesIn } from '../../src/cli/import/lines.ts';
import { mappedInput, readMapping } from '../../src/cli/import/mapping.ts';
import { ImportReader, LONGEST_LINE } from '../../src/cli/import/reader.ts';
import { instantIn } from '../../src/cli/import/zones.ts';
import Database from '../database.ts';

const MAPPINGS = fileURLToPath(new URL('../../examples/mappings', import.meta.url));
const NOW = Date.UTC(2026, 4, 30);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-mapping-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string | object): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

function database(name: string, sql: string): string {
  const path = join(folder, name);
  rmSync(path, { force: true });
  const db = new Database(path);
  db.exec(sql);
  db.close();
  return path;
}

/** What becomes of each row: its task, or why it is refused. */
async function imported(path: string, mapping: string) {
  const input = openInput(path);
  try {
    const mapped = await mappedInput(path, input, readMapping(mapping));
    const reader = new ImportReader({ actor: 'eva', file: input.name, now: () => NOW });
    const all = [];
    for await (const lines of linesIn(mapped.chunks(), LONGEST_LINE)) {
      for (const line of lines) {
        const reading = await reader.read(line);
        all.push(reading && 'task' in reading ? reading.task : reading?.objections.map(({ text }) => text).join('; '));
      }
    }
    return all;
  } finally {
    input.close();
  }
}

describe('the ready mapping', () => {
  const ready = (name: string) => join(MAPPINGS, `${name}.yaml`);
  const counts = (reason: string, count: number) => [expect.objectContaining({ reason, count })];

  test('pending-moves keeps state, counts, next and last time of each move, under the root of the file', async () => {
    const item = { src: 'inbox/a', dest: 'done/a', reason: 'locked', last_attempt_at: '2026-01-02T08:00:00' };
    const items = [
      {
        ...item,
        id: '0004',
        status: 'pending',
        attempt_count: 3,
        next_eligible_at: '2999-01-01T00:40:00',
        last_error: 'in use',
      },
      { ...item, id: 'mv-2', status: 'abandoned', attempt_count: 10 },
      { ...item, id: 'mv-3', status: 'needs_manual', reason: 'dest_exists', attempt_count: 1 },
      { ...item, id: 'mv-4', status: 'pending', attempt_count: 0 },
      { ...item, id: 'mv-5', status: 'lost', attempt_count: 0 },
    ];
    const path = file('pending_moves.json', { version: 1, workspace_root: '/ws', items });
    expect(await imported(path, ready('pending-moves'))).toMatchObject([
      {
        type: 'file_move',
        key: '0004',
        payload: '{"from":"/ws/inbox/a","to":"/ws/done/a"}',
        stands: 'waiting',
        dueAt: Date.UTC(2999, 0, 1, 0, 40),
        charged: counts('fs.locked', 3),
        error: 'in use',
      },
      { stands: 'dead', endedAt: Date.UTC(2026, 0, 2, 8), charged: counts('fs.locked', 10) },
      { stands: 'needs_manual', charged: counts('fs.dest_exists', 1) },
      { stands: 'waiting', charged: [], delay: 0 },
      expect.stringContaining('state must be one of'),
    ]);
  });

  test('runs tells a run that waits for its retry from one that has failed for good', async () => {
    const path = database(
      'runs.db',
      `CREATE TABLE runs (id TEXT, status TEXT, category TEXT, submitted_at TEXT, retry_count INTEGER, next_retry_at TEXT, error_class TEXT);
       INSERT INTO runs VALUES ('7', 'Error', 'web', '2026-01-01 09:00:00', 2, '2999-01-01T00:00:00Z', 'retryable'),
         ('8', 'Error', 'web', '2026-01-01 09:00:00', 1, NULL, 'final'), ('9', 'Passed', 'api', '2026-01-01 09:00:00', 0, NULL, NULL),
         ('10', 'Discovered', 'api', '2026-01-01 09:00:00', 0, NULL, NULL)`,
    );
    expect(await imported(path, ready('runs'))).toMatchObject([
      {
        key: 'run-7',
        category: 'web',
        stands: 'waiting',
        dueAt: Date.UTC(2999, 0, 1),
        charged: counts('transient', 2),
      },
      { key: 'run-8', stands: 'dead', reason: 'permanent' },
      { key: 'run-9', stands: 'succeeded' },
      { key: 'run-10', stands: 'waiting', submittedAt: Date.UTC(2026, 0, 1, 9) },
    ]);
  });

  test('task-queue keeps payload, priority, limit, attempts and the last error', async () => {
    const path = database(
      'queue.db',
      `CREATE TABLE task_queue (id INTEGER, type TEXT, payload TEXT, priority INTEGER, status TEXT, attempts INTEGER, max_attempts INTEGER,
         error_message TEXT, run_after_utc DATETIME, finished_at_utc DATETIME);
       INSERT INTO task_queue VALUES (4, 'resize', '{"file": "a.png"}', 9, 'leased', 1, 3, 'timeout', NULL, NULL),
         (5, 'resize', '{}', 1, 'failed', 3, 3, 'no picture', NULL, '2026-01-02 08:00:00')`,
    );
    expect(await imported(path, ready('task-queue'))).toMatchObject([
      {
        key: 'task-4',
        payload: '{"file":"a.png"}',
        priority: 9,
        policy: '{"maxAttempts":3}',
        stands: 'waiting',
        error: 'timeout',
      },
      { key: 'task-5', stands: 'dead', endedAt: Date.UTC(2026, 0, 2, 8), charged: counts('unknown', 3) },
    ]);
  });

  test('quarantined-jobs gives each job to a person, with its failures', async () => {
    const path = database(
      'ingestion.db',
      `CREATE TABLE quarantined_jobs (job_id TEXT, job_type TEXT, payload TEXT, attempts INTEGER, failure_type TEXT, error_message TEXT);
       INSERT INTO quarantined_jobs VALUES ('a1', 'imap_mailbox', '{"mailbox": "INBOX"}', 5, 'rate_limit', 'Too many requests')`,
    );
    expect(await imported(path, ready('quarantined-jobs'))).toMatchObject([
      {
        type: 'imap_mailbox',
        key: 'job-a1',
        stands: 'needs_manual',
        charged: counts('rate_limited', 5),
        error: 'Too many requests',
      },
    ]);
  });

  test('async-tasks keeps the place in the schedule', async () => {
    const path = database(
      'tasks.db',
      `CREATE TABLE async_tasks (task_id TEXT, task_type TEXT, entity_id TEXT, status TEXT, attempts INTEGER, next_run_at TEXT,
         created_at TEXT, updated_at TEXT, error_message TEXT);
       INSERT INTO async_tasks VALUES ('t-1', 'analysis', 'ACME', 'PENDING', 2, '2999-01-01 00:15:00', '2026-01-01 00:00:00',
         '2026-01-01 00:05:00', 'No.'), ('t-2', 'analysis', 'NONE', 'FAILED', 4, NULL, '2026-01-01 00:00:00', '2026-01-01 02:00:00', 'No.')`,
    );
    expect(await imported(path, ready('async-tasks'))).toMatchObject([
      { key: 't-1', payload: '{"position":"ACME"}', dueAt: Date.UTC(2999, 0, 1, 0, 15), charged: counts('unknown', 2) },
      { key: 't-2', stands: 'dead', endedAt: Date.UTC(2026, 0, 1, 2), error: 'No.' },
    ]);
  });
});

describe('a mapping', () => {
  const TASK = '{ type: t, key: "k-{id}", submitted_at: "{at}" }';
  const map = (more: string) => file('map.yaml', more);

  test('reads the same rows of CSV, JSON and JSONL', async () => {
    const rows = [
      { id: '1', text: 'a, "b"\nc', at: '2026-01-01 10:00' },
      { id: '2', text: null, at: '2026-07-01 10:00' },
    ];
    const csv = '\ufeffid,text,at\r\n1,"a, ""b""\nc",2026-01-01 10:00\r\n2,,2026-07-01 10:00\r\n';
    const mapping = map(
      'zone: Europe/Prague\ntask: { type: t, key: "k-{id}", payload: "{text}", submitted_at: "{at}" }',
    );
    const found = [
      await imported(file('rows.csv', csv), mapping),
      await imported(file('rows.json', rows), mapping),
      await imported(file('rows.jsonl', rows.map((row) => JSON.stringify(row)).join('\n')), mapping),
    ];
    expect(found[0]).toMatchObject([
      { key: 'k-1', payload: '"a, \\"b\\"\\nc"', submittedAt: Date.UTC(2026, 0, 1, 9) },
      { key: 'k-2', payload: 'null', submittedAt: Date.UTC(2026, 6, 1, 8) },
    ]);
    for (const [index, tasks] of found.entries()) {
      const name = ['rows.csv', 'rows.json', 'rows.jsonl'][index] as string;
      const notes = [1, 2].map((line) => ({ by: { actor: 'eva', note: `${name}, line ${line}` } }));
      expect(tasks).toEqual((found[0] as object[]).map((task, row) => ({ ...task, ...notes[row] })));
    }
  });

  test('reads numbers from the texts of CSV, and other values by `json`', async () => {
    const csv = 'id,prio,runs,limit,again,cpu\n1,7,4,9,false,4\n2,,,,,\n';
    const mapping = map(
      'task: { type: t, key: "k-{id}", priority: "{prio}", executions: "{runs}", retry: { max_attempts: "{limit}" }, idempotent: { json: again }, needs: { cpu: { json: cpu } } }',
    );
    const policy = '{"maxAttempts":9}';
    expect(await imported(file('rows.csv', csv), mapping)).toMatchObject([
      { key: 'k-1', priority: 7, executions: 4, policy, idempotent: false, needs: { cpu: 4 } },
      { key: 'k-2', priority: 0 },
    ]);
  });

  test('refuses a time without a zone, unless the mapping names one, and numbers unless it says what they count', async () => {
    const path = file('times.json', [
      { id: 1, at: '2026-01-01 10:00' },
      { id: 2, at: 1_767_258_000 },
    ]);
    const refused = expect.stringContaining('submitted_at must be a time with its zone');
    expect(await imported(path, map(`task: ${TASK}`))).toEqual([refused, refused]);
    const submittedAt = Date.UTC(2026, 0, 1, 9);
    expect(await imported(path, map(`zone: Europe/Prague\ntimes: seconds\ntask: ${TASK}`))).toMatchObject([
      { submittedAt },
      { submittedAt },
    ]);
  });

  test.each([
    ['task: { tpye: t }', 'task: there is no `tpye`, did you mean `type`?'],
    ['tasks: {}', 'needs `task`'],
    ['zone: Mars\ntask: { type: t }', 'there is no zone Mars'],
    ['format: xml\ntask: { type: t }', '`format` must be one of csv, json, jsonl, sqlite'],
    ['times: hours\ntask: { type: t }', '`times` must be one of seconds, milliseconds'],
    ['task: {', 'cannot be read'],
    ['task: { type: t, key: "{idd}" }', 'names the column `idd`'],
    ['items: jobs\ntask: { type: t }', 'has no list `jobs`'],
    ['format: sqlite\ntask: { type: t }', 'needs a `query`'],
    ['format: sqlite\nquery: SELECT 1\ntask: { type: t }', 'not a database'],
    ['format: csv\ntask: { type: t }', 'is not CSV'],
  ])('is refused as %j', async (text, why) => {
    await expect(imported(file('one.json', [{ id: 'a"b' }]), map(text))).rejects.toThrow(why);
  });

  test.each([
    ['Europe/Prague', '2026-03-29 02:30', '2026-03-29T01:30:00.000Z'],
    ['Europe/Prague', '2026-10-25 02:30', '2026-10-25T00:30:00.000Z'],
    ['America/New_York', '2026-11-01T01:30:00.25', '2026-11-01T05:30:00.250Z'],
    ['Asia/Kolkata', '2026-01-01 00:00', '2025-12-31T18:30:00.000Z'],
    ['UTC', '2026-01-01 24:61', undefined],
    ['UTC', '2026-01-01T00:00:00Z', undefined],
  ])('reads a time of %s: %s is %s', (zone, text, instant) => {
    expect(instantIn(zone, text)).toBe(instant);
  });
});
