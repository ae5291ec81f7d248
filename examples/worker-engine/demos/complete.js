// @ts-check
import { openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';

/**
 * Claim a task, do the work, complete it with a result. Who has no claim has no way to complete a task: its number is not enough.
 * @param {(line: string) => void} say
 */
export async function complete(say) {
  const holdfast = await openHoldfast({ store: sqlite(':memory:') });
  const { id } = await holdfast.enqueue('greet', { name: 'world' });

  const claim = await holdfast.claim({ types: ['greet'], name: 'worker-001', leaseFor: '60s' });
  if (!claim) throw new Error('Nothing was ready.');
  const { running } = await holdfast.get(id);
  say(`#${claim.id} is leased to ${running?.worker}: attempt ${claim.attempt} of ${claim.maxAttempts}`);

  await claim.complete({ greeting: `Hello, ${Object(claim.input).name}!` });
  const { state, result } = await holdfast.get(id);
  say(`#${id} has ${state}, with ${JSON.stringify(result)}`);

  const again = await claim.fail(new Error('Too late.')).catch(({ code }) => code);
  say(`the claim is spent: a second end is refused with ${again}`);
  await holdfast.close();
}
