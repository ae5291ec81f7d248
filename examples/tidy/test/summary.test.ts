import { rmSync } from 'node:fs';
import { expect } from 'vitest';
import { summaryOf, summaryText } from '../summary.js';
import { test } from './scene.ts';

test('the summary tells how many wait, succeeded in this run and in all, were abandoned, and need a person', async ({
  scene,
}) => {
  const [free, next] = [scene.move('free'), scene.move('next')];
  const [abandoned, waiting] = [scene.move('abandoned'), scene.move('waiting')];
  const taken = scene.move('taken', 'archive/taken');
  scene.write('archive/taken', 'theirs');
  scene.lock('inbox/abandoned');
  const queue = await scene.queue();
  await queue.untilOver(abandoned);
  await queue.run(free);
  scene.lock('inbox/waiting');

  const { succeeded } = await queue.run(next, waiting, taken);

  const { id } = await queue.task(taken);
  expect(summaryText(await summaryOf(queue.kit.holdfast), { succeededNow: succeeded, file: 'tidy.db' })).toBe(
    `PENDING MOVES QUEUE SUMMARY
Total moves in queue: 5
  Pending (awaiting retry): 1
  Succeeded: 1 in this run, 2 in all
  Abandoned (max attempts): 1
  Needs manual (escalated): 1
  Eligible for next run: 0 (the next falls due 2026-01-02T18:40:00.000Z)

[ACTION REQUIRED] 1 move needs a person:
  - fs.dest_exists (1): the destination exists: rename or remove one of the two files, then retry

  #${id} ${taken.from} → ${taken.to}

  Why:    npx holdfast show ID --store tidy.db
  Answer: npx holdfast resolve ID --as retry|succeeded|dead --store tidy.db`,
  );
});

test('what has fallen due since is eligible for the next run', async ({ scene }) => {
  const move = scene.move('a.txt');
  scene.lock('inbox/a.txt');
  const queue = await scene.queue();
  await queue.run(move);
  expect(await summaryOf(queue.kit.holdfast)).toMatchObject({ pending: 1, eligible: 0 });
  await queue.later('5m');
  expect(await summaryOf(queue.kit.holdfast)).toMatchObject({ pending: 1, eligible: 1 });
});

test('without anything for a person, nothing is said to be required', async ({ scene }) => {
  const queue = await scene.queue();
  await queue.run(scene.move('a.txt'));
  expect(summaryText(await summaryOf(queue.kit.holdfast), { file: 'tidy.db' })).not.toContain('ACTION REQUIRED');
});

test('each reason that needs a person is counted and says what to do', async ({ scene }) => {
  const taken = [scene.move('a.txt'), scene.move('b.txt')];
  for (const name of ['a.txt', 'b.txt']) scene.write(`done/${name}`, 'theirs');
  scene.write('shut/keep', '');
  scene.mount(['--bind', '-o', 'ro', scene.path('shut'), scene.path('shut')]);
  const refused = scene.move('c.txt', 'shut/c.txt');
  const queue = await scene.queue();
  await queue.run(...taken);
  await queue.untilOver(refused);

  const text = summaryText(await summaryOf(queue.kit.holdfast), { file: 'tidy.db' });

  expect(text).toContain('[ACTION REQUIRED] 3 moves need a person:');
  expect(text).toContain('- fs.dest_exists (2): the destination exists: rename or remove one of the two files');
  expect(text).toContain(
    '- fs.permission (1): access is denied: check the permissions of the file and of both folders',
  );
});

test('each item that needs a person is named, and the command that tells why works on the same queue', async ({
  scene,
}) => {
  const move = scene.move('a.txt');
  scene.write('done/a.txt', 'theirs');
  const { stdout } = await scene.start(['run', scene.write('plan.json', JSON.stringify({ moves: [move] }))]);
  expect(stdout).toContain(`  #1 ${move.from} → ${move.to}`);
  expect(stdout).toContain('npx holdfast show ID --store tidy.db');

  const report = await scene.startHoldfast(['show', '1', '--store', 'tidy.db']);
  expect(report.stdout).toContain('EEXIST: file already exists');

  rmSync(move.to);
  await scene.startHoldfast(['resolve', '1', '--as', 'retry', '--store', 'tidy.db']);
  expect((await scene.start(['run', 'plan.json'])).stdout).toContain('Succeeded: 1 in this run');
});
