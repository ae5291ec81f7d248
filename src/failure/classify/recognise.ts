import { fitsAllowance } from './allowance.ts';
import { codesIn } from './body.ts';
import { ErrorFields } from './error-fields.ts';
import { explicit } from './explicit.ts';
import { byEnding } from './families/endings.ts';
import {
  BODY_CODES,
  CODES,
  type Entry,
  NAMES,
  RECOGNISERS,
  VAGUE_CODES,
  VENDOR_CODES,
  VENDOR_NAMES,
} from './families/index.ts';
import { network } from './families/network.ts';
import { byClass } from './families/programming.ts';
import { byHttp, mayOutrank } from './http.ts';
import { read } from './inspect.ts';
import { type Finding, found, kindOf, type Meaning, meaningOf, type Strength } from './meaning.ts';
import { byMessage } from './messages.ts';
import { byStatus } from './status-answers.ts';

/** What an error is, and the family that recognised it. */
export interface Recognised {
  readonly finding: Finding;
  readonly rule: string;
}

/** Recognises one error, without what it wraps. The first kind of evidence that applies decides. */
export function recognise(fields: ErrorFields): Recognised | undefined {
  const recognised = byEvidence(fields);
  const said = explicit(fields);
  return said ? unlessExplicit(recognised, said) : recognised;
}

/**
 * If the error itself says whether it may be retried, that wins. If the recognised reason agrees with it, the reason is kept,
 * because it is more exact.
 */
function unlessExplicit(
  recognised: Recognised | undefined,
  { again, field }: { again: boolean; field: string },
): Recognised | undefined {
  const kind = recognised && kindOf(recognised.finding.meaning);
  if (!again) {
    if (kind === 'permanent' && recognised?.finding.strength !== 'class') return recognised;
    return { finding: found('explicit.permanent', field, 'said'), rule: 'explicit' };
  }
  if (kind === 'transient' || kind === 'rate_limited') return recognised;
  const ifWait = recognised?.finding.meaning.ifWait;
  const meaning = ifWait === undefined ? 'explicit.transient' : ({ reason: 'explicit.transient', ifWait } as const);
  return { finding: found(meaning, field, kind === 'permanent' ? 'said' : 'hint'), rule: 'explicit' };
}

/** The meaning of any family, made more exact by the status and by the size of the request. */
export function refined(meaning: Meaning, fields: ErrorFields): Meaning {
  if (kindOf(meaning) === 'rate_limited' || meaning.reason === 'too_large') {
    const fits = fitsAllowance(fields);
    if (fits === false) return meaningOf('too_large');
    if (fits === true && meaning.reason === 'too_large') return refined(meaningOf('throttled'), fields);
  }
  const status = fields.status?.number ?? 0;
  if (meaning.reason === 'http.5xx') {
    if (status === 529) return meaningOf('throttled');
    // The status says whether the server accepted the request at all.
    const { ambiguous } = meaningOf(byStatus(status));
    if (meaning.ambiguous === undefined && status >= 500 && ambiguous !== undefined) return { ...meaning, ambiguous };
  }
  if (meaning.reason === 'throttled' && status === 429) return { ...meaning, reason: 'http.429' };
  return meaning.reason === 'not_found' && status === 404 ? { ...meaning, reason: 'http.404' } : meaning;
}

function byEvidence(fields: ErrorFields): Recognised | undefined {
  if (typeof fields.value === 'object' && fields.value !== null) return ofObject(fields);
  return typeof fields.value === 'string' ? withRule(byMessage(fields), 'message') : undefined;
}

function ofObject(fields: ErrorFields): Recognised | undefined {
  let hint: Recognised | undefined;
  for (const family of RECOGNISERS[fields.sort]) {
    const finding = family.recognise?.(fields);
    if (!finding) continue;
    if (finding.strength !== 'hint') return { finding, rule: family.name };
    hint ??= { finding, rule: family.name };
  }
  const exact = byTables(fields) ?? byBody(fields);
  if (exact) return exact;
  const http = withRule(byHttp(fields), 'http');
  if (http && http.finding.strength !== 'hint') return http;
  const known = byHiddenCode(fields) ?? entry(CODES, fields.code, 'code');
  if (known) return known;
  const message = withRule(byMessage(fields), 'message');
  if (message && message.finding.strength !== 'hint') return message;
  const vague = entry(VAGUE_CODES, fields.code, 'code', 'hint') ?? hint ?? http ?? byName(fields) ?? message;
  return vague ?? withRule(byEnding(fields), 'names') ?? withRule(byClass(fields), 'programming');
}

function withRule(finding: Finding | undefined, rule: string): Recognised | undefined {
  return finding && { finding, rule };
}

/** nodemailer has its own code and keeps the system's in `originalCode`. */
function byHiddenCode(fields: ErrorFields): Recognised | undefined {
  const code = fields.get('originalCode');
  if (typeof code !== 'string') return undefined;
  const finding = network.recognise?.(new ErrorFields({ code, message: fields.message }));
  const known = finding ? { finding, rule: network.name } : entry(CODES, code, 'code');
  return known && { ...known, finding: { ...known.finding, field: 'originalCode' } };
}

/** Codes and names that only one library uses. */
function byTables(fields: ErrorFields): Recognised | undefined {
  return (
    entry(VENDOR_CODES, fields.code, 'code') ??
    entry(VENDOR_NAMES, fields.name, 'name') ??
    entry(VENDOR_NAMES, fields.class, 'name')
  );
}

/** A name that says little. The evidence of a cause wins over it. */
function byName(fields: ErrorFields): Recognised | undefined {
  return entry(NAMES, fields.name, 'name', 'hint') ?? entry(NAMES, fields.class, 'name', 'hint');
}

function entry(
  table: ReadonlyMap<string, Entry>,
  key: unknown,
  field: string,
  strength?: Strength,
): Recognised | undefined {
  if (typeof key !== 'string') return undefined;
  const known = table.get(key);
  return known && { finding: found(known.answer, field, strength), rule: known.family };
}

/** A code in the body of an error response, if it is more exact than the status. */
function byBody(fields: ErrorFields): Recognised | undefined {
  // jsforce copies Salesforce's code, but not the status.
  const own = entry(BODY_CODES, fields.get('errorCode'), 'errorCode');
  if (own && fields.status === undefined) return own;
  const status = fields.status?.number ?? (/(?:API|Response)Error$/.test(fields.class) ? 400 : 0);
  if (status < 400) return undefined;
  const copied =
    entry(BODY_CODES, fields.code, 'code') ?? entry(BODY_CODES, fields.get('type'), 'type') ?? byList(fields);
  if (copied && mayOutrank(copied.finding.meaning, status)) return strong(copied);
  const { body } = fields;
  if (body === undefined) return undefined;
  for (const [code, path] of codesIn(body)) {
    const known = entry(BODY_CODES, code, `body.${path}`);
    if (known && mayOutrank(known.finding.meaning, status)) return strong(known);
  }
  return undefined;
}

/** Google's clients copy the list of reasons from the body. */
function byList(fields: ErrorFields): Recognised | undefined {
  return entry(BODY_CODES, read(read(fields.get('errors'), 0), 'reason'), 'errors.0.reason');
}

function strong(known: Recognised): Recognised {
  return { ...known, finding: { ...known.finding, strength: 'status' } };
}
