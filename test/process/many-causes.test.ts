import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineTask, Failed, type Holdfast, openHoldfast } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';
import { ON_TERMINAL, Project } from './cli-process.ts';

/** What the tasks of a shop die of. The first three have the same reason. */
const CAUSES: Readonly<Record<string, () => Error>> = {
  'mail.fetch': () => new Error('the mailbox is in use'),
  'order.push': () => new Error('the order has no lines'),
  'file.archive': () => new Error('the archive is closed'),
  'payout.send': () => Object.assign(new Error('invalid IBAN "DE00"'), { name: 'ValidationError' }),
};

const EACH = 3;

let databases: TestDatabases;
beforeAll(async () => {
  const maker = new Project();
  databases = await openDatabases(async (url) => {
    const { exit, stderr } = await maker.run('db', 'migrate', '--store', url);
    if (exit !== 0) throw new Error(stderr);
  });
  await maker.remove();
});
afterAll(() => databases.close());

describe.each(['SQLite', 'PostgreSQL'])('a store with dead tasks of several causes, on %s', (kind) => {
  let project: Project;
  let holdfast: Holdfast;
  let drop = () => {};
  beforeAll(async () => {
    project = new Project();
    if (kind === 'PostgreSQL') {
      const database = await databases.take();
      drop = database.drop;
      project.env = { HOLDFAST_STORE: database.url };
    }
    const store = kind === 'SQLite' ? sqlite(project.store) : postgres(project.env?.HOLDFAST_STORE as string);
    const tasks = Object.entries(CAUSES).map(([name, cause]) =>
      defineTask<{ n: number }>(name, {
        retry: { maxAttempts: 1 },
        run: () => {
          throw cause();
        },
      }),
    );
    holdfast = await openHoldfast({ store, tasks });
    for (const task of tasks)
      await holdfast.enqueueAll(
        task,
        Array.from({ length: EACH }, (_, n) => ({ n })),
      );
    const worker = holdfast.worker({ name: 'shop' });
    while (await worker.runOne());
  });
  afterAll(async () => {
    await holdfast.close();
    await project.remove();
    drop();
  });

  const groupOf = async (type: string) => {
    const { document } = await project.json<{ items: { id: string; type: string }[] }>('failures');
    return document.items.find((group) => group.type === type)?.id as string;
  };

  test('status says in how many groups the failures of a reason are, and names the newest task that died of it', async () => {
    const { stdout } = await project.run('status');
    expect(stdout).toContain(
      '  ✕ 9 dead: unknown, in 3 groups of failures (the newest: #9 file.archive: the archive is closed)\n      holdfast failures reason:unknown\n',
    );
    expect(stdout).toContain(
      '  ✕ 3 dead: validation (the newest: #12 payout.send: invalid IBAN "DE00")\n      holdfast list state:dead reason:validation\n',
    );
  });

  test('status leaves out what is muted, says so, and shows it again when it is reopened', async () => {
    const id = await groupOf('payout.send');
    await project.run('failures', 'mute', id, '--note', 'known to the bank');
    const muted = (await project.run('status')).stdout;
    expect(muted).not.toContain('validation');
    expect(muted).toContain('\nMuted    1 group of failures: holdfast failures --all\n');
    expect((await project.run('status', '--check')).stdout).not.toContain('validation');
    await project.run('failures', 'reopen', id);
    expect((await project.run('status')).stdout).toContain('3 dead: validation');
  });

  test('on a terminal of 80 columns, sentences are wrapped between words, and an error keeps its room', async () => {
    const shown = async (...words: string[]) => {
      const env = { COLUMNS: '80', NO_COLOR: '1' };
      return (await project.start(words, { under: ON_TERMINAL, env }).ended).stdout.split('\r\n');
    };
    const status = await shown('status');
    expect(status[1]).toBe('  ✕ 9 dead: unknown, in 3 groups of failures (the newest: #9 file.archive: the');
    expect(status[2]).toBe('    archive is closed)');
    expect(Math.max(...status.map(({ length }) => length))).toBeLessThanOrEqual(80);
    // Its end has room unless the failure was `just now`.
    expect((await shown('list', '--limit', '1'))[1]).toMatch(/invalid IBAN "/);
    expect((await shown('failures'))[1]).toMatch(/invalid IBAN "/);
    expect(Math.max(...(await shown('stats')).map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  test('a mute hides only tasks of its group: one that a person gave up, with the same reason, is shown', async () => {
    const stopped = (name: string, limit: { readonly onExhausted?: 'needs_manual' }) =>
      defineTask<null>(name, {
        retry: { maxAttempts: 1, ...limit },
        run: () => {
          throw new Failed(`${name} stopped`, { reason: 'shop.stopped' });
        },
      });
    const types = [stopped('shelf.count', {}), stopped('shelf.move', { onExhausted: 'needs_manual' })];
    const store = kind === 'SQLite' ? sqlite(project.store) : postgres(project.env?.HOLDFAST_STORE as string);
    const shop = await openHoldfast({ store, tasks: types });
    try {
      const ids = [];
      for (const type of types) ids.push((await shop.enqueue(type, null)).id);
      const worker = shop.worker({ name: 'shelf' });
      while (await worker.runOne());
      await project.run('resolve', String(ids[1]), '--as', 'dead', '--note', 'given up');
      await project.run('failures', 'mute', await groupOf('shelf.count'), '--note', 'known');
      expect((await project.run('status')).stdout).toContain('2 dead: shop.stopped');
    } finally {
      await shop.close();
    }
  });
});
