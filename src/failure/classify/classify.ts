import type { Writable } from '../../writable.ts';
import type { Failure, Outcome } from '../outcome.ts';
import { parseSignal, type Signal } from '../signals.ts';
import { clean, describe } from './describe.ts';
import { fingerprint } from './fingerprint.ts';
import { innerErrors } from './inner-errors.ts';
import { readNumber } from './inspect.ts';
import { isAmbiguous, judge } from './judge.ts';
import { keepFailure, knownFailure, plainError } from './known-errors.ts';
import type { ClassifyContext, MatchedRule, Rules } from './matched-rule.ts';
import { kindOf } from './meaning.ts';
import { REASONS } from './reasons.ts';
import { waitAskedFor } from './retry-after.ts';
import { withoutSecrets } from './secrets.ts';
import { framesOf } from './stack.ts';
import { type Node, outermostFirst, treeOf } from './tree.ts';

const LONGEST_CODE = 128;

/**
 * Classifies a thrown value of any kind. Never throws, takes bounded time, and reads no clock.
 * The first of these that applies decides: a signal, the application's rules, the families of errors (also for wrapped errors in
 * `cause`, `errors` and similar fields), the message. Otherwise the failure is `unknown`.
 */
export function classify(thrown: unknown, context: ClassifyContext): Failure {
  return classifyBy(thrown, context);
}

/** The outcome of an execution whose handler threw. `RetryLater` is a deferral, everything else a failure. */
export function outcomeOf(thrown: unknown, context: ClassifyContext): Outcome {
  const plain = plainError(thrown);
  const known = plain && knownFailure(plain);
  if (known) return { kind: 'failure', failure: known };
  const outcome = outcomeBy(thrown, context);
  if (plain && outcome.kind === 'failure') keepFailure(plain, outcome.failure);
  return outcome;
}

/** As `classify`, with the application's rules, which apply after signals and before the families. */
export function classifyBy(thrown: unknown, context: ClassifyContext, rules?: Rules): Failure {
  const tree = treeOf(thrown);
  return failureOf(thrown, tree, findSignal(tree), context, rules);
}

/** As `outcomeOf`, with the application's rules. */
export function outcomeBy(thrown: unknown, context: ClassifyContext, rules?: Rules): Outcome {
  const tree = treeOf(thrown);
  const signal = findSignal(tree);
  if (signal?.signal !== 'later') return { kind: 'failure', failure: failureOf(thrown, tree, signal, context, rules) };
  return {
    kind: 'deferral',
    reason: signal.reason,
    message: textOf(thrown, tree).message,
    ...(signal.after !== undefined && { after: signal.after }),
  };
}

function failureOf(
  thrown: unknown,
  tree: Node,
  signal: Signal | undefined,
  context: ClassifyContext,
  rules?: Rules,
): Failure {
  const text = textOf(thrown, tree);
  if (signal) return failureFrom(signal, text);
  const ruled = rules?.(tree, context);
  return ruled ? byRule(ruled, text, context.now) : byFamilies(tree, text, context.now);
}

/** Finds a signal in the thrown value or in an error that it wraps. The outermost one counts. */
function findSignal(tree: Node): Signal | undefined {
  const first = parseSignal(tree.fields.value);
  if (first || tree.causes.length + tree.together.length === 0) return first;
  for (const { fields } of outermostFirst(tree)) {
    const signal = parseSignal(fields.value);
    if (signal) return signal;
  }
  return undefined;
}

/** What is kept of the thrown value for people. */
type Text = Pick<Failure, 'name' | 'message' | 'stack' | 'causes'>;

function textOf(thrown: unknown, tree: Node): Text {
  const { name, message } = describe(thrown);
  const text: Writable<Text> = { name: withoutSecrets(name), message: withoutSecrets(message) };
  const stack = framesOf(thrown);
  const causes = innerErrors(tree);
  if (stack !== undefined) text.stack = stack;
  if (causes) text.causes = causes;
  return text;
}

function byFamilies(tree: Node, text: Text, now: number): Failure {
  const judged = judge(tree, now);
  if (!judged || judged.meaning.reason === 'unknown') {
    const wait = waitAskedFor(tree.fields, now, { kind: 'unknown', reason: 'unknown' });
    const what = wasAccepted(tree) ? { ...UNKNOWN, ambiguous: true } : UNKNOWN;
    return failureWith(what, text, judged ?? NO_EVIDENCE, tree, wait);
  }
  const { meaning, node } = judged;
  const { reason } = meaning;
  const what = {
    reason,
    kind: kindOf(meaning),
    fault: meaning.fault ?? REASONS[reason].fault,
    ambiguous: isAmbiguous(judged),
  };
  // The wait may be in the outer error although the reason came from an inner one.
  const wait = judged.retryAfterMs ?? (node === tree ? undefined : waitAskedFor(tree.fields, now, what));
  return failureWith(what, text, judged, node, wait);
}

function byRule({ says, name, field, node }: MatchedRule, text: Text, now: number): Failure {
  const wait = says.retryAfterMs ?? waitAskedFor(node.fields, now, says);
  return failureWith(says, text, { rule: name, field: `${node.path}${field}` }, node, wait);
}

type What = Pick<Failure, 'kind' | 'reason' | 'fault' | 'ambiguous'>;

const UNKNOWN: What = { kind: 'unknown', reason: 'unknown', fault: 'task', ambiguous: false };
/** Whether the request may have had its effect: the status is a success, or 0, which browsers give if they got no response. */
function wasAccepted({ fields, causes, together }: Node): boolean {
  const status = fields.number('status') ?? fields.number('statusCode') ?? readNumber(fields.response, 'status');
  if (status === 0 || (status !== undefined && status >= 200 && status < 300)) return true;
  return causes.some(wasAccepted) || together.some(wasAccepted);
}

const NO_EVIDENCE = { rule: 'none' };

function failureWith(
  what: What,
  text: Text,
  { rule, field }: { rule: string; field?: string },
  { fields }: Node,
  wait: number | undefined,
): Failure {
  const { kind, reason, fault, ambiguous } = what;
  const evidence = field === undefined ? { rule } : { rule, field };
  const failure: Writable<Failure> = {
    kind,
    reason,
    fault,
    ambiguous,
    ...text,
    evidence,
    fingerprint: fingerprint(reason, text),
  };
  if (wait !== undefined) failure.retryAfterMs = wait;
  const { code } = fields;
  if (typeof code === 'string' || typeof code === 'number') failure.code = kept(String(code));
  return failure;
}

function failureFrom(signal: Signal, text: Text): Failure {
  switch (signal.signal) {
    case 'permanent':
      return { ...spoken(signal, text), kind: 'permanent', fault: 'task', word: 'permanent' };
    case 'needs_manual':
      return { ...spoken(signal, text), kind: 'unknown', fault: 'task', word: 'needs_manual' };
    case 'failed':
      return { ...spoken(signal, text), kind: signal.kind, fault: signal.fault ?? 'task' };
    case 'later':
    case 'rate_limited': {
      const wait = signal.after === undefined ? {} : { retryAfterMs: signal.after };
      return { ...spoken(signal, text), kind: 'rate_limited', fault: 'quota', ...wait };
    }
  }
}

function spoken(signal: Signal, text: Text) {
  const code = 'code' in signal && signal.code !== undefined ? { code: kept(signal.code) } : {};
  const { reason } = signal;
  const print = fingerprint(reason, text);
  return {
    ...text,
    reason,
    ambiguous: false,
    evidence: { rule: 'signal', field: signal.signal },
    fingerprint: print,
    ...code,
  };
}

function kept(code: string): string {
  return withoutSecrets(clean(code, LONGEST_CODE));
}
