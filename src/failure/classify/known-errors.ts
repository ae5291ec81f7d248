import type { Failure } from '../outcome.ts';

/** The classes of JavaScript itself, by their prototypes. Their instances have no fields of their own but the message. */
const PLAIN = new Map<unknown, string>(
  [Error, TypeError, RangeError, ReferenceError, SyntaxError, URIError, EvalError].map((each) => [
    each.prototype,
    each.name,
  ]),
);

const MOST_KNOWN = 1_000;
const LONGEST_MESSAGE = 256;
const LONGEST_STACK = 4_096;

const known = new Map<string, Failure>();

/** Errors with the same key are always classified alike. Undefined if an error may say more than its class, message and stack. */
export function keyOf(thrown: unknown): string | undefined {
  try {
    const name = PLAIN.get(Object.getPrototypeOf(thrown));
    if (name === undefined || hasEnumerable(thrown as Error)) return undefined;
    if (!Reflect.ownKeys(thrown as Error).every((key) => key === 'message' || key === 'stack')) return undefined;
    const { message, stack } = thrown as { message: unknown; stack: unknown };
    // A number may be part of a date. Then the wait depends on the time.
    if (typeof message !== 'string' || message.length > LONGEST_MESSAGE || /\d/.test(message)) return undefined;
    if (typeof stack !== 'string' || stack.length > LONGEST_STACK) return undefined;
    return `${name}\n${message}\n${stack}`;
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
export function knownFailure(key: string): Failure | undefined {
  const failure = known.get(key);
  return failure && { ...failure };
}

export function keepFailure(key: string, failure: Failure): void {
  if (failure.retryAfterMs !== undefined) return;
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(key, { ...failure });
}
