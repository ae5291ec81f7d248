import type { ErrorFields } from '../error-fields.ts';
import { type Answer, type Family, type Finding, found, type Table } from '../meaning.ts';

/** Result codes of SQLite, by number. The low eight bits of an extended code are its primary code. */
const NUMBERS: Table = {
  1: 'db.schema',
  2: 'db.internal',
  3: 'fs.permission',
  4: 'db.transaction',
  5: 'db.locked',
  6: 'db.locked',
  7: 'db.resources',
  8: 'db.readonly',
  9: 'abort',
  10: 'fs.io',
  11: 'db.corrupt',
  13: 'fs.no_space',
  14: 'db.connection unknown',
  15: 'db.locked',
  17: 'db.schema unknown',
  18: 'too_large',
  19: 'db.constraint',
  20: 'db.data',
  21: 'code.bug',
  23: 'auth.forbidden',
  25: 'code.bug',
  26: 'db.corrupt',
  1555: 'db.unique',
  2067: 'db.unique',
  2579: 'db.unique',
};

/** The same by the beginning of the name, the most exact first. */
const NAMES: readonly (readonly [prefix: string, answer: Answer])[] = [
  ['CONSTRAINT_UNIQUE', 'db.unique'],
  ['CONSTRAINT_PRIMARYKEY', 'db.unique'],
  ['CONSTRAINT_ROWID', 'db.unique'],
  ['CONSTRAINT', 'db.constraint'],
  ['BUSY', 'db.locked'],
  ['LOCKED', 'db.locked'],
  ['PROTOCOL', 'db.locked'],
  ['READONLY', 'db.readonly'],
  ['CANTOPEN', { reason: 'db.connection', kind: 'unknown', ambiguous: false }],
  ['IOERR_NOMEM', 'db.resources'],
  ['IOERR', 'fs.io'],
  ['CORRUPT', 'db.corrupt'],
  ['NOTADB', 'db.corrupt'],
  ['FULL', 'fs.no_space'],
  ['TOOBIG', 'too_large'],
  ['MISMATCH', 'db.data'],
  ['RANGE', 'code.bug'],
  ['MISUSE', 'code.bug'],
  ['NOMEM', 'db.resources'],
  ['PERM', 'fs.permission'],
  ['AUTH', 'auth.forbidden'],
  ['INTERRUPT', 'abort'],
  ['ABORT', 'db.transaction'],
  ['SCHEMA', 'db.schema unknown'],
  ['INTERNAL', 'db.internal'],
  ['ERROR', 'db.schema'],
];

export const sqlite: Family = { name: 'sqlite', sorts: ['coded'], recognise: byResult };

function byResult(fields: ErrorFields): Finding | undefined {
  const { code } = fields;
  if (typeof code !== 'string') return undefined;
  if (code.startsWith('SQLITE_')) {
    // node-sqlite3 gives only the primary code; the message names the constraint.
    if (code === 'SQLITE_CONSTRAINT' && /\b(?:UNIQUE|PRIMARY KEY) constraint failed/.test(fields.message)) {
      return found('db.unique', 'message');
    }
    const answer = NAMES.find(([prefix]) => code.startsWith(prefix, 'SQLITE_'.length))?.[1];
    return answer === undefined ? undefined : found(answer, 'code');
  }
  if (code !== 'ERR_SQLITE_ERROR') return undefined;
  const number = fields.number('errcode') ?? 1;
  const answer = NUMBERS[number] ?? NUMBERS[number & 0xff];
  return answer === undefined ? undefined : found(answer, 'errcode');
}
