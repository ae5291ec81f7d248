import { describe, expect } from 'vitest';
import { tasksFrom } from '../pending-moves.js';
import { summaryOf } from '../summary.js';
import { RETENTION, tidy } from '../tidy.js';
import { test } from './scene.ts';

describe('moves that have ended', () => {
  test('are removed by a run 30 days after, when they succeeded or were abandoned, and not before', async ({
    scene,
  }) => {
    const [moved, abandoned] = [scene.move('moved'), scene.move('abandoned')];
    scene.lock('inbox/abandoned');
    const queue = await scene.queue();
    await queue.untilOver(abandoned);
    await queue.run(moved);

    await queue.later('29d');
    expect(await queue.run()).toMatchObject({ removed: 0 });
    expect(await summaryOf(queue.kit.holdfast)).toMatchObject({ succeeded: 1, abandoned: 1 });

    await queue.later('1d');
    expect(await queue.run()).toMatchObject({ removed: 2 });
    expect(await summaryOf(queue.kit.holdfast)).toMatchObject({ total: 0 });
  });

  test('stay when they need a person, and while they wait, however old they are', async ({ scene }) => {
    const [taken, waiting] = [scene.move('taken'), scene.move('waiting')];
    scene.write('done/taken', 'theirs');
    scene.lock('inbox/waiting');
    const queue = await scene.queue();
    await queue.run(taken, waiting);

    await queue.later('400d');

    expect(await tidy(queue.kit.holdfast, [])).toMatchObject({ removed: 0 });
    expect(await summaryOf(queue.kit.holdfast)).toMatchObject({ needsManual: 1, pending: 1 });
  });

  test('are kept as long as a run is told, by state', async ({ scene }) => {
    const [moved, abandoned] = [scene.move('moved'), scene.move('abandoned')];
    scene.lock('inbox/abandoned');
    const queue = await scene.queue();
    await queue.untilOver(abandoned);
    await queue.run(moved);
    await queue.later('8d');

    const run = await tidy(queue.kit.holdfast, [], { retention: { ...RETENTION, succeeded: '7d' } });

    expect(run).toMatchObject({ removed: 1 });
    expect(await summaryOf(queue.kit.holdfast)).toMatchObject({ succeeded: 0, abandoned: 1 });
  });

  test('are kept as long as --keep says, and the run says how many it removed', async ({ scene }) => {
    const ended = (days: number) => ({
      src: `inbox/${days}`,
      dest: `done/${days}`,
      status: 'succeeded',
      finished_at: new Date(Date.now() - days * 86_400_000).toISOString(),
    });
    scene.write('old.json', JSON.stringify({ items: [ended(1), ended(8), ended(9), ended(31)] }));
    await scene.start(['import', 'old.json']);
    const plan = scene.write('plan.json', '{ "moves": [] }');

    const first = (await scene.start(['run', plan])).stdout;
    expect(first).toMatch(/Succeeded: .* 3 in all/);
    expect(first).toContain('Removed 30d after their end: 1');
    const second = (await scene.start(['run', plan, '--keep', '7d'])).stdout;
    expect(second).toMatch(/Succeeded: .* 1 in all/);
    expect(second).toContain('Removed 7d after their end: 2');
  });

  test('are removed by one run, however many they are', async ({ scene }) => {
    const queue = await scene.queue();
    const ended = { status: 'succeeded', finished_at: '2025-11-01T00:00:00Z' };
    const items = Array.from({ length: 5_000 }, (_, index) => ({
      src: `inbox/${index}`,
      dest: `done/${index}`,
      ...ended,
    }));
    await queue.kit.holdfast.importTasks(tasksFrom({ items }, scene.folder));

    expect(await queue.run()).toMatchObject({ succeeded: 0, removed: 5_000 });
    expect(await summaryOf(queue.kit.holdfast)).toMatchObject({ total: 0 });
  });

  test('are forgotten by then: an abandoned move of a plan starts anew', async ({ scene }) => {
    const move = scene.move('abandoned');
    const unlock = scene.lock('inbox/abandoned');
    const queue = await scene.queue();
    await queue.untilOver(move);
    unlock();
    expect(await queue.run(move)).toMatchObject({ succeeded: 0 });
    await queue.later('30d');
    await queue.run();

    expect(await queue.run(move)).toMatchObject({ succeeded: 1 });
  });

  test('leave a queue that moves a file every day with those of 30 days', async ({ scene }) => {
    const queue = await scene.queue();
    const sizes = [];
    for (let day = 0; day < 90; day += 1) {
      await queue.run(scene.move(`${day}.txt`));
      sizes.push((await summaryOf(queue.kit.holdfast)).total);
      await queue.later('1d');
    }
    expect(Math.max(...sizes)).toBe(30);
    expect(sizes.at(-1)).toBe(30);
  });
});
