import { expect, test, vi } from 'vitest';
import { addressOf, serveMetrics } from '../../src/cli/foreground/metrics-server.ts';

test('the address is a port on the loopback, or names its host', () => {
  expect(addressOf('9464')).toEqual({ host: '127.0.0.1', port: 9464 });
  expect(addressOf('0.0.0.0:80')).toEqual({ host: '0.0.0.0', port: 80 });
  expect(addressOf('[::1]:80')).toEqual({ host: '::1', port: 80 });
  for (const wrong of ['', 'x', '70000', 'localhost:'])
    expect(() => addressOf(wrong)).toThrow('--metrics takes a port');
});

test('it answers metrics and health, and says if the store does not answer or the worker stops', async () => {
  let [broken, ready] = [false, true];
  const answer = async (text: string) => {
    if (broken) throw new Error('It is gone.');
    return text;
  };
  const served = await serveMetrics('0', {
    metrics: () => answer('holdfast_x 1\n'),
    ask: () => answer(''),
    isReady: () => ready,
  });
  const get = async (path: string) => {
    const response = await fetch(`${served.url}${path}`);
    return `${response.status} ${await response.text()}`.trim();
  };
  expect(served.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(await get('/metrics?x=1')).toBe('200 holdfast_x 1');
  expect(await get('/readyz')).toBe('200 ok');
  ready = false;
  expect(await get('/readyz')).toBe('503 The worker is stopping.');
  broken = true;
  expect(await get('/metrics')).toBe('503 The store does not answer: It is gone.');
  expect(await get('/readyz')).toBe('503 The store does not answer: It is gone.');
  expect(await get('/healthz')).toBe('200 ok');
  expect(await get('/')).toMatch(/^404 /);
  served.close();
});

test('requests that come while the store is asked share its answer', async () => {
  let asked = 0;
  let answer = (_: string) => {};
  const served = await serveMetrics('0', {
    metrics: () => {
      asked += 1;
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
    ask: async () => {},
    isReady: () => true,
  });
  const texts = Array.from({ length: 20 }, async () => (await fetch(`${served.url}/metrics`)).text());
  await vi.waitFor(() => expect(asked).toBe(1));
  // All of them have arrived when a later request is answered.
  await Promise.all(Array.from({ length: 20 }, () => fetch(`${served.url}/healthz`)));
  answer('holdfast_x 1\n');
  expect(new Set(await Promise.all(texts))).toEqual(new Set(['holdfast_x 1\n']));
  expect(asked).toBe(1);
  served.close();
});
