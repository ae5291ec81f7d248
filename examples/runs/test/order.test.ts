import { expect, test } from 'vitest';
import { openScene } from './scene.js';

const ONCE_DOWN = [{ status: 503 }, { verdict: 'passed' }];

test('a retry that is due goes before newer runs, and one that is not due waits', async () => {
  const answers = { 'r-1': ONCE_DOWN, 'r-4': [{ status: 429, retryAfter: 7_200 }] };
  const { kit, submit, service } = await openScene({ answers });
  await submit('r-1', '2026-01-01T00:00:00Z');
  await submit('r-4', '2026-01-01T00:00:00Z');
  await kit.drain();
  service.asked.length = 0;

  // All are there before any of them may start, as when the daemon is busy.
  await kit.holdfast.pauseQueue('default');
  await kit.advance('1m');
  await submit('r-3', '2026-01-01T00:00:20Z');
  await submit('r-2', '2026-01-01T00:00:10Z');
  await kit.holdfast.resumeQueue('default');
  await kit.drain();

  expect(service.asked).toEqual(['r-1', 'r-2', 'r-3']);
});

test('a constant stream of new runs keeps no old one from its retry', async () => {
  const { kit, submit, service } = await openScene({ answers: { old: ONCE_DOWN } });
  await submit('old', '2026-01-01T00:00:00Z');
  await kit.drain();
  await kit.holdfast.pauseQueue('default');
  await kit.advance('1m');
  for (let n = 0; n < 20; n++) await submit(`new-${n}`, '2026-01-01T00:00:30Z');
  service.asked.length = 0;
  await kit.holdfast.resumeQueue('default');
  await kit.drain();
  expect(service.asked).toHaveLength(21);
  expect(service.asked[0]).toBe('old');
});

test('runs of other categories than the daemon may take are left, retries too', async () => {
  const { kit, submit, service } = await openScene({
    answers: { web: ONCE_DOWN },
    worker: { categories: ['web', 'api'] },
  });
  await submit('mobile', '2026-01-01', 'mobile');
  await submit('web', '2026-01-02', 'web');
  await submit('api', '2026-01-03', 'api');
  await kit.advance('1m');
  expect(service.asked).toEqual(['web', 'api', 'web']);
  expect(await kit.holdfast.get('mobile')).toMatchObject({ state: 'ready', executions: 0 });
});
