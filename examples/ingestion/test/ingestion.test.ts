import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openHoldfast, type StoreOpener } from 'holdfast';
import { postgres } from 'holdfast/postgres';
import { sqlite } from 'holdfast/sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { startCluster } from '../../../test/postgres/cluster.mjs';
import { connectors } from '../connectors.js';
import { Documents } from '../documents.js';
import { closing, newFolder, openScene, YAML } from './scene.js';

const run = promisify(execFile);

let cluster: ReturnType<typeof startCluster> | undefined;
afterAll(async () => (await cluster)?.stop());

const STORES: readonly [name: string, open: () => StoreOpener | Promise<StoreOpener>][] = [
  ['SQLite', () => sqlite(':memory:')],
  [
    'PostgreSQL',
    async () => {
      cluster ??= startCluster({ fsync: false });
      return postgres((await cluster).url('postgres'));
    },
  ],
];

const SAMPLES = fileURLToPath(new URL('../samples', import.meta.url));

/** All four connectors, each hour. */
const SCHEDULES = `
schedules:
  files: { type: local_files, input: { folder: ${join(SAMPLES, 'files')} }, cron: "@hourly" }
  notes: { type: obsidian_vault, input: { vault: ${join(SAMPLES, 'vault')} }, cron: "@hourly" }
  mail: { type: imap_mailbox, input: { user: ada, mailbox: INBOX }, cron: "@hourly" }
  issues: { type: github_repository, input: { repository: octo/notes }, cron: "@hourly" }
`;

describe.each(STORES)('on %s', (_, store) => {
  test('sources are read on their schedules, and the outage of two of them touches neither of the others', async () => {
    const { kit, server } = await openScene({ yaml: SCHEDULES, store: await store() });
    server.repositories['octo/notes'] = ['A'];
    server.trouble['octo/notes'] = Array.from({ length: 3 }, () => ({ status: 503 }));
    await kit.advance('3h5m');
    const tasks = await kit.holdfast.list();
    const states = (type: string) => tasks.filter((task) => task.type === type).map(({ state }) => state);
    expect(states('local_files')).toEqual(['succeeded', 'succeeded', 'succeeded']);
    expect(states('obsidian_vault')).toEqual(['succeeded', 'succeeded', 'succeeded']);
    expect(states('github_repository')).toEqual(['succeeded', 'succeeded', 'succeeded']);
    // The next time replaces a task that waits for its retry: one of them has not ended, and none is dead.
    expect(states('imap_mailbox').filter((state) => state !== 'cancelled')).toEqual(['scheduled']);
    const { types } = await kit.holdfast.stats();
    expect(types.find(({ type }) => type === 'github_repository')).toMatchObject({
      executions: 6,
      successes: 3,
      failures: 3,
      retries: { total: 3, successful: 1, failed: 2, byFailureKind: { transient: 3 } },
    });
  });
});

test('a week of hourly readings leaves a store of a day, and statistics that are the count of its events', async () => {
  const week = SCHEDULES.replaceAll(/ {2}(?:mail|notes|files):.*\n/g, '');
  const { kit, server } = await openScene({ yaml: `${week}retention: { succeeded: 1d }\n` });
  server.repositories['octo/notes'] = ['A'];
  const trouble = () => [{ status: 503 }, { status: 429 }];
  for (let day = 0; day < 7; day += 1) {
    server.trouble['octo/notes'] = trouble();
    await kit.advance('1d');
  }
  const { byState } = await kit.holdfast.counts();
  // 24 of a day, and what ended since the last removal, an hour ago at most.
  expect(byState.succeeded).toBeLessThanOrEqual(26);
  const settled = kit.events.filter((event) => event.kind === 'settled');
  const successes = settled.filter((event) => event.kind === 'settled' && event.decision.next === 'succeeded');
  expect(successes.length).toBeGreaterThan(160);
  const { total } = await kit.holdfast.stats();
  expect(total).toMatchObject({
    executions: settled.length,
    successes: successes.length,
    failures: settled.length - successes.length,
  });
});

test('a restart keeps the budget of a task: its attempts, their kind, and when it is due', async () => {
  const store = sqlite(join(newFolder(), 'ingestion.db'));
  const first = await openScene({ store });
  const { id } = await first.kit.holdfast.enqueue(first.tasks.imapMailbox, { user: 'ada', mailbox: 'INBOX' });
  await first.kit.advance('5m');
  const before = await first.kit.holdfast.get(id);
  expect(before).toMatchObject({ state: 'scheduled', attempts: 2, reason: 'net.refused' });
  const start = first.kit.clock.now();
  await first.kit.close();
  const again = await openScene({ store, start: new Date(start) });
  expect(await again.kit.holdfast.get(id)).toMatchObject({ attempts: 2, dueAt: before.dueAt });
  await again.kit.advance('3h');
  expect(await again.kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 8 });
  // A person's retry of an ended task is a new round, with a new budget.
  await again.kit.holdfast.retry(id);
  expect((await again.kit.holdfast.get(id)).attempts).toBe(0);
});

const CLI = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

test('the command line shows the policies, the budget of a task, the retries of each connector, and what is quarantined', async () => {
  const file = join(newFolder(), 'ingestion.db');
  const { kit, tasks, server } = await openScene({ store: sqlite(file) });
  server.repositories['octo/notes'] = ['A'];
  server.trouble['octo/notes'] = [{ status: 503 }];
  await kit.holdfast.enqueue(tasks.imapMailbox, { user: 'ada', mailbox: 'INBOX' });
  await kit.holdfast.enqueue(tasks.githubRepository, { repository: 'octo/notes' });
  await kit.advance('4h');
  await kit.close();
  const config = fileURLToPath(new URL('../holdfast.yaml', import.meta.url));
  const ask = async (...args: string[]) => {
    const { stdout } = await run(process.execPath, [CLI, ...args, '--store', file, '--config', config]);
    return JSON.parse(stdout);
  };
  const [policies, shown, metrics, quarantined] = await Promise.all([
    ask('policies', '--json'),
    ask('show', '1', '--json'),
    ask('stats', '--json=retry_metrics'),
    ask('quarantine', 'list', 'type:imap_mailbox', '--json'),
  ]);
  expect(policies.items).toContainEqual(
    expect.objectContaining({
      name: 'imap_mailbox',
      max_attempts: 6,
      rules: [
        expect.objectContaining({ name: 'transient', max_attempts: 8 }),
        expect.objectContaining({ name: 'rate_limited', backoff: expect.objectContaining({ base: 600_000 }) }),
      ],
    }),
  );
  const { budget } = shown;
  expect(budget).toMatchObject({ attempts: 8, max_attempts: 8, failure_type: 'transient' });
  expect(Date.parse(budget.last_attempt_at) - Date.parse(budget.first_attempt_at)).toBe(budget.total_delay_ms);
  const kinds = { permanent: 0, rate_limited: 0, unknown: 0 };
  expect(metrics).toEqual({
    retry_metrics: {
      github_repository: {
        total_retries: 1,
        successful_retries: 1,
        failed_retries: 0,
        avg_attempts_until_success: 2,
        by_failure_type: { ...kinds, transient: 1 },
      },
      imap_mailbox: {
        total_retries: 7,
        successful_retries: 0,
        failed_retries: 7,
        avg_attempts_until_success: null,
        by_failure_type: { ...kinds, transient: 7 },
      },
    },
  });
  expect(quarantined.items).toMatchObject([{ state: 'dead', reason: 'net.refused' }]);
});

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));

test('two processes work hundreds of sources once each: those that are there succeed, the others are dead at once', async () => {
  const folder = newFolder();
  const [config, store] = [join(folder, 'holdfast.yaml'), join(folder, 'ingestion.db')];
  writeFileSync(config, YAML);
  const there = Array.from({ length: 200 }, (_, n) => join(folder, `source-${n}`));
  for (const path of there) mkdirSync(path);
  const { localFiles } = connectors(new Documents(folder), {
    imap: { host: '', port: 0, secure: false, password: '' },
  });
  const holdfast = await openHoldfast({ store: sqlite(store), tasks: [localFiles] });
  closing.push(() => holdfast.close());
  const missing = there.map((path) => `${path}-nowhere`);
  await holdfast.enqueueAll(
    'local_files',
    [...there, ...missing].map((path) => ({ folder: path })),
  );
  const args = [MAIN, '--config', config, '--store', store, '--documents', join(folder, 'documents')];
  const children = [0, 1].map(() => spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }));
  closing.push(() => children.map((child) => child.kill('SIGKILL')));
  const lines = await said(children, 400);
  const ended = children.map((child) => once(child, 'close'));
  for (const child of children) child.kill('SIGTERM');
  expect((await Promise.all(ended)).map(([code]) => code)).toEqual([0, 0]);
  expect(Math.min(...lines)).toBeGreaterThan(0);
  const { byState } = await holdfast.counts();
  expect(byState).toMatchObject({ succeeded: 200, dead: 200 });
  const tasks = await holdfast.list({ limit: 400 });
  expect(tasks.every(({ executions }) => executions === 1)).toBe(true);
});

/** Resolves when the processes have said so many lines together, with how many each has said. */
function said(children: readonly ChildProcess[], lines: number): Promise<readonly number[]> {
  return new Promise((resolve, reject) => {
    const counts = children.map(() => 0);
    for (const [index, child] of children.entries()) {
      child.once('exit', (code) => reject(new Error(`A process ended with ${code}.`)));
      createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', () => {
        counts[index] = (counts[index] ?? 0) + 1;
        if (counts.reduce((sum, each) => sum + each, 0) === lines) resolve(counts);
      });
    }
  });
}
