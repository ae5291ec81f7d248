import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Spool } from '../spool.js';
import { newFolder, openScene, runOf } from './scene.js';

test('a run is discovered once, with its date and category, whoever looks', async () => {
  const folder = newFolder();
  const { kit, task, service } = await openScene();
  writeFileSync(join(folder, 'a.json'), JSON.stringify(runOf('r-1', '2025-06-01T12:00:00Z', 'web')));
  writeFileSync(join(folder, 'b.tmp'), '{"id": "half of');
  const lines: string[] = [];
  const spool = new Spool(folder, (line) => lines.push(line));

  expect(await spool.discover(kit.holdfast, task)).toEqual(['r-1']);
  expect(await spool.discover(kit.holdfast, task)).toEqual([]);
  await kit.drain();
  const next = new Spool(folder, (line) => lines.push(line));
  expect(await next.discover(kit.holdfast, task)).toEqual([]);
  await kit.drain();

  expect(await kit.holdfast.get('r-1')).toMatchObject({
    state: 'succeeded',
    submittedAt: new Date('2025-06-01T12:00:00Z'),
    category: 'web',
  });
  expect(service.asked).toEqual(['r-1']);
  expect(lines).toEqual(['r-1: discovered']);
});

test('runs are processed by the date of their submission, in whatever order they are found', async () => {
  const folder = newFolder();
  const { kit, task, service } = await openScene();
  for (const [name, day] of Object.entries({ a: '03', b: '01', c: '02' })) {
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(runOf(`r-${day}`, `2026-01-${day}`, 'web')));
  }
  await new Spool(folder, () => {}).discover(kit.holdfast, task);
  await kit.drain();
  expect(service.asked).toEqual(['r-01', 'r-02', 'r-03']);
});

test('a file that is no run is refused once, stops no other, and is taken when it was mended', async () => {
  const folder = newFolder();
  const { kit, task } = await openScene();
  const [bad, good] = [join(folder, 'a.json'), join(folder, 'b.json')];
  writeFileSync(bad, JSON.stringify({ id: 'r-1', submitted: 'yesterday', category: 'web', steps: [] }));
  writeFileSync(good, JSON.stringify(runOf('r-2', '2026-01-01', 'web')));
  const lines: string[] = [];
  const spool = new Spool(folder, (line) => lines.push(line));

  expect(await spool.discover(kit.holdfast, task)).toEqual(['r-2']);
  expect(await spool.discover(kit.holdfast, task)).toEqual([]);
  expect(lines).toEqual([
    'a.json: refused: `submitted` must be a date such as 2026-01-31T12:00:00Z.',
    'r-2: discovered',
  ]);

  writeFileSync(bad, JSON.stringify(runOf('r-1', '2026-01-01', 'web')));
  utimesSync(bad, new Date(), new Date(Date.now() + 1_000));
  expect(await spool.discover(kit.holdfast, task)).toEqual(['r-1']);
});
