import { formatDuration, type Milliseconds } from '../duration.ts';
import type { Because } from '../failure/decide.ts';
import type { Failure } from '../failure/outcome.ts';
import { remember } from '../remember.ts';
import { readStored } from '../stored-json.ts';

/**
 * A failure or an explanation in two parts. `shared` is JSON, and the same for many executions, so that a store can keep it once;
 * `own` is text that belongs to one execution.
 */
export interface SplitText {
  readonly shared: string;
  readonly own: string;
}

/** How many shared texts a store keeps at most. When it has these, it stores further ones with their executions. */
export const MOST_TEXTS = 10_000;

/** The own part is the message; if it wraps other errors, a list of its message and theirs as JSON. */
export function splitFailure(failure: Failure): SplitText {
  const { message, causes, fingerprint = '' } = failure;
  if (causes) {
    const shared = {
      ...failure,
      message: undefined,
      causes: causes.map((inner) => ({ ...inner, message: undefined })),
    };
    return { shared: JSON.stringify(shared), own: JSON.stringify([message, ...causes.map((inner) => inner.message)]) };
  }
  const known = knownFailures.get(fingerprint);
  if (known && hasSameRest(known.failure, failure)) return { shared: known.shared, own: message };
  const shared = JSON.stringify({ ...failure, message: undefined });
  // A copy, because whoever else has the failure may change it.
  remember(knownFailures, fingerprint, { failure: { ...failure, evidence: { ...failure.evidence } }, shared });
  return { shared, own: message };
}

/** The last failure with each fingerprint. To compare two costs a tenth of making the JSON of one. */
const knownFailures = new Map<string, { readonly failure: Failure; readonly shared: string }>();

/** Whether two failures without causes differ only in their messages. */
function hasSameRest(a: Failure, b: Failure): boolean {
  return (
    a.stack === b.stack &&
    a.reason === b.reason &&
    a.kind === b.kind &&
    a.fault === b.fault &&
    a.ambiguous === b.ambiguous &&
    a.retryAfterMs === b.retryAfterMs &&
    a.code === b.code &&
    a.name === b.name &&
    a.word === b.word &&
    a.fingerprint === b.fingerprint &&
    a.evidence.rule === b.evidence.rule &&
    a.evidence.field === b.evidence.field
  );
}

export function joinFailure({ shared, own }: SplitText, unreadable: string[]): Failure | null {
  const failure = readStored<Failure | null>(shared, 'failure', unreadable, null);
  if (!failure?.causes) return failure && { ...failure, message: own };
  const [message = '', ...messages] = readStored<readonly string[]>(own, 'failure', unreadable, []);
  const causes = failure.causes.map((inner, i) => ({ ...inner, message: messages[i] ?? '' }));
  return { ...failure, message, causes };
}

/** A shared explanation: the delay between the two parts of its sentence is written when it is read. */
type SharedBecause = Omit<Because, 'text'> & { readonly text: readonly string[] };

/** The own part is the random number; empty if there is none. The delay of the decision is stored beside it anyway. */
export function splitBecause(because: Because, after: Milliseconds | null): SplitText {
  const { jitter } = because;
  const own = jitter ? String(jitter.roll) : '';
  const delay = after === null ? '' : formatDuration(after);
  for (const known of recentBecauses) if (isAlike(known, because, delay)) return { shared: known.shared, own };
  const parts = partsOf(because.text, delay);
  const shared = JSON.stringify({ ...because, text: parts, jitter: jitter && { ...jitter, roll: undefined } });
  recentBecauses[made % MOST_RECENT] = { because, parts, shared };
  made += 1;
  return { shared, own };
}

interface KnownBecause {
  readonly because: Because;
  readonly parts: readonly string[];
  readonly shared: string;
}

/** The explanations that were split last and were not like one of these. Most are like one of a few. */
const recentBecauses: KnownBecause[] = [];
const MOST_RECENT = 16;
let made = 0;

/** The text before the delay and after it. */
function partsOf(text: string, delay: string): readonly string[] {
  const at = delay === '' ? -1 : text.indexOf(delay);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + delay.length)];
}

/** Whether two explanations differ only in the delay and the random number. */
function isAlike({ because: known, parts }: KnownBecause, because: Because, delay: string): boolean {
  const { step, rule, count, policyVersion, text, limit, formula, jitter } = because;
  return (
    known.count === count &&
    known.step === step &&
    known.rule === rule &&
    known.policyVersion === policyVersion &&
    known.limit === limit &&
    known.formula === formula &&
    known.jitter?.low === jitter?.low &&
    known.jitter?.high === jitter?.high &&
    known.jitter?.density === jitter?.density &&
    isJoined(text, parts, delay)
  );
}

/** Whether a text is these parts with the delay between them. */
function isJoined(text: string, [before = '', behind]: readonly string[], delay: string): boolean {
  if (behind === undefined) return text === before;
  const isAsLong = text.length === before.length + delay.length + behind.length;
  return isAsLong && text.startsWith(before) && text.endsWith(behind) && text.startsWith(delay, before.length);
}

export function joinBecause(
  { shared, own }: SplitText,
  after: Milliseconds | null,
  unreadable: string[],
): Because | undefined {
  const because = readStored<SharedBecause | null>(shared, 'because', unreadable, null);
  if (!because) return undefined;
  const { jitter } = because;
  const text = because.text.join(after === null ? '' : formatDuration(after));
  return { ...because, text, ...(jitter && { jitter: { ...jitter, roll: Number(own) } }) };
}
