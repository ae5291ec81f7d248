// @ts-check
import { defineTask, exponential, presets } from 'holdfast';

/**
 * A run, as it lies in the spool.
 * @typedef {{ id: string, submitted: string, category: string, steps: readonly string[] }} Run
 *
 * How failed runs are retried. What is left out is as the preset `replay` has it.
 * @typedef {object} RetryConfig
 * @property {number} [maxAttempts] Failures until it is given up, the first attempt included. Default 8.
 * @property {string} [initialBackoff] Default 60 s.
 * @property {string} [maxBackoff] Default 1 h.
 * @property {number} [backoffMultiplier] Default 2.
 */

/** What the service said instead of a verdict. Its status and headers tell Holdfast which class of error it is. */
class ReplayError extends Error {
  /**
   * @param {Run} run
   * @param {Response} response
   * @param {string} text
   */
  constructor(run, response, text) {
    super(`The service answered ${response.status} to the replay of ${run.id}: ${text}`);
    this.name = 'ReplayError';
    this.status = response.status;
    this.response = { status: response.status, headers: response.headers };
  }
}

/**
 * The policy of the preset `replay`, with the numbers that a daemon was configured with.
 * @param {RetryConfig} [config]
 */
export function retryPolicy({
  maxAttempts = 8,
  initialBackoff = '60s',
  maxBackoff = '1h',
  backoffMultiplier = 2,
} = {}) {
  const backoff = exponential({ base: initialBackoff, factor: backoffMultiplier, cap: maxBackoff });
  return { ...presets.replay, maxAttempts, backoff };
}

/**
 * Replays a run at the service. A verdict (`passed`, `needs_review` or `failed`) is the result of the task, for the replay
 * itself went well. Anything else is thrown as it came: its class is Holdfast's to tell.
 * @param {{ service: string, retry?: RetryConfig }} options
 */
export function replayTask({ service, retry }) {
  return defineTask('replay', {
    retry: retryPolicy(retry),
    source: `http:${new URL(service).host}`,
    /** @param {Run} run */
    async run(run, { signal }) {
      const response = await fetch(new URL('/replay', service), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(run),
        signal,
      });
      const text = await response.text();
      if (!response.ok) throw new ReplayError(run, response, text);
      return JSON.parse(text);
    },
  });
}
