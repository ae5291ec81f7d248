import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Claimed, SourceChange, Store } from '../../src/store/store.ts';
import { claimRequest, newTask, settlement, succeeded } from '../contract/scene.ts';
import { from, retryWithToken } from '../contract/source-scene.ts';
import { type VirtualWorld, virtualWorld } from '../contract/virtual-world.ts';
import Database from '../database.ts';

/** A hundredth of the million held tasks over 10,000 sources that a store must bear. */
const SOURCES = 100;
const TASKS_OF_EACH = 100;

let folder: string;
let world: VirtualWorld;
let store: Store;
let db: Database;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-restricted-'));
  world = virtualWorld();
  store = await sqlite(join(folder, 'tasks.db')).open(world);
  db = new Database(join(folder, 'tasks.db'), { readonly: true });
  const names = Array.from({ length: SOURCES }, (_, n) => `down-${n}`);
  for (const source of names) {
    await store.tasks.enqueue(Array.from({ length: TASKS_OF_EACH }, () => newTask({ source })));
    await store.sources.change(source, from(0, { restriction: { cause: 'breaker', shutFor: 60_000 } }));
  }
});

afterEach(async () => {
  db.close();
  await store.upkeep.close();
  rmSync(folder, { recursive: true, force: true });
});

const count = (what: string) => db.prepare(`SELECT count(*) FROM ${what}`).pluck().get() as number;

/** How many pages of the log the last writes have filled. */
function pagesOf(run: () => Promise<unknown>): Promise<number> {
  const own = new Database(join(folder, 'tasks.db'));
  const frames = () => (own.pragma('wal_checkpoint(PASSIVE)') as { log: number }[])[0]?.log ?? 0;
  own.pragma('wal_checkpoint(TRUNCATE)');
  return run()
    .then(frames)
    .finally(() => own.close());
}

test('a source that another process restricts is not taken for free any more, nor are its tasks that run', async () => {
  const other = await sqlite(join(folder, 'tasks.db')).open(world);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: 600_000, publishes: {} });
  await store.tasks.enqueue(Array.from({ length: 3 }, () => newTask({ source: 'up' })));
  const claim = async () => (await store.tasks.claim(claimRequest(worker, { limit: 1 }))).tasks;
  const [first] = (await claim()) as [Claimed];
  const [second] = (await claim()) as [Claimed];
  const settle = (one: Claimed, source?: SourceChange) =>
    store.tasks.settle([settlement(one, succeeded(), source && { source })]);
  expect(await settle(first)).toMatchObject([{ answer: 'settled' }]);

  await other.sources.change('up', from(0, { restriction: { cause: 'breaker', shutFor: 60_000 } }));
  await other.upkeep.close();
  expect(await claim()).toEqual([]);
  const [answer] = await settle(second);
  expect(answer).toMatchObject({ answer: 'changed', sourceState: { memory: 'm' } });
  const { sourceState } = answer as { sourceState: { revision: number } };
  expect(await settle(second, { revision: sourceState.revision })).toMatchObject([{ answer: 'settled' }]);
});

test('a claim reads no lane of a held source, even if there are many', async () => {
  expect(count('hf_ready')).toBe(SOURCES * TASKS_OF_EACH);
  expect(count('hf_active')).toBe(0);
  await store.tasks.enqueue([newTask({ source: 'up' })]);
  expect(count('hf_active')).toBe(1);

  const worker = await store.tasks.join({ name: 'alice', leaseFor: 600_000, publishes: {} });
  const { tasks, nextDueIn } = await store.tasks.claim(claimRequest(worker));
  expect(tasks.map(({ source }) => source)).toEqual(['up']);
  expect(nextDueIn).toBe(60_000);
});

test('opening and holding a source writes as much for a hundred tasks as for one', async () => {
  await store.tasks.enqueue([newTask({ source: 'small' })]);
  const change = async (source: string, revision: number) => {
    await store.sources.change(source, from(revision, { restriction: { cause: 'breaker', shutFor: 60_000 } }));
    await store.sources.change(source, from(revision + 1));
  };
  await store.sources.change('small', from(0));
  const of = async (source: string) => (await store.sources.state(source))?.revision as number;
  const [small, large] = [await of('small'), await of('down-1')];

  const forOne = await pagesOf(() => change('small', small));
  const forHundred = await pagesOf(() => change('down-1', large));
  expect(forHundred).toBeLessThanOrEqual(forOne + 4);
  expect(count('hf_ready')).toBe(SOURCES * TASKS_OF_EACH + 1);
  expect(count('hf_active')).toBe(2);
});

test('what restricts nothing any more leaves no row behind, and claims look for it no longer', async () => {
  world.clock.advance(60_000);
  for (let n = 0; n < SOURCES; n += 1) {
    const revision = (await store.sources.state(`down-${n}`))?.revision as number;
    await store.sources.change(`down-${n}`, { revision, change: { tokens: 0, refunds: [] } });
  }
  expect([count('hf_restricted'), count('hf_source_states'), count('hf_active')]).toEqual([0, 0, SOURCES]);
  expect(db.prepare('SELECT restrictions FROM hf_clock').pluck().get()).toBe(0);
  await store.sources.limit('down-1', { concurrency: 1 }, { actor: 'eva', origin: 'person' });
  expect(db.prepare('SELECT restrictions FROM hf_clock').pluck().get()).toBe(1);
});

test('a budget that has filled up again is forgotten when the store is tidied', async () => {
  const worker = await store.tasks.join({ name: 'alice', leaseFor: 600_000, publishes: {} });
  await store.tasks.enqueue([newTask({ source: 'up' })]);
  const claim = async () => (await store.tasks.claim(claimRequest(worker))).tasks;
  const [first] = await claim();
  await store.tasks.settle([settlement(first as Claimed, retryWithToken())]);
  expect(await claim()).toHaveLength(1);
  expect(count("hf_restricted WHERE source = 'up'")).toBe(1);
  await store.upkeep.tidy();
  expect(count("hf_restricted WHERE source = 'up'")).toBe(1);
  world.clock.advance(10_000);
  await store.upkeep.tidy();
  expect(count("hf_restricted WHERE source = 'up'")).toBe(0);
});
