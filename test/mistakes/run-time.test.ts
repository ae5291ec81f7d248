import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import * as holdfastPackage from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { MISTAKES } from './table.ts';

const run = () => {};
const order = holdfastPackage.defineTask('order', { input: z.object({ id: z.number() }), run });
const any = holdfastPackage.defineTask('any', { run });

let holdfast: holdfastPackage.Holdfast;
beforeAll(async () => {
  holdfast = await holdfastPackage.openHoldfast({ store: sqlite(':memory:'), tasks: [order, any] });
});
afterAll(() => holdfast.close());

test('a new user is told of a hundred mistakes', () => {
  expect(MISTAKES.length).toBeGreaterThanOrEqual(100);
  expect(new Set(MISTAKES.map(({ written }) => written)).size).toBe(MISTAKES.length);
});

test.each(MISTAKES)('$written is answered: $answer', async ({ written, answer }) => {
  const names = { ...holdfastPackage, sqlite, postgres, z, holdfast, order, any, run };
  const line = new Function(...Object.keys(names), `return ${written}`);
  const refused = async () => line(...Object.values(names));
  await expect(refused()).rejects.toThrow(holdfastPackage.HoldfastError);
  await expect(refused()).rejects.toThrow(answer);
});
