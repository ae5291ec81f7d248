// Real errors of real libraries, provoked on the loopback. `npm run errors:live` installs the libraries and runs this.
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { classify } from '../../../src/failure/classify/classify.ts';
import { coverage, PAGE } from './coverage.mjs';
import { GROUPS, SKIPPED } from './libraries.mjs';
import { closeShared, Loopback } from './loopback.mjs';

for (const reason of SKIPPED) process.stderr.write(`left out: ${reason}\n`);

/** A wait may have shrunk while the answer was on its way. */
const NEAR_MS = 1_500;

let on;
beforeEach(() => {
  on = new Loopback();
});
afterEach(() => on.close());
afterAll(closeShared);

describe.each(Object.values(GROUPS).flat())('an error of $name is told for what it is', ({ cases }) => {
  test.each(cases)('$what', async ({ expected, provoke }) => {
    const thrown = await provoked(provoke);
    const { kind, reason, fault, ambiguous, retryAfterMs, evidence } = classify(thrown, { now: Date.now() });
    const got = { kind, reason, fault, ambiguous, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    const accepted = expected.find((each) => isAlike(got, each));
    expect(accepted, `${said(thrown)}\n${JSON.stringify(got)} by ${JSON.stringify(evidence)}`).toBeDefined();
  });
});

test.skipIf(SKIPPED.length > 0)('COVERAGE.md lists what is provoked; if not: npm run errors:live -- --update', () => {
  const page = coverage(GROUPS);
  if (expect.getState().snapshotState._updateSnapshot === 'all') writeFileSync(PAGE, page);
  expect(readFileSync(PAGE, 'utf8')).toBe(page);
});

async function provoked(provoke) {
  let value;
  try {
    value = await provoke(on);
  } catch (error) {
    return error;
  }
  throw new Error(`nothing was thrown, but there was ${JSON.stringify(value)}`);
}

function isAlike(got, wanted) {
  const { retryAfterMs: wait, ...rest } = got;
  const { retryAfterMs: wantedWait, ...wantedRest } = wanted;
  const sameWait =
    wait === undefined || wantedWait === undefined ? wait === wantedWait : Math.abs(wait - wantedWait) <= NEAR_MS;
  return sameWait && Object.entries(wantedRest).every(([key, value]) => rest[key] === value);
}

function said(thrown) {
  return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
}
