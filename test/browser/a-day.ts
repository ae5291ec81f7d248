import { exponential } from '../../src/failure/backoff.ts';
import { PermanentFailure } from '../../src/failure/signals.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { defineTask } from '../../src/worker/define-task.ts';

/** What a page must show as text. */
export const HOSTILE = {
  type: '<script>document.title="broken"</script>',
  error: '<img src=x onerror=\'document.title="broken"\'> \u202egnp.exe \u001b[31m </pre>',
  key: '"><svg onload=\'document.title="broken"\'>',
} as const;

/**
 * Fills a SQLite file with some hours of work in which much fails: retries that help and that do not, a source that goes down, dead
 * tasks, tasks that need a person, and texts that want to be more than text.
 */
export async function fillStore(file: string): Promise<void> {
  let isDown = false;
  let calls = 0;
  const hook = defineTask('hook.deliver', {
    retry: { maxAttempts: 6, backoff: exponential({ base: '30s', cap: '1h' }), jitter: 'full' },
    source: ({ host }: { host: string }) => `http:${host}`,
    run({ host }) {
      calls += 1;
      if (isDown && host === 'api.acme.example') {
        throw Object.assign(new Error('connect ECONNREFUSED 192.0.2.7:443'), { code: 'ECONNREFUSED' });
      }
      if (calls % 5 === 0) throw Object.assign(new Error('Request failed with status code 503'), { status: 503 });
      return { status: 200 };
    },
  });
  const payout = defineTask('payout.send', {
    retry: { maxAttempts: 3 },
    run({ iban }: { iban: string }) {
      throw new PermanentFailure(`invalid IBAN "${iban}"`);
    },
  });
  const refund = defineTask('refund.create', {
    idempotent: false,
    source: () => 'http:pay.example',
    run() {
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET', syscall: 'read' });
    },
  });
  const report = defineTask('report.render', {
    retry: { maxAttempts: 4, backoff: exponential({ base: '20s' }) },
    run({ fails }: { fails: boolean }) {
      if (fails) throw new Error("Cannot read properties of undefined (reading 'rows')");
      return { pages: 12 };
    },
  });
  const hostile = defineTask(HOSTILE.type, {
    retry: { maxAttempts: 1 },
    run({ text }: { text: string }) {
      throw new Error(text);
    },
  });
  const kit = await openTestHoldfast({
    store: sqlite(file),
    start: new Date(Date.now() - 6 * 3_600_000),
    tasks: [hook, payout, refund, report, hostile],
    worker: { concurrency: 20 },
  });
  const { holdfast } = kit;
  for (let step = 0; step < 24; step += 1) {
    isDown = step >= 22;
    for (const host of ['api.acme.example', 'hooks.foo.example', 'hooks.bar.example'])
      await holdfast.enqueue(hook, { host });
    await holdfast.enqueue(report, { fails: step % 6 === 0 });
    if (step % 4 === 0) await holdfast.enqueue(payout, { iban: `XX${1_000 + step}` });
    if (step % 10 === 0) await holdfast.enqueue(refund, {});
    await kit.advance('15m');
  }
  await holdfast.enqueue(hostile, { text: HOSTILE.error }, { key: HOSTILE.key });
  await holdfast.enqueue(hostile, { text: 'long '.repeat(200_000) });
  const held = await holdfast.enqueue(report, { fails: false }, { delay: '3h' });
  await holdfast.hold(held.id, { actor: 'eva', note: 'until the new template is there' });
  for (let i = 1; i <= 10; i += 1) await holdfast.enqueue(report, { fails: false }, { delay: `${i * 5}m` });
  await kit.advance('1s');
  await kit.close();
}
