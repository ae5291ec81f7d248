import { remember } from '../../remember.ts';
import type { Failure } from '../outcome.ts';

/** The classes of JavaScript itself, by their prototypes. Their instances have no fields of their own but the message. */
const PLAIN = new Map<unknown, string>(
  [Error, TypeError, RangeError, ReferenceError, SyntaxError, URIError, EvalError].map((each) => [
    each.prototype,
    each.name,
  ]),
);

const LONGEST_MESSAGE = 256;
const LONGEST_STACK = 4_096;

/** The last failure with each stack. A stack that is the same string is found without comparing its characters. */
const known = new Map<string, { readonly error: PlainError; readonly failure: Failure }>();

/** An error that says no more than its class, message and stack. Equal ones are always classified alike. */
export interface PlainError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

/** Undefined if an error may say more. */
export function plainError(thrown: unknown): PlainError | undefined {
  try {
    const name = PLAIN.get(Object.getPrototypeOf(thrown));
    if (name === undefined || hasEnumerable(thrown as Error)) return undefined;
    if (!Reflect.ownKeys(thrown as Error).every((key) => key === 'message' || key === 'stack')) return undefined;
    const { message, stack } = thrown as { message: unknown; stack: unknown };
    // A number may be part of a date. Then the wait depends on the time.
    if (typeof message !== 'string' || message.length > LONGEST_MESSAGE || /\d/.test(message)) return undefined;
    if (typeof stack !== 'string' || stack.length > LONGEST_STACK) return undefined;
    return { name, message, stack };
  } catch {
    // It is null or undefined, or a Proxy.
    return undefined;
  }
}

/** A plain error has no enumerable field. To list the fields of an error that has a million would block the process for seconds. */
function hasEnumerable(error: Error): boolean {
  for (const _ in error) return true;
  return false;
}

/** The failure of an equal error that was classified before. */
export function knownFailure({ name, message, stack }: PlainError): Failure | undefined {
  const same = known.get(stack);
  return same?.error.name === name && same.error.message === message ? { ...same.failure } : undefined;
}

export function keepFailure(error: PlainError, failure: Failure): void {
  if (failure.retryAfterMs !== undefined) return;
  remember(known, error.stack, { error, failure: { ...failure } });
}
