import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useFolder, usePrograms } from './children.ts';

const { run } = usePrograms();
const folder = useFolder();

test('what was claimed by hand in a process that was killed is claimed at once elsewhere, uncharged, one suspect at a time', async () => {
  const path = join(folder(), 'tasks.db');
  await run('enqueue', path, { tasks: 3, input: { how: 'quick' } }).endsWell();
  const killed = run('claim', path, { claims: 2, claim: { leaseFor: '1h' }, die: true });
  expect(await killed.ended).toEqual({ code: null, signal: 'SIGKILL' });
  expect(killed.said).toEqual([1, 2].map((id) => ({ claimed: id, execution: 1, recovered: false })));

  const next = run('claim', path, { claims: 3, name: 'next' });
  await next.endsWell();

  expect(next.said.slice(0, -1)).toEqual([
    { claimed: 3, execution: 1, recovered: false },
    { claimed: 1, execution: 2, recovered: true },
    { settled: 'succeeded' },
    { settled: 'succeeded' },
  ]);
  const last = run('claim', path, { claims: 3, name: 'last' });
  await last.endsWell();
  expect(last.said[0]).toEqual({ claimed: 2, execution: 2, recovered: true });
});

test('a worker recovers what was claimed by hand in a process that was killed', async () => {
  const path = join(folder(), 'tasks.db');
  await run('enqueue', path, { tasks: 1, input: { how: 'quick' } }).endsWell();
  const killed = run('claim', path, { claims: 1, die: true });
  await killed.ended;

  const worker = run('worker', path, { worker: { maxTasks: 1 } });
  await worker.endsWell();

  expect(worker.said).toContainEqual({ settled: 1, execution: 2, state: 'succeeded' });
});
