import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { MISTAKES } from './table.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'node_modules/.cache/mistakes');

/** Lines that are no mistakes of today: the compiler takes them. */
const RIGHT = [
  "defineTask('x', { retry: { backoff: 'immediate', jitter: 'full', timeout: '30s' }, run })",
  "defineTask('x', { retry: { backoff: { exponential: { base: '1s' } }, jitter: '20%' }, run })",
  "defineTask('x', { retry: { backoff: { schedule: ['5m', '15m'] }, jitter: 0.2 }, run })",
  "defineTask('x', { retry: { backoff: { base: '1s' }, rules: { timeout: { backoff: { cap: '1h' } } } }, run })",
  "defineTask('x', { retry: { backoff: { delay: '1s' } }, run })",
  "defineTask('x', { retry: { ...presets.worker, maxAttempts: 3 }, run })",
  "defineTask('x', { retry: { ...presets.worker, timeout: '30s', giveUpAfter: '2d' }, run })",
  "defineTask('x', { retry: { ...presets.worker, rules: { ...presets.worker.rules, 'fs.locked': { maxAttempts: 3, backoff: { fixed: '1s' } } } }, run })",
  'holdfast.enqueue(order, { id: 1 }, { delay: 0 })',
  "holdfast.enqueue(coded, { at: '2026-01-01T00:00:00Z' })",
  "holdfast.enqueue(coded, { at: '2026-01-01T00:00:00Z', n: '5' })",
  "holdfast.enqueue(trimmed, ' a ')",
  'holdfast.result(1, { task: coded }).then((day) => day.getDate)',
  'holdfast.result(1, { task: perhaps }).then((result) => result.sum + 1)',
  'holdfast.enqueue(annotated, { tags: [1], tree: { children: [{ children: [] }] } })',
];

/** What only a type can tell, because at run time it is right as JavaScript. */
const WRONG_TYPES = [
  'holdfast.enqueue(coded, { at: new Date() })',
  'holdfast.enqueue(coded, {})',
  'holdfast.enqueue(trimmed, 5)',
  "defineTask('x', { input: z.object({ at: z.date() }), run })",
  "defineTask('x', { input: z.map(z.string(), z.string()), run })",
  "defineTask('x', { input: z.bigint(), run })",
  "defineTask('x', { run: (input: { at: Date }) => input })",
  'holdfast.result(1, { task: dated }).then((at) => at.getDate())',
  'holdfast.get(1, dated).then((task) => task.result?.getDate())',
];

const PRELUDE = `import * as all from '../../../dist/index.js';
import { postgres } from '../../../dist/store/postgres/index.js';
import { sqlite } from '../../../dist/store/sqlite/index.js';
import { z } from 'zod';
const { ${['defineTask', 'openHoldfast', 'presets', 'exponential', 'linear', 'fixed', 'schedule', 'proportional', 'RetryLater', 'RateLimited', 'Failed', 'NeedsManual', 'PermanentFailure'].join(', ')} } = all;
declare const holdfast: all.Holdfast;
const run = () => {};
const order = defineTask('order', { input: z.object({ id: z.number() }), run });
const day = z.codec(z.iso.datetime(), z.date(), { decode: (text) => new Date(text), encode: (at) => at.toISOString() });
const coded = defineTask('coded', { input: z.object({ at: day, n: z.coerce.number().default(1) }), run: ({ at, n }) => ({ getDate: at.getDate() + n }) });
const dated = defineTask('dated', { run: () => new Date() });
const trimmed = defineTask('trimmed', { input: z.string().transform((text) => text.trim().length), run: (length) => length + 1 });
const perhaps = defineTask('perhaps', { run: async (n: number) => (n > 1 ? { sum: n } : n > 0 ? new Failed('Too few.') : new RetryLater('1m')) });
interface Tree { readonly children: readonly Tree[] }
const annotated = defineTask('annotated', { run: (input: { tags: readonly number[]; tree: Tree; note?: string }) => input.tags.length });
export { annotated, coded, dated, order, perhaps, run, sqlite, postgres, trimmed };
`;

test('the compiler refuses what it can, and takes what is right', { timeout: 120_000 }, async () => {
  const wrong = [...MISTAKES.filter(({ compiled }) => compiled).map(({ written }) => written), ...WRONG_TYPES];
  await mkdir(folder, { recursive: true });
  try {
    const statements = [...wrong, ...RIGHT].map((line) => `void (${line});`);
    await writeFile(join(folder, 'mistakes.ts'), `${PRELUDE}${statements.join('\n')}\n`);
    const options = {
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      module: 'NodeNext',
      target: 'ES2023',
      types: ['node'],
    };
    const compilerOptions = { ...options, exactOptionalPropertyTypes: true };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['mistakes.ts'] }));
    const output = await promisify(execFile)(process.execPath, [
      join(root, 'node_modules/typescript/bin/tsc'),
      ...['-p', folder, '--pretty', 'false'],
    ]).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
    const first = PRELUDE.split('\n').length;
    const refused = new Set([...output.matchAll(/mistakes\.ts\((\d+),/g)].map(([, line]) => Number(line) - first));
    expect({ prelude: [...refused].filter((line) => line < 0), output: output.slice(0, 300) }).toMatchObject({
      prelude: [],
    });
    expect(wrong.filter((_, line) => !refused.has(line))).toEqual([]);
    expect(RIGHT.filter((_, line) => refused.has(wrong.length + line))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
