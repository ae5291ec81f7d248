import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type StoreKind, useScene } from '../who-pays/scene.ts';

const run = promisify(execFile);

describe.each<StoreKind>(['sqlite', 'postgres'])('a large store that was made by copying, on %s', (kind) => {
  const scene = useScene(kind);

  test('is a sound one, with tasks in all states that wait or have ended, and their history', async () => {
    const { where, holdfast } = scene();
    await run(process.execPath, [
      'scripts/large-store.mjs',
      where,
      '--sample',
      '600',
      '--tasks',
      '3000',
      '--sources',
      '100',
    ]);

    const { byState } = await holdfast.counts();
    expect(byState).toEqual({
      scheduled: 40,
      ready: 130,
      running: 0,
      held: 10,
      succeeded: 2490,
      needs_manual: 30,
      dead: 390,
      cancelled: 10,
    });
    expect(await holdfast.store.upkeep.verify()).toEqual([]);
    const [group] = await holdfast.failures.list();
    const { total } = await holdfast.stats();
    expect(group?.count).toBeGreaterThan(5);
    expect(total.executions).toBeGreaterThan(3000 * 2);
    const [newest] = await holdfast.list({ filter: 'state:dead', limit: 1 });
    const history = await holdfast.history(newest?.id ?? 0);
    expect(history).toHaveLength(6);
    expect(history.at(-1)).toMatchObject({ kind: 'execution', outcome: 'failure', next: 'dead' });
  });
});
