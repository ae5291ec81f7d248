import { describe, expect } from 'vitest';
import { compare, comparisonText } from '../compare.js';
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

  test('the command prints the share by reason, and that of all: 46 % fewer wasted retries', async ({ scene }) => {
    const { stdout } = await scene.start(['compare']);
    expect(stdout).toBe(`${comparisonText(rows)}\n`);
    const shares = [...stdout.matchAll(/\((E\w+)\).*\((\d+ %)\)$/gm)].map(([, code, share]) => `${code} ${share}`);
    expect(shares.slice(0, 4)).toEqual(['EEXIST 100 %', 'EACCES 78 %', 'ENOENT 56 %', 'EIO 56 %']);
    expect(shares.slice(4)).toEqual(['EBUSY 0 %', 'EBUSY 0 %', 'EBUSY 0 %']);
    expect(stdout).toMatch(/^Wasted retries over all rows: 56 with .*, 30 with .*: 46 % fewer\.$/m);
  });
});
