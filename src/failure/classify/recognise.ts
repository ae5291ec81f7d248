import { fitsAllowance } from './allowance.ts';
import { codesIn } from './body.ts';
import { explicit } from './explicit.ts';
import { byEnding } from './families/endings.ts';
import {
  BODY_CODES,
  CODES,
  type Entry,
  NAMES,
  SENSES,
  VAGUE_CODES,
  VENDOR_CODES,
  VENDOR_NAMES,
} from './families/index.ts';
import { network } from './families/network.ts';
import { byClass } from './families/programming.ts';
import { byHttp, mayOutrank } from './http.ts';
import { read } from './inspect.ts';
import { byMessage } from './messages.ts';
import { Seen } from './seen.ts';
import { byStatus } from './status-answers.ts';
import { type Finding, found, kindOf, type Strength, type Verdict, verdictOf } from './verdict.ts';

/** What an error is, and the family that recognised it. */
export interface Recognised {
  readonly finding: Finding;
  readonly rule: string;
}

/** Recognises one error, without what it wraps. The first kind of evidence that applies decides. */
export function recognise(seen: Seen): Recognised | undefined {
  const recognised = byEvidence(seen);
  const said = explicit(seen);
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
  const kind = recognised && kindOf(recognised.finding.verdict);
  if (!again) {
    if (kind === 'permanent' && recognised?.finding.strength !== 'class') return recognised;
    return { finding: found('explicit.permanent', field, 'said'), rule: 'explicit' };
  }
  if (kind === 'transient' || kind === 'rate_limited') return recognised;
  return { finding: found('explicit.transient', field, kind === 'permanent' ? 'said' : 'hint'), rule: 'explicit' };
}

/** The verdict of any family, made more exact by the status and by the size of the request. */
export function refined(verdict: Verdict, seen: Seen): Verdict {
  if (kindOf(verdict) === 'rate_limited' || verdict.reason === 'too_large') {
    const fits = fitsAllowance(seen);
    if (fits === false) return verdictOf('too_large');
    if (fits === true && verdict.reason === 'too_large') return refined(verdictOf('throttled'), seen);
  }
  const status = seen.status?.number ?? 0;
  if (verdict.reason === 'http.5xx') {
    if (status === 529) return verdictOf('throttled');
    // The status says whether the server accepted the request at all.
    const { ambiguous } = verdictOf(byStatus(status));
    if (verdict.ambiguous === undefined && status >= 500 && ambiguous !== undefined) return { ...verdict, ambiguous };
  }
  if (verdict.reason === 'throttled' && status === 429) return { ...verdict, reason: 'http.429' };
  return verdict.reason === 'not_found' && status === 404 ? { ...verdict, reason: 'http.404' } : verdict;
}

function byEvidence(seen: Seen): Recognised | undefined {
  if (typeof seen.value === 'object' && seen.value !== null) return ofObject(seen);
  return typeof seen.value === 'string' ? withRule(byMessage(seen), 'message') : undefined;
}

function ofObject(seen: Seen): Recognised | undefined {
  let hint: Recognised | undefined;
  for (const family of SENSES[seen.sort]) {
    const finding = family.sense?.(seen);
    if (!finding) continue;
    if (finding.strength !== 'hint') return { finding, rule: family.name };
    hint ??= { finding, rule: family.name };
  }
  const exact = byTables(seen) ?? byBody(seen);
  if (exact) return exact;
  const http = withRule(byHttp(seen), 'http');
  if (http && http.finding.strength !== 'hint') return http;
  const known = byHiddenCode(seen) ?? entry(CODES, seen.code, 'code');
  if (known) return known;
  const message = withRule(byMessage(seen), 'message');
  if (message && message.finding.strength !== 'hint') return message;
  const vague = entry(VAGUE_CODES, seen.code, 'code', 'hint') ?? hint ?? http ?? byName(seen) ?? message;
  return vague ?? withRule(byEnding(seen), 'names') ?? withRule(byClass(seen), 'programming');
}

function withRule(finding: Finding | undefined, rule: string): Recognised | undefined {
  return finding && { finding, rule };
}

/** nodemailer has its own code and keeps the system's in `originalCode`. */
function byHiddenCode(seen: Seen): Recognised | undefined {
  const code = seen.get('originalCode');
  if (typeof code !== 'string') return undefined;
  const finding = network.sense?.(new Seen({ code, message: seen.message }));
  const known = finding ? { finding, rule: network.name } : entry(CODES, code, 'code');
  return known && { ...known, finding: { ...known.finding, field: 'originalCode' } };
}

/** Codes and names that only one library uses. */
function byTables(seen: Seen): Recognised | undefined {
  return (
    entry(VENDOR_CODES, seen.code, 'code') ??
    entry(VENDOR_NAMES, seen.name, 'name') ??
    entry(VENDOR_NAMES, seen.class, 'name')
  );
}

/** A name that says little. The evidence of a cause wins over it. */
function byName(seen: Seen): Recognised | undefined {
  return entry(NAMES, seen.name, 'name', 'hint') ?? entry(NAMES, seen.class, 'name', 'hint');
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
function byBody(seen: Seen): Recognised | undefined {
  // jsforce copies Salesforce's code, but not the status.
  const own = entry(BODY_CODES, seen.get('errorCode'), 'errorCode');
  if (own && seen.status === undefined) return own;
  const status = seen.status?.number ?? (/(?:API|Response)Error$/.test(seen.class) ? 400 : 0);
  if (status < 400) return undefined;
  const copied = entry(BODY_CODES, seen.code, 'code') ?? entry(BODY_CODES, seen.get('type'), 'type') ?? byList(seen);
  if (copied && mayOutrank(copied.finding.verdict, status)) return strong(copied);
  const { body } = seen;
  if (body === undefined) return undefined;
  for (const [code, path] of codesIn(body)) {
    const known = entry(BODY_CODES, code, `body.${path}`);
    if (known && mayOutrank(known.finding.verdict, status)) return strong(known);
  }
  return undefined;
}

/** Google's clients copy the list of reasons from the body. */
function byList(seen: Seen): Recognised | undefined {
  return entry(BODY_CODES, read(read(seen.get('errors'), 0), 'reason'), 'errors.0.reason');
}

function strong(known: Recognised): Recognised {
  return { ...known, finding: { ...known.finding, strength: 'status' } };
}
