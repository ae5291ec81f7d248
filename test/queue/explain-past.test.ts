import { describe, expect, test } from 'vitest';
import { defineTask, exponential, Failed, fixed, PermanentFailure, RetryLater } from '../../src/index.ts';
import { type Kit, useKits } from '../worker/scene.ts';

const kits = useKits();
const MINUTE = 60_000;
const none = { kind: 'none' } as const;

/** Its input says how it fails; without one it succeeds. */
const push = defineTask<string | null>('push', {
  retry: {
    maxAttempts: 4,
    backoff: exponential({ base: '5m', cap: '1h' }),
    jitter: none,
    rules: { 'fs.locked': { maxAttempts: 10, backoff: fixed('1m') } },
  },
  run(how) {
    if (how === 'broken') throw new Failed('It broke.', { reason: 'app.broke' });
    if (how === 'locked') throw Object.assign(new Error('busy'), { code: 'EBUSY', syscall: 'rename' });
    if (how === 'later') throw new RetryLater('10m');
    if (how === 'gone') throw new PermanentFailure('It is gone.', { reason: 'app.gone' });
  },
});

async function failing(
  how: string | null,
  after: string,
  options = {},
): Promise<{ kit: Kit; id: number; start: number }> {
  const kit = await kits({ tasks: [push] });
  const start = kit.clock.now();
  const { id } = await kit.holdfast.enqueue(push, how, options);
  await kit.advance(after);
  return { kit, id, start };
}

describe('explainIf', () => {
  test('decides the last failure of a dead task by the other options, and says what would come next', async () => {
    const { kit, id } = await failing('broken', '40m');
    const { lastFailure, nextFailure, text } = await kit.holdfast.explainIf(id, { maxAttempts: 9 });
    expect(lastFailure).toMatchObject({
      decision: { next: 'scheduled', because: { count: 4, limit: 9 } },
      delay: { nominal: 40 * MINUTE },
    });
    expect(nextFailure).toMatchObject({ decision: { because: { count: 5 } }, delay: { nominal: 60 * MINUTE } });
    expect(text.split('\n')).toEqual([
      `#${id} push: with these options, its last failure (5m ago) would have been decided so.`,
      expect.stringMatching(/^ {2}failure {2}app\.broke \(/),
      '  rule     the policy itself (code)',
      '  count    4 of 9',
      '  then     again after 40m (exponential 5m ×2 ≤ 1h, retry 4), no jitter',
      '  ends     after 9 attempts: dead',
      '  next     if it fails with app.broke again: again after 1h; it ends after 9 attempts: dead',
      '  decided  dead: app.broke: attempt 4 of 4 failed.',
    ]);
    expect((await kit.holdfast.get(id)).state).toBe('dead');
  });

  test.each([
    ['broken', '1m'],
    ['broken', '20m'],
    ['broken', '40m'],
    ['locked', '3m30s'],
    ['gone', '1m'],
  ])('without options decides as it was decided: %s after %s', async (how, after) => {
    const { kit, id } = await failing(how, after);
    const last = (await kit.holdfast.history(id)).at(-1);
    const { lastFailure } = await kit.holdfast.explainIf(id, {});
    const { step, count, limit, text } = last?.kind === 'execution' && last.because ? last.because : {};
    expect(lastFailure?.decision).toMatchObject({ because: { step, text, ...(count && { count, limit }) } });
  });

  test('of a task that has not failed in its round says so, and foresees its next failure', async () => {
    const { kit, id } = await failing('broken', '40m');
    await kit.holdfast.pauseQueue('default');
    await kit.holdfast.retry(id);
    const { text, lastFailure, nextFailure } = await kit.holdfast.explainIf(id, { backoff: fixed('7m') });
    expect(text).toContain(`#${id} push has not failed in this round. With these options, its next failure:`);
    expect([lastFailure, nextFailure?.delay?.nominal]).toEqual([undefined, 7 * MINUTE]);
  });
});

describe('explainAt', () => {
  /** The state and the text, with times as minutes since the start. */
  async function at({ kit, id, start }: Awaited<ReturnType<typeof failing>>, minute: number) {
    const { state, text } = await kit.holdfast.explainAt(id, new Date(start + minute * MINUTE));
    return [state, text.replaceAll(/(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d/g, 'TIME').replaceAll(/worker-\d+/g, 'w1')];
  }

  test('of a task that failed says what it waited for then, why, and what happened next', async () => {
    const scene = await failing('broken', '40m');
    const { id } = scene;
    expect(await at(scene, 7)).toEqual([
      'scheduled',
      [
        `#${id} push at TIME: it was scheduled: due at TIME, 8m later.`,
        '  why     scheduled: app.broke: attempt 2 of 4 failed; next attempt in 10m (exponential 5m ×2 ≤ 1h, retry 2). (execution 2 on w1 from TIME to TIME)',
        '  then    scheduled: app.broke: attempt 3 of 4 failed; next attempt in 20m (exponential 5m ×2 ≤ 1h, retry 3). (execution 3 on w1 from TIME to TIME)',
      ].join('\n'),
    ]);
    expect((await at(scene, -3))[1]).toBe(
      [
        `#${id} push at TIME: it was not recorded yet: recorded at TIME, 3m later.`,
        '  then    scheduled: app.broke: attempt 1 of 4 failed; next attempt in 5m (exponential 5m ×2 ≤ 1h, retry 1). (execution 1 on w1 from TIME to TIME)',
      ].join('\n'),
    );
    expect((await at(scene, 38))[0]).toBe('dead');
    expect((await at(scene, 38))[1]).toContain('it had ended as dead, since TIME, for 3m.');
  });

  test('of a task that was held says by whom', async () => {
    const scene = await failing(null, '10m', { delay: '1h' });
    await scene.kit.holdfast.hold(scene.id, { actor: 'eva', note: 'NAS is down' });
    await scene.kit.advance('10m');
    await scene.kit.holdfast.release(scene.id, { actor: 'eva' });
    expect((await at(scene, 5))[0]).toBe('waiting');
    expect(await at(scene, 12)).toEqual([
      'held',
      [
        `#${scene.id} push at TIME: it was held, since TIME, for 2m.`,
        '  why     hold by eva at TIME: NAS is down',
        '  then    release by eva at TIME',
      ].join('\n'),
    ]);
    expect((await at(scene, 20))[0]).toBe('scheduled');
  });

  test('of a task that succeeded at its first execution says what is known', async () => {
    const scene = await failing(null, '90m', { delay: '1h' });
    expect(await at(scene, 30)).toEqual([
      'unfinished',
      `#${scene.id} push at TIME: it waited or ran: a task that succeeds at its first execution keeps no history.\n  then    it ended as succeeded at TIME`,
    ]);
    expect((await at(scene, 70))[1]).toContain(
      'it had ended as succeeded, since TIME, for 10m.\n  then    nothing has changed since',
    );
  });
});
