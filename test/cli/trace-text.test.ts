import { expect, test } from 'vitest';
import type { Failure } from '../../src/failure/outcome.ts';
import { traceLines } from '../../src/views/trace-text.ts';

const failure: Failure = {
  kind: 'unknown',
  reason: 'unknown',
  fault: 'task',
  ambiguous: false,
  name: 'Error',
  message: 'cannot save',
  evidence: { rule: 'none' },
  stack:
    'parse (/app/node_modules/pg/parser.js:3:4)\nsave (/app/\u001b]0;x\u0007order.ts:1:2)\nmain (/app/main.ts:1:1)',
  causes: [
    { path: 'cause', name: 'DbError', message: 'gone\u001b[2J \u202e', stack: 'q (/app/db.ts:1:2)' },
    { path: 'cause.errors.0', name: 'Error', message: 'refused' },
  ],
};

test('an error shows the first frame of its own code and its causes, and nothing that a terminal obeys', () => {
  expect(traceLines(failure, false)).toEqual([
    'at save (/app/\\x1b]0;x\\x07order.ts:1:2)',
    'caused by DbError: gone\\x1b[2J \\u202e',
    'with Error: refused',
  ]);
  expect(traceLines({ ...failure, stack: 'parse (/app/node_modules/pg/parser.js:3:4)', causes: [] }, false)).toEqual(
    [],
  );
});

test('with -v, it shows all frames', () => {
  expect(traceLines(failure, true)).toEqual([
    'at parse (/app/node_modules/pg/parser.js:3:4)',
    'at save (/app/\\x1b]0;x\\x07order.ts:1:2)',
    'at main (/app/main.ts:1:1)',
    'caused by DbError: gone\\x1b[2J \\u202e',
    '  at q (/app/db.ts:1:2)',
    'with Error: refused',
  ]);
});
