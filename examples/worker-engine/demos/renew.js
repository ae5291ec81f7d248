// @ts-check
import { defineTask } from 'holdfast';
import { openTestHoldfast } from 'holdfast/testing';

/**
 * A lease is renewed while the work lasts: by hand, or by a worker without being asked. One that is not renewed ends, and whoever
 * had it can change the task no more.
 * @param {(line: string) => void} say
 */
export async function renew(say) {
  const long = defineTask('long', { run: (_, { signal }) => kit.clock.sleep('10m', signal) });
  const kit = await openTestHoldfast({ tasks: [long], worker: { leaseFor: '60s', types: ['long'] } });
  const { holdfast } = kit;
  await holdfast.enqueue('by-hand', null);
  const claim = await holdfast.claim({ types: ['by-hand'], leaseFor: '60s', name: 'first' });

  await kit.advance('45s');
  say(`after 45 s: ${await claim?.renew()}`);
  for (let n = 0; n < 4; n++) {
    await kit.advance('45s');
    await claim?.renew();
  }
  const early = await holdfast.claim({ types: ['by-hand'], name: 'second' });
  say(`three minutes later, for it was renewed: ${early ? 'lost' : 'nobody else gets it'}`);

  await kit.advance('3m');
  const next = await holdfast.claim({ types: ['by-hand'], name: 'second' });
  say(`three minutes without a renewal: the task is ${next ? "the second worker's" : 'still held'}`);
  const refused = await claim?.complete('late').catch(({ code }) => code);
  say(`the first one's result is refused with ${refused}`);
  await next?.complete('in time');

  const { id } = await holdfast.enqueue(long, null);
  await kit.advance('10m');
  const { state, executions } = await holdfast.get(id);
  say(`a handler that took ten minutes has ${state}, in ${executions} execution: its worker renewed`);
  await kit.close();
}
