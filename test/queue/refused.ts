import { afterAll, beforeAll, expect } from 'vitest';
import { ERROR_CODES, HoldfastError } from '../../src/index.ts';

/** What a call was refused with. Nothing but an error of ours will do, however wrong its arguments were. */
export async function refused(call: () => unknown): Promise<HoldfastError> {
  let answer: unknown;
  try {
    answer = await call();
  } catch (error) {
    expect(error).toBeInstanceOf(HoldfastError);
    const refusal = error as HoldfastError;
    expect(ERROR_CODES).toContain(refusal.code);
    expect(refusal.name).toMatch(/Error$/);
    return refusal;
  }
  throw new Error(`It was not refused, and answered ${String(answer)}.`);
}

/** Fails the file if anything in it ends as an unhandled rejection. */
export function watchRejections(): void {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(() => {
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
}

/** Values that are hardly ever an option: each test leaves out those that its option takes. */
const NONSENSE: Readonly<Record<string, unknown>> = {
  null: null,
  true: true,
  '-1': -1,
  '1.5': 1.5,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '10n': 10n,
  "''": '',
  'a text': 'nonsense!',
  'a symbol': Symbol('nonsense'),
  'a function': () => {},
  'an array': [1],
  'an object': { a: 1 },
  'a hostile object': { toString: null, valueOf: null },
  'an invalid Date': new Date(Number.NaN),
};

/** The nonsense without some. */
export function nonsense(except: readonly string[] = []): [string, unknown][] {
  return Object.entries(NONSENSE).filter(([name]) => !except.includes(name));
}
