import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DurationInput, StoreOpener } from 'holdfast';
import { InvalidConfigError, loadConfig, parseConfig } from 'holdfast/config';
import { postgres } from 'holdfast/postgres';
import { sqlite } from 'holdfast/sqlite';
import { openTestHoldfast, type TestOptions } from 'holdfast/testing';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { startCluster } from '../../../test/postgres/cluster.mjs';
import { analysisTask } from '../analysis.js';
import { validate } from '../validate.js';

const positions = fileURLToPath(new URL('../positions', import.meta.url));
const config = await loadConfig(fileURLToPath(new URL('../holdfast.yaml', import.meta.url)));
const task = analysisTask(positions);

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Every store that keeps the schedule; each is opened empty. */
const STORES: readonly [name: string, open: () => StoreOpener | Promise<StoreOpener>][] = [
  ['SQLite in memory', () => sqlite(':memory:')],
  ['SQLite in a file', () => sqlite(join(newFolder(), 'analysis.db'))],
  ['PostgreSQL', () => postgresOnItsOwn()],
];

let cluster: ReturnType<typeof startCluster> | undefined;

afterAll(async () => (await cluster)?.stop());

/** A server of these tests. Each validation leaves its database empty. */
async function postgresOnItsOwn(): Promise<StoreOpener> {
  cluster ??= startCluster({ fsync: false });
  return postgres((await cluster).url('postgres'));
}

function configWith(delays: string) {
  const path = join(newFolder(), 'holdfast.yaml');
  writeFileSync(path, `types: { analysis: { retry: { backoff: { schedule: [${delays}] } } } }`);
  return loadConfig(path);
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-analysis-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function open(options: TestOptions) {
  const kit = await openTestHoldfast({ tasks: [task], config, patienceMs: 20_000, ...options });
  closing.push(() => kit.close());
  return kit;
}

describe.each(STORES)('on %s', (_, store) => {
  test('an analysis that fails waits 300, 900 and 3,600 s, each to the millisecond, and is dead at the fourth', async () => {
    const kit = await open({ store: await store() });
    expect(await validate(kit, task)).toEqual({
      rows: [
        { attempt: 1, state: 'scheduled', attempts: 1, delay: 300, verdict: 'ok' },
        { attempt: 2, state: 'scheduled', attempts: 2, delay: 900, verdict: 'ok' },
        { attempt: 3, state: 'scheduled', attempts: 3, delay: 3_600, verdict: 'ok' },
        { attempt: 4, state: 'dead', attempts: 4, delay: undefined, verdict: 'ok' },
      ],
      error: 'ERR_VALIDATION: Position FAKE_POSITION_DOES_NOT_EXIST does not exist.',
      ok: true,
    });
  });

  test('a validation leaves nothing behind, so that it may be run again', async () => {
    const opener = await store();
    // With the second schedule the task still waits when the validation ends.
    for (const delays of ['5m, 15m, 60m', '5m, 15m, 60m, 5m, 30d', '5m, 15m, 60m']) {
      const kit = await open({ store: opener, config: await configWith(delays) });
      expect((await validate(kit, task)).ok).toBe(delays === '5m, 15m, 60m');
      expect(await kit.holdfast.list()).toEqual([]);
      await kit.close();
    }
  });
});

test('the schedule ends where an analysis succeeds', async () => {
  const kit = await open({});
  const { id } = await kit.holdfast.enqueue(task, { position: 'ACME' });
  await kit.advance('1d');
  expect(await kit.holdfast.get(id)).toMatchObject({
    state: 'succeeded',
    result: { value: 2_200, profit: 170 },
    attempts: 0,
    executions: 1,
  });
});

test('a validation of another schedule says what is wrong with it', async () => {
  const kit = await open({ config: await configWith('5m, 10m') });
  const { rows, ok } = await validate(kit, task);
  expect(ok).toBe(false);
  expect(rows.map(({ verdict }) => verdict)).toEqual([
    'ok',
    'delay should be 900',
    expect.stringContaining('state should be scheduled'),
    expect.stringContaining('executed 3 times by now'),
  ]);
});

test('a validation notices a retry that starts a millisecond before its time', async () => {
  const kit = await open({});
  const advance = async (time: DurationInput) => {
    await kit.advance(time);
    await kit.advance('1ms');
  };
  const { rows, ok } = await validate({ ...kit, advance }, task);
  expect(ok).toBe(false);
  expect(rows[0]?.verdict).toBe('retried before its time');
});

test('a validation takes no store that has tasks', async () => {
  const kit = await open({});
  await kit.holdfast.enqueue(task, { position: 'ACME' });
  await expect(validate(kit, task)).rejects.toThrow('The validation moves its clock: give it a new one.');
});

test('a schedule with a delay that would never happen is refused', () => {
  const text = 'types: { analysis: { retry: { maxAttempts: 3, backoff: { schedule: [5m, 15m, 60m] } } } }';
  expect(() => parseConfig(text)).toThrow(InvalidConfigError);
});

test('a type called analysis has four attempts and the three delays, where no file says so', async () => {
  const kit = await openTestHoldfast({ tasks: [task] });
  closing.push(() => kit.close());
  const { policy } = await kit.holdfast.policyFor({ type: 'analysis' });
  expect(policy).toMatchObject({
    maxAttempts: 4,
    backoff: { kind: 'schedule', delays: [300_000, 900_000, 3_600_000] },
    permanent: 'retry',
    onExhausted: 'dead',
  });
});
