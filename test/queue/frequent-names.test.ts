import { expect, test } from 'vitest';
import { FrequentNames, OTHER } from '../../src/frequent-names.ts';

test('few names keep their names', () => {
  const names = new FrequentNames(3);
  expect(['a', 'b', 'c', 'a', 'b\0'].map((name) => names.nameOf(name))).toEqual(['a', 'b', 'c', 'a', OTHER]);
});

test('of many names the frequent ones are named, and rare ones hardly ever', () => {
  const names = new FrequentNames(10);
  const given = Array.from({ length: 10_000 }, (_, n) => (n % 2 === 0 ? `busy ${n % 8}` : `rare ${n}`));
  const named = given.map((name) => names.nameOf(name)).filter((name) => name !== OTHER);
  expect(named.filter((name) => name.startsWith('busy')).length).toBeGreaterThan(4_900);
  expect(named.filter((name) => name.startsWith('rare')).length).toBeLessThan(20);
});
