import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { policyDifferences } from '../../src/worker/policy-differences.ts';
import { useFolder } from './scene.ts';

const folder = useFolder();

/** A program whose worker runs `mail` and `sms`, with a log. */
async function program(name: string, mailAttempts: number, types?: readonly string[]) {
  const warnings: string[] = [];
  const log = { debug() {}, info() {}, error() {}, warn: (_: object, message: string) => warnings.push(message) };
  const tasks = [
    defineTask('mail', { retry: { maxAttempts: mailAttempts }, run() {} }),
    defineTask('sms', { run() {} }),
  ];
  const worker = { name, ...(types && { types }) };
  const kit = await openTestHoldfast({ store: sqlite(join(folder(), 'tasks.db')), tasks, log, worker });
  await kit.drain();
  return { ...kit, warnings };
}

test('a worker that joins beside one with another policy of a type says both versions; one with the same says nothing', async () => {
  const former = await program('former', 3);
  const same = await program('same', 3);
  const other = await program('other', 5);
  const elsewhere = await program('elsewhere', 7, ['sms']);
  try {
    expect([former, same, elsewhere].flatMap(({ warnings }) => warnings)).toEqual([]);
    expect(other.warnings).toEqual([
      expect.stringMatching(
        /^Workers answer failures of mail by different policies: version [0-9a-f]{12} since 2026-01-01T00:00:00\.\d+Z \(former and 1 more\), version [0-9a-f]{12} since \S+ \(other\)\. A deploy ends this by itself; otherwise give all workers the same code and holdfast\.yaml\.$/,
      ),
    ]);
    expect(policyDifferences(await former.holdfast.workers())).toMatchObject([{ type: 'mail' }]);
    await other.close();
    expect(policyDifferences(await former.holdfast.workers())).toEqual([]);
  } finally {
    for (const kit of [former, same, other, elsewhere]) await kit.close();
  }
});
