import type { Milliseconds } from '../../duration.ts';
import type { Writable } from '../../writable.ts';
import { REASONS } from './reasons.ts';
import { recognise, refined } from './recognise.ts';
import { waitAskedFor } from './retry-after.ts';
import type { Seen } from './seen.ts';
import type { Node } from './tree.ts';
import { kindOf, STRENGTHS, type Strength, type Verdict, verdictOf } from './verdict.ts';

/** The verdict about an error and everything that it wraps. */
export interface Judged {
  readonly verdict: Verdict;
  readonly strength: Strength;
  /** The family that recognised it, and the field that it read, as a path from the thrown value. */
  readonly rule: string;
  readonly field: string;
  /** The error that has this field. */
  readonly node: Node;
  readonly retryAfterMs?: Milliseconds;
}

/**
 * The strongest evidence in an error and everything that it wraps. An outer error wins over its cause, unless the evidence of
 * the cause is stronger, or the cause is permanent and its evidence no weaker.
 */
export function judge(node: Node, now: number): Judged | undefined {
  let best = own(node, now);
  if (node.causes.length === 0 && node.together.length === 0) return best;
  for (const cause of node.causes) best = stronger(best, judge(cause, now));
  return node.together.length === 0 ? best : stronger(best, together(node.together, now));
}

function stronger(outer: Judged | undefined, inner: Judged | undefined): Judged | undefined {
  if (!outer || !inner) return outer ?? inner;
  // The cause of the abort was a time limit, which is the more exact reason.
  if (outer.verdict.reason === 'abort' && outer.strength === 'hint' && /timeout$/.test(inner.verdict.reason))
    return inner;
  // Clients say "the network failed" if they do not know more. The cause may be more exact.
  if (outer.verdict.reason === 'net.failed' && outer.strength === 'hint' && inner.strength === 'hint') return inner;
  if (weight(inner) > weight(outer))
    return outer.strength === 'status' || outer.strength === 'said' ? unlessForbidden(outer, inner) : inner;
  const hidden =
    kindOf(inner.verdict) === 'permanent' &&
    isHopeful(outer) &&
    outer.strength !== 'status' &&
    weight(inner) >= weight(outer);
  return hidden && weight(inner) >= STRENGTHS.indexOf('code') ? inner : outer;
}

/** The response of a service wins over the cause, unless the cause explicitly forbids a retry. */
function unlessForbidden(outer: Judged, inner: Judged): Judged {
  return inner.strength === 'said' && kindOf(inner.verdict) === 'permanent' && isHopeful(outer) ? inner : outer;
}

function isHopeful({ verdict }: Judged): boolean {
  const kind = kindOf(verdict);
  return kind === 'transient' || kind === 'unknown';
}

function weight({ strength }: Judged): number {
  return STRENGTHS.indexOf(strength);
}

const MILDEST_FIRST = ['rate_limited', 'transient', 'unknown', 'permanent'] as const;

/**
 * The verdict about several errors that happened together: that of the error whose retry is most likely to succeed. One retry too
 * many costs little, but a wrong "permanent" ends the task. The longest wait counts. If one error is ambiguous, all are.
 */
function together(nodes: readonly Node[], now: number): Judged | undefined {
  const judged = nodes.map((each) => judge(each, now));
  const known = judged.filter((each) => each !== undefined);
  const [first] = known.toSorted((a, b) => hope(a) - hope(b));
  if (!first) return undefined;
  const waits = known.map(({ retryAfterMs }) => retryAfterMs).filter((ms) => ms !== undefined);
  const wait = waits.length === 0 ? {} : { retryAfterMs: Math.max(...waits) };
  // An error that nothing recognised may be transient, so the whole is not permanent.
  const verdict =
    known.length < judged.length && kindOf(first.verdict) === 'permanent' ? verdictOf('unknown') : first.verdict;
  return { ...first, ...wait, verdict: known.some(isAmbiguous) ? { ...verdict, ambiguous: true } : verdict };
}

function hope({ verdict }: Judged): number {
  return MILDEST_FIRST.indexOf(kindOf(verdict));
}

export function isAmbiguous({ verdict }: { readonly verdict: Verdict }): boolean {
  return verdict.ambiguous ?? REASONS[verdict.reason].ambiguous;
}

/** The verdict about one error, without what it wraps. */
function own(node: Node, now: number): Judged | undefined {
  const { seen } = node;
  const recognised = recognise(seen);
  if (!recognised) return undefined;
  const { verdict, wait } = withWait(refined(recognised.finding.verdict, seen), seen, now);
  const judged: Writable<Judged> = {
    verdict,
    strength: recognised.finding.strength ?? 'code',
    rule: recognised.rule,
    field: `${node.path}${recognised.finding.field}`,
    node,
  };
  if (wait !== undefined) judged.retryAfterMs = wait;
  return judged;
}

function withWait(
  verdict: Verdict,
  seen: Seen,
  now: number,
): { readonly verdict: Verdict; readonly wait?: Milliseconds } {
  if (verdict.ifWait !== undefined) {
    const instead = withWait(refined(verdictOf(verdict.ifWait), seen), seen, now);
    if (instead.wait !== undefined) return instead;
  }
  const wait = waitAskedFor(seen, now, { kind: kindOf(verdict), reason: verdict.reason });
  return wait === undefined ? { verdict } : { verdict, wait };
}
