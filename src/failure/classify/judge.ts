import type { Milliseconds } from '../../duration.ts';
import type { Writable } from '../../writable.ts';
import type { ErrorFields } from './error-fields.ts';
import { kindOf, type Meaning, meaningOf, STRENGTHS, type Strength } from './meaning.ts';
import { REASONS } from './reasons.ts';
import { recognise, refined } from './recognise.ts';
import { waitAskedFor } from './retry-after.ts';
import type { Node } from './tree.ts';

/** What an error and everything that it wraps mean. */
export interface Judged {
  readonly meaning: Meaning;
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
  if (outer.meaning.reason === 'abort' && outer.strength === 'hint' && /timeout$/.test(inner.meaning.reason))
    return inner;
  // Clients say "the network failed" if they do not know more. The cause may be more exact.
  if (outer.meaning.reason === 'net.failed' && outer.strength === 'hint' && inner.strength === 'hint') return inner;
  if (weight(inner) > weight(outer))
    return outer.strength === 'status' || outer.strength === 'said' ? unlessForbidden(outer, inner) : inner;
  const hidden =
    kindOf(inner.meaning) === 'permanent' &&
    isHopeful(outer) &&
    outer.strength !== 'status' &&
    weight(inner) >= weight(outer);
  return hidden && weight(inner) >= STRENGTHS.indexOf('code') ? inner : outer;
}

/** The response of a service wins over the cause, unless the cause explicitly forbids a retry. */
function unlessForbidden(outer: Judged, inner: Judged): Judged {
  return inner.strength === 'said' && kindOf(inner.meaning) === 'permanent' && isHopeful(outer) ? inner : outer;
}

function isHopeful({ meaning }: Judged): boolean {
  const kind = kindOf(meaning);
  return kind === 'transient' || kind === 'unknown';
}

function weight({ strength }: Judged): number {
  return STRENGTHS.indexOf(strength);
}

const MILDEST_FIRST = ['rate_limited', 'transient', 'unknown', 'permanent'] as const;

/**
 * The meaning of several errors that happened together: that of the error whose retry is most likely to succeed. One retry too
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
  const meaning =
    known.length < judged.length && kindOf(first.meaning) === 'permanent' ? meaningOf('unknown') : first.meaning;
  return { ...first, ...wait, meaning: known.some(isAmbiguous) ? { ...meaning, ambiguous: true } : meaning };
}

function hope({ meaning }: Judged): number {
  return MILDEST_FIRST.indexOf(kindOf(meaning));
}

export function isAmbiguous({ meaning }: { readonly meaning: Meaning }): boolean {
  return meaning.ambiguous ?? REASONS[meaning.reason].ambiguous;
}

/** The meaning of one error, without what it wraps. */
function own(node: Node, now: number): Judged | undefined {
  const { fields } = node;
  const recognised = recognise(fields);
  if (!recognised) return undefined;
  const { meaning, wait } = withWait(refined(recognised.finding.meaning, fields), fields, now);
  const judged: Writable<Judged> = {
    meaning,
    strength: recognised.finding.strength ?? 'code',
    rule: recognised.rule,
    field: `${node.path}${recognised.finding.field}`,
    node,
  };
  if (wait !== undefined) judged.retryAfterMs = wait;
  return judged;
}

function withWait(
  meaning: Meaning,
  fields: ErrorFields,
  now: number,
): { readonly meaning: Meaning; readonly wait?: Milliseconds } {
  if (meaning.ifWait !== undefined) {
    const instead = withWait(refined(meaningOf(meaning.ifWait), fields), fields, now);
    if (instead.wait !== undefined) return instead;
  }
  const wait = waitAskedFor(fields, now, { kind: kindOf(meaning), reason: meaning.reason });
  return wait === undefined ? { meaning } : { meaning, wait };
}
