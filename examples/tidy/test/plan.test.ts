import { expect } from 'vitest';
import { keyOf, readPlan } from '../plan.js';
import { test } from './scene.ts';

const MOVES = [
  { from: 'a.txt', to: 'texts/' },
  { from: 'b.jpg', to: 'pictures/beach.jpg' },
];

test('a plan is YAML or JSON, relative to its root, and a folder keeps the name', ({ scene }) => {
  const read = [
    readPlan(scene.write('plan.json', JSON.stringify({ root: 'here', moves: MOVES }))),
    readPlan(
      scene.write(
        'plan.yaml',
        'root: here\nmoves:\n  - {from: a.txt, to: texts/}\n  - {from: b.jpg, to: pictures/beach.jpg}\n',
      ),
    ),
  ];
  for (const moves of read) {
    expect(moves).toEqual([
      { from: scene.path('here/a.txt'), to: scene.path('here/texts/a.txt') },
      { from: scene.path('here/b.jpg'), to: scene.path('here/pictures/beach.jpg') },
    ]);
  }
});

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['moves: 7', /`moves` is a list/],
  ['moves: [{ from: a }]', /moves\[0\] needs `to`, a path, got nothing/],
  ['moves: [{ from: a, to: a }]', /moves\[0\]: 'a' is there already/],
  ['moves: [{ from: a, to: c }, { from: b, to: c }]', /would both become/],
  ['move: []', /a plan has `root` and `moves`, and no `move`/],
  ['moves: [', /is no YAML or JSON/],
];

test('a plan that cannot be meant is refused with what is wrong, before anything is recorded', ({ scene }) => {
  for (const [text, message] of REFUSED) {
    const plan = scene.write('plan.yaml', text);
    expect(() => readPlan(plan), text).toThrow(expect.objectContaining({ code: 'invalid_plan' }));
    expect(() => readPlan(plan), text).toThrow(message);
  }
});

test('a move has one name, whatever plan it stands in', () => {
  const move = { from: '/a', to: '/b' };
  expect(keyOf({ ...move })).toBe(keyOf(move));
  expect(keyOf({ from: '/a', to: '/c' })).not.toBe(keyOf(move));
});
