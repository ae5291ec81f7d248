import { expect, test } from 'vitest';
import { runLog } from '../run-log.js';
import type { Answer } from '../service.js';
import { openScene } from './scene.js';

/** What the daemon's log says of a run that is answered so, within two days. */
async function linesOf(answers: readonly Answer[]): Promise<readonly string[]> {
  const lines: string[] = [];
  const onEvent = runLog((line) => lines.push(line));
  const { kit, submit } = await openScene({ answers: { 'r-1': answers }, worker: { onEvent } });
  await submit('r-1');
  await kit.advance('2d');
  return lines;
}

test('the log tells a first attempt from a retry, and says of each retry its number and delay', async () => {
  expect(await linesOf([{ status: 503 }, { status: 503 }, { verdict: 'passed' }])).toEqual([
    'r-1: processing, first attempt',
    expect.stringMatching(/^r-1: retryable error; http\.5xx: attempt 1 of 8 failed; next attempt in 1m /),
    'r-1: processing, retry 1',
    expect.stringMatching(/^r-1: retryable error; http\.5xx: attempt 2 of 8 failed; next attempt in 2m /),
    'r-1: processing, retry 2',
    'r-1: processed, at retry 2',
  ]);
});

test('the log says when the maximum is reached', async () => {
  const lines = await linesOf([{ status: 503 }]);
  expect(lines).toHaveLength(16);
  expect(lines.at(-1)).toBe('r-1: retryable error; maximum reached, given up: http.5xx: attempt 8 of 8 failed.');
});

test('the log says that a final error is not retried, and why', async () => {
  const text = 'r-1: final error; failed for good: http.4xx is permanent, so it is not retried.';
  expect(await linesOf([{ status: 422 }])).toEqual(['r-1: processing, first attempt', text]);
});

test('the log says how long a service asked to wait, and that this counts for nothing', async () => {
  expect(await linesOf([{ status: 429, retryAfter: 300 }, { verdict: 'passed' }])).toEqual([
    'r-1: processing, first attempt',
    'r-1: rate-limited error; Deferred for 5m: asked for 5m. Nothing is charged.',
    'r-1: processing, again; nothing was counted so far',
    'r-1: processed',
  ]);
});

test('the log says when a person is asked', async () => {
  const text = /^r-1: rate-limited error; needs a person: It was asked to wait 2d/;
  expect(await linesOf([{ status: 429, retryAfter: 172_800 }])).toEqual([
    'r-1: processing, first attempt',
    expect.stringMatching(text),
  ]);
});
