// @ts-check
import { defineTask, PermanentFailure, presets } from 'holdfast';
import { openTestHoldfast } from 'holdfast/testing';

/** A worker retries whatever its handler throws, but for a PermanentFailure. */
const check = defineTask('check', {
  retry: presets.worker,
  /** @param {{ order: string }} input */
  run({ order }, { attempt }) {
    if (order === 'closed') throw new PermanentFailure('The order is closed.', { reason: 'order.closed' });
    if (attempt === 1) throw new TypeError('Cannot read properties of undefined.');
    return 'checked';
  },
});

/**
 * Fail a task with a retry, or without one: by hand, and in a handler.
 * @param {(line: string) => void} say
 */
export async function fail(say) {
  const kit = await openTestHoldfast({ tasks: [check], worker: { types: ['check'] } });
  const { holdfast } = kit;
  /** @param {number} id */
  const tell = async (id) => {
    const { type, state, attempts, reason } = await holdfast.get(id);
    say(`${type} #${id} is ${state} after ${attempts} failed attempt: ${reason}`);
  };

  for (const error of [new Error('Processing failed.'), new PermanentFailure('The file is no picture.')]) {
    const { id } = await holdfast.enqueue('resize', { file: 'a.png' });
    const claim = await holdfast.claim({ id });
    await claim?.fail(error);
    await tell(id);
  }
  const { id: open } = await holdfast.enqueue(check, { order: 'open' });
  const { id: closed } = await holdfast.enqueue(check, { order: 'closed' });
  await kit.drain();
  await tell(open);
  await tell(closed);
  await kit.advance('2s');
  say(`check #${open} has ${(await holdfast.get(open)).state} two seconds later`);
  await kit.close();
}
