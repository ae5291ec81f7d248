import { join } from 'node:path';
import { openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { describe, expect } from 'vitest';
import { tasksFrom } from '../pending-moves.js';
import { keyOf, type Move } from '../plan.js';
import { type Queue, type Scene, test } from './scene.ts';

const ITEMS = [
  {
    id: 'mv-1',
    src: 'inbox/locked',
    dest: 'done/locked',
    status: 'pending',
    reason: 'locked',
    attempt_count: 3,
    next_eligible_at: '2026-01-01T00:40:00Z',
    last_error: 'it is open in another program',
  },
  { id: 'mv-2', src: 'inbox/denied', dest: 'shut/denied', status: 'pending', reason: 'permission', attempt_count: 2 },
  {
    id: 'mv-3',
    src: 'inbox/taken',
    dest: 'done/taken',
    status: 'needs_manual',
    reason: 'dest_exists',
    attempt_count: 1,
  },
  {
    id: 'mv-4',
    src: 'inbox/given-up',
    dest: 'done/given-up',
    status: 'abandoned',
    reason: 'locked',
    attempt_count: 10,
    finished_at: '2025-12-30T08:00:00Z',
  },
  { id: 'mv-5', src: 'inbox/moved', dest: 'done/moved', status: 'succeeded', finished_at: '2025-12-31T08:00:00Z' },
  { id: 'mv-6', src: 'inbox/new', dest: 'done/new', status: 'pending' },
];

function importItems(queue: Queue, scene: Scene) {
  return queue.kit.holdfast.importTasks(tasksFrom({ items: ITEMS }, scene.folder), { actor: 'tidy' });
}

function itemAs(scene: Scene, name: string, folder = 'done'): Move {
  return { from: scene.path(`inbox/${name}`), to: scene.path(`${folder}/${name}`) };
}

describe('the JSON queue of pending moves', () => {
  test('comes over as it stands: states, counts by reason, times and the last error', async ({ scene }) => {
    const queue = await scene.queue();
    await importItems(queue, scene);
    const task = (name: string, folder?: string) => queue.task(itemAs(scene, name, folder));

    expect(await task('locked')).toMatchObject({
      state: 'scheduled',
      dueAt: new Date('2026-01-01T00:40:00Z'),
      attemptsByReason: [{ reason: 'fs.locked', count: 3 }],
    });
    expect(await task('denied', 'shut')).toMatchObject({ state: 'ready', attempts: 2 });
    expect(await task('taken')).toMatchObject({ state: 'needs_manual', reason: 'fs.dest_exists', attempts: 1 });
    expect(await task('given-up')).toMatchObject({ state: 'dead', endedAt: new Date('2025-12-30T08:00:00Z') });
    expect(await task('moved')).toMatchObject({ state: 'succeeded', attempts: 0 });
    expect(await task('new')).toMatchObject({ state: 'ready', attempts: 0 });
    const [imported] = await queue.kit.holdfast.history((await task('locked')).id);
    expect(imported).toMatchObject({ verb: 'imported', actor: 'tidy', note: 'It was mv-1 there.' });
    expect(imported).toMatchObject({ imported: { error: 'it is open in another program' } });
  });

  test('counts on: what failed three times there has its fourth failure here', async ({ scene }) => {
    const locked = scene.move('locked');
    scene.lock('inbox/locked');
    const denied = scene.move('denied', 'shut/denied');
    scene.write('shut/keep', '');
    scene.mount(['--bind', '-o', 'ro', scene.path('shut'), scene.path('shut')]);
    const queue = await scene.queue();
    await importItems(queue, scene);
    await queue.later('40m');

    await queue.run();

    expect(await queue.task(locked)).toMatchObject({ state: 'scheduled', attempts: 4 });
    expect(await queue.wait(locked)).toBe(40);
    expect(await queue.task(denied)).toMatchObject({ state: 'needs_manual', attempts: 3, reason: 'fs.permission' });
  });

  test('imported twice, it is there once; and a plan with the same moves finds them', async ({ scene }) => {
    const queue = await scene.queue();
    await importItems(queue, scene);
    const again = await importItems(queue, scene);
    expect(again.filter(({ created }) => created)).toEqual([]);

    const abandoned = scene.move('given-up');
    await queue.run(abandoned);

    expect((await queue.kit.holdfast.list()).length).toBe(ITEMS.length);
    expect((await queue.task(abandoned)).state).toBe('dead');
  });

  test('is imported by the program, and what is wrong with it is named', async ({ scene }) => {
    scene.write('pending_moves.json', JSON.stringify({ items: ITEMS }));
    const done = await scene.start(['import', 'pending_moves.json']);
    expect(done.stdout).toContain('6 moves imported; 0 were here already.');
    expect(done.stdout).toMatch(
      /Pending \(awaiting retry\): 3\n.*1 in all\n.*: 1\n {2}Needs manual \(escalated\): 1\n/,
    );

    scene.write('broken.json', JSON.stringify({ items: [{ src: 'a', dest: 'b', status: 'lost' }] }));
    const refused = await scene.start(['import', 'broken.json']);
    expect(refused.exit).toBe(2);
    scene.write('no.json', '{');
    expect((await scene.start(['import', 'no.json'])).stderr).toContain('no.json is no JSON');
    expect(refused.stderr).toContain('items[0] has the status "lost": known are pending, succeeded, abandoned');
  });

  test.for([
    { root: 'workspace', flags: [], at: 'workspace' },
    { root: undefined, flags: [], at: '.' },
    { root: 'workspace', flags: ['--root', 'elsewhere'], at: 'elsewhere' },
  ])(
    'has its paths relative to $at, with the root $root and the flags $flags',
    async ({ root, flags, at }, { scene }) => {
      const item = {
        id: 'mv-1',
        src: 'inbox/a',
        dest: 'done/a',
        status: 'abandoned',
        reason: 'locked',
        attempt_count: 10,
      };
      const items = [{ ...item, last_attempt_at: '2026-01-01T08:00:00Z' }];
      scene.write('old.json', JSON.stringify({ workspace_root: root, items }));
      await scene.start(['import', 'old.json', ...flags]);
      const queue = await openHoldfast({ store: sqlite(scene.path('tidy.db')) });
      const [task] = await queue.list();
      expect(task).toMatchObject({
        input: { from: scene.path(join(at, 'inbox/a')), to: scene.path(join(at, 'done/a')) },
        endedAt: new Date('2026-01-01T08:00:00Z'),
      });
      await queue.close();
    },
  );

  test('gives each move the key by which a plan names it', ({ scene }) => {
    const [first] = tasksFrom({ items: ITEMS }, scene.folder);
    expect(first?.key).toBe(keyOf(itemAs(scene, 'locked')));
  });
});
