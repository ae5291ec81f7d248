import { describe, expect } from 'vitest';
import { compare, comparisonText, wastedIn } from '../compare.js';
import { test } from './scene.ts';

const rows = await compare();

function rowOf(what: string) {
  const row = rows.find(({ trouble }) => trouble.what === what);
  if (!row) throw new Error(`There is no row '${what}'.`);
  return row;
}

describe('both policies with the same failures', () => {
  test('a taken destination: one try instead of ten, 90 % fewer, and a person knows at once', () => {
    const { smart, plain } = rowOf('destination exists');
    expect([smart.tries, plain.tries]).toEqual([1, 10]);
    expect(smart).toMatchObject({ state: 'needs_manual', minutes: 0, wasted: 0 });
    expect(plain).toMatchObject({ state: 'dead', wasted: 9 });
  });

  test('a missing permission: a person knows after three minutes instead of 42 hours', () => {
    const { smart, plain } = rowOf('no permission');
    expect(smart).toMatchObject({ tries: 3, state: 'needs_manual', minutes: 3 });
    expect(plain).toMatchObject({ tries: 10, state: 'dead', minutes: 2_555 });
  });

  test('anything else: five tries in two and a half hours instead of ten', () => {
    const { smart, plain } = rowOf('disk error');
    expect(smart).toMatchObject({ tries: 5, state: 'needs_manual', minutes: 150 });
    expect(plain.tries).toBe(10);
  });

  test('a lock is worth waiting for: both policies treat it alike, and the move succeeds once it is gone', () => {
    for (const { trouble, smart, plain } of rows.filter(({ trouble }) => trouble.code === 'EBUSY')) {
      expect(smart, trouble.what).toEqual(plain);
    }
    expect(rowOf('locked for 40 min').smart.state).toBe('succeeded');
  });

  test('of a collision, a missing permission and an unknown failure, 27 wasted retries become 6: 78 % fewer', () => {
    const forPeople = rows.filter(({ trouble }) => ['EEXIST', 'EACCES', 'EIO'].includes(trouble.code));
    const [smart, plain] = [wastedIn(forPeople, 'smart'), wastedIn(forPeople, 'plain')];
    expect([smart, plain]).toEqual([6, 27]);
    expect(Math.round((100 * (plain - smart)) / plain)).toBe(78);
  });

  test('the command prints a table that ends with the sum of it', async ({ scene }) => {
    const { stdout } = await scene.start(['compare']);
    expect(stdout).toBe(`${comparisonText(rows)}\n`);
    expect(stdout).toMatch(/^destination exists \(EEXIST\) +1 +0 +needs_manual +0 min +10 +9 +dead +42\.6 h +9$/m);
    expect(stdout).toContain('Wasted retries: 56 with one plain policy, 30 with one rule for each reason: 46 % fewer.');
  });
});
