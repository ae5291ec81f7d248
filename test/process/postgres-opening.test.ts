import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { newTask } from '../contract/scene.ts';
import { ask } from '../postgres/ask.ts';
import { type Cluster, startCluster } from '../postgres/cluster.mjs';
import { startProxy } from '../postgres/proxy.ts';

/*
 * Real processes that open a store on PostgreSQL together, and that end by themselves once it is closed.
 */

/** A process whose event loop is empty ends in a fraction of this, and one that something holds in a multiple. */
const ENDS_WITHIN_MS = 9_000;

let cluster: Cluster;
let children: ChildProcess[] = [];
let databases = 0;

beforeAll(async () => {
  cluster = await startCluster({ fsync: false });
});
afterAll(() => cluster.stop());
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
});

async function newDatabase(): Promise<string> {
  const name = `d${++databases}`;
  await ask(cluster.url(), `CREATE DATABASE ${name}`);
  return cluster.url(name);
}

class Opener {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #complaints: Promise<string>;

  constructor(url: string, options: object = {}) {
    this.#child = spawn(process.execPath, ['test/process/postgres-driver.mjs', url, JSON.stringify(options)]);
    children.push(this.#child);
    this.#lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    this.#complaints = text(this.#child.stderr as NodeJS.ReadableStream);
  }

  async says(word: string): Promise<void> {
    const [line] = await Promise.race([
      once(this.#lines, 'line'),
      once(this.#child, 'close').then(() => ['"nothing"']),
    ]);
    expect(JSON.parse(line), await this.#whyNot(line)).toBe(word);
  }

  async #whyNot(line: string): Promise<string> {
    return line === '"nothing"' ? this.#complaints : '';
  }

  /** Has it close its store, and end. Answers how long it took to end from when it had closed. */
  async close(): Promise<number> {
    const ended = once(this.#child, 'close');
    this.#child.stdin?.write('close\n');
    await this.says('closed');
    const closed = performance.now();
    const [code] = await ended;
    expect([code, await this.#complaints]).toEqual([0, '']);
    return performance.now() - closed;
  }
}

test('eight processes that open an empty database at once all do, and make its tables once', async () => {
  const url = await newDatabase();
  const openers = Array.from({ length: 8 }, () => new Opener(url));
  await Promise.all(openers.map((opener) => opener.says('opened')));
  expect(await ask(url, 'SELECT count(*)::int AS n FROM holdfast.meta')).toEqual([{ n: 1 }]);
  expect(
    await ask(
      url,
      `SELECT proname FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace GROUP BY 1 HAVING count(*) > 1`,
    ),
  ).toEqual([]);
  await Promise.all(openers.map((opener) => opener.close()));
});

describe.each([false, true])('a process whose store is closed (it listens: %s) ends by itself', (listens) => {
  test('at once', async () => {
    const opener = new Opener(await newDatabase(), { listens });
    await opener.says('opened');
    expect(await opener.close()).toBeLessThan(ENDS_WITHIN_MS);
  });

  test('with others still to be told of what it enqueued', async () => {
    const opener = new Opener(await newDatabase(), { listens, enqueues: true });
    await opener.says('opened');
    expect(await opener.close()).toBeLessThan(ENDS_WITHIN_MS);
  });

  test('while the server says nothing any more', async () => {
    const url = await newDatabase();
    const proxy = await startProxy(url);
    const opener = new Opener(proxy.url(url), { listens });
    await opener.says('opened');
    proxy.swallow();
    expect(await opener.close()).toBeLessThan(ENDS_WITHIN_MS);
    await proxy.close();
  });

  test('after the server was killed', async () => {
    const opener = new Opener(await newDatabase(), { listens });
    await opener.says('opened');
    await cluster.kill();
    try {
      expect(await opener.close()).toBeLessThan(ENDS_WITHIN_MS);
    } finally {
      await cluster.start();
    }
  });
});

test('a standby can be looked at, and refuses tasks and tables in words', async () => {
  const standby = await startCluster({ fsync: false });
  onTestFinished(() => standby.stop());
  const world = { clock: systemClock, random: Math.random };
  const store = await postgres(standby.url()).open(world);
  const [receipt] = await store.tasks.enqueue([newTask()]);
  await store.upkeep.close();
  const [row] = await ask(standby.url(), "SELECT current_setting('data_directory') AS data");
  await ask(standby.url(), 'CHECKPOINT');
  await standby.kill();
  // Somebody else's from now on: it waits for a primary to tell it what happens.
  writeFileSync(join(row?.data as string, 'standby.signal'), '');
  await standby.start();

  const looker = await postgres(standby.url()).open(world);
  expect((await looker.records.find(receipt?.id as number))?.state).toBe('ready');
  await expect(looker.tasks.enqueue([newTask()])).rejects.toMatchObject({ code: 'store_read_only' });
  await looker.upkeep.close();
  await expect(postgres(standby.url(), { schema: 'new' }).open(world)).rejects.toMatchObject({
    code: 'store_read_only',
    message: expect.stringContaining('standby'),
  });
});
