// @ts-check
import { defineTask, Failed, presets } from 'holdfast';
import { openTestHoldfast } from 'holdfast/testing';

const importFile = defineTask('import', {
  retry: { ...presets.worker, maxAttempts: 2 },
  /** @param {string} file */
  run(file, { execution }) {
    if (file === 'c.csv' || execution > 2) return `${file} is imported`;
    throw new Failed(`${file} has no header.`, { reason: 'csv.header' });
  },
});

/**
 * What ran out of attempts: found with its last error and the moment it ended, newest first, and put back once it is mended.
 * @param {(line: string) => void} say
 */
export async function deadLetters(say) {
  const kit = await openTestHoldfast({ tasks: [importFile] });
  const { holdfast } = kit;
  for (const file of ['a.csv', 'b.csv', 'c.csv']) await holdfast.enqueue(importFile, file);
  await kit.advance('10s');

  const dead = await holdfast.list({ states: ['dead'] });
  for (const { id, attempts, endedAt } of dead) {
    const last = (await holdfast.history(id)).findLast(({ kind }) => kind === 'execution');
    const message = last?.kind === 'execution' ? last.failure?.message : '';
    say(`#${id} died at ${endedAt?.toISOString().slice(11, 19)} after ${attempts} attempts: ${message}`);
  }
  for (const { state, reason, count } of (await holdfast.counts()).byReason) say(`${state}: ${count} × ${reason}`);

  await holdfast.retry(dead[0]?.id ?? 0, { actor: 'operator', note: 'the header was added' });
  await kit.drain();
  say(`put back with a new round of attempts: #${dead[0]?.id} has ${(await holdfast.get(dead[0]?.id ?? 0)).state}`);
  await kit.close();
}
