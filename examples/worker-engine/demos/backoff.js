// @ts-check
import { defineTask, presets } from 'holdfast';
import { openTestHoldfast } from 'holdfast/testing';

const work = defineTask('work', {
  // One try and five retries.
  retry: { ...presets.worker, maxAttempts: 6 },
  run() {
    throw new Error('Network unavailable.');
  },
});

/**
 * How long each retry waits: twice as long as the one before, ±10 %. The half minute that this takes passes on a virtual clock.
 * @param {(line: string) => void} say
 */
export async function backoff(say) {
  const kit = await openTestHoldfast({ tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, null);
  await kit.advance('1m');
  for (const event of kit.events) {
    if (event.kind !== 'settled') continue;
    const { decision } = event;
    const { count, jitter } = decision.because;
    if (decision.next !== 'scheduled' || !jitter) continue;
    const [low, high, waited] = [jitter.low, jitter.high, decision.after].map((ms) => `${(ms / 1_000).toFixed(1)} s`);
    say(`attempt ${count} failed: wait ${low} to ${high}, this time ${waited}`);
  }
  const { state, attempts, endedAt } = await kit.holdfast.get(id);
  say(
    `attempt ${attempts} failed: ${state}, ended at ${endedAt?.toISOString().slice(11, 19)}, never to be retried by itself`,
  );
  await kit.close();
}
