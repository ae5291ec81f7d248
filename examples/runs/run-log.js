// @ts-check

/**
 * A worker's `onEvent` that writes the life of each run as lines for people: a first attempt and a retry look different, and each
 * retry says its number and delay.
 * @param {(line: string) => void} say
 * @returns {(event: import('holdfast').WorkerEvent) => void}
 */
export function runLog(say) {
  return (event) => {
    const { key, facts } = event.task;
    const retries = facts.charged.reduce((sum, { count }) => sum + count, 0);
    say(`${key}: ${lineOf(event, retries)}`);
  };
}

/**
 * @param {import('holdfast').WorkerEvent} event
 * @param {number} retries that were charged before this execution
 */
function lineOf(event, retries) {
  switch (event.kind) {
    case 'started':
      return `processing, ${which(retries, event.task.facts.executions)}`;
    case 'stale':
      return 'its lease had ended: what came of it is kept as evidence, and changes nothing';
    case 'settled':
      return ended(event, retries);
  }
}

/**
 * @param {number} retries
 * @param {number} executions
 */
function which(retries, executions) {
  if (retries > 0) return `retry ${retries}`;
  return executions > 1 ? 'again; nothing was counted so far' : 'first attempt';
}

/**
 * @param {Extract<import('holdfast').WorkerEvent, { kind: 'settled' }>} event
 * @param {number} retries
 */
function ended({ outcome, decision, state }, retries) {
  const { step, text } = decision.because;
  if (state === 'succeeded') return retries > 0 ? `processed, at retry ${retries}` : 'processed';
  const error = outcome.kind === 'failure' ? `${errorClass(outcome.failure.kind)} error; ` : '';
  if (step === 'max_attempts') return `${error}maximum reached, given up: ${text}`;
  if (state === 'dead') return `${error}failed for good: ${text}`;
  if (state === 'needs_manual') return `${error}needs a person: ${text}`;
  return `${error}${text}`;
}

/** @param {import('holdfast').FailureKind} kind */
function errorClass(kind) {
  if (kind === 'permanent') return 'final';
  return kind === 'rate_limited' ? 'rate-limited' : 'retryable';
}
