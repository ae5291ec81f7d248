import { type DurationInput, duration, LONGEST, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { oneOf, refuseUnknown } from '../options.ts';
import { show } from '../show.ts';
import { read, readNumber } from './classify/inspect.ts';
import { REASONS, type Reason } from './classify/reasons.ts';
import { OTHERWISE_CALLED } from './otherwise-called.ts';
import { FAILURE_KINDS, FAULTS, type FailureKind, type Fault, isReason } from './outcome.ts';

/**
 * A handler throws or returns a signal to say how its execution ended. Signals are recognised by a symbol, not by `instanceof`, so that two
 * copies of the package in one process understand each other.
 */
export const SIGNAL = Symbol.for('holdfast.signal');

export type Signal =
  | { readonly signal: 'permanent' | 'needs_manual'; readonly reason: string; readonly code?: string }
  | { readonly signal: 'later'; readonly reason: string; readonly after?: Milliseconds }
  | { readonly signal: 'rate_limited'; readonly reason: string; readonly after?: Milliseconds; readonly code?: string }
  | {
      readonly signal: 'failed';
      readonly reason: string;
      readonly kind: FailureKind;
      readonly code?: string;
      /** Set only by `failedAt`. */
      readonly fault?: Fault;
    };

export interface SignalOptions {
  /** A slug such as `order.closed`. Lower-case words and digits joined by `.`, `_` or `-`. */
  readonly reason?: string;
  /** The application's own code, kept with the failure. */
  readonly code?: string | number;
  readonly cause?: unknown;
}

const OPTIONS = ['reason', 'code', 'cause'] as const satisfies readonly (keyof SignalOptions)[];

abstract class SignalError extends Error {
  readonly [SIGNAL]: Signal;

  constructor(message: string, signal: Signal, options: { cause?: unknown }) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.name = new.target.name;
    this[SIGNAL] = signal;
  }
}

/** Ends the task: no policy retries it. Its state is then the policy's `onExhausted`, `dead` by default. */
export class PermanentFailure extends SignalError {
  constructor(message = 'The handler said that retrying cannot help.', options: SignalOptions = {}) {
    const signal = signalOf('PermanentFailure', message, options, OPTIONS, () => ({
      signal: 'permanent',
      reason: slug(options.reason, 'explicit.permanent'),
      ...code(options),
    }));
    super(message, signal, options);
  }
}

/** Asks a person: the task waits as `needs_manual`, whatever its policy says. */
export class NeedsManual extends SignalError {
  constructor(message = 'The handler asked for a person.', options: SignalOptions = {}) {
    const signal = signalOf('NeedsManual', message, options, OPTIONS, () => ({
      signal: 'needs_manual',
      reason: slug(options.reason, 'explicit.needs_manual'),
      ...code(options),
    }));
    super(message, signal, options);
  }
}

/**
 * Run the task later: a deferral, without a charge. Without `after`, the policy's backoff gives the delay. Deferrals are at least
 * one second apart, and are limited by the policy's `maxDeferrals` and `maxDeferredFor`.
 */
export class RetryLater extends SignalError {
  constructor(
    after?: DurationInput,
    message = 'The handler asked to run later.',
    options: Omit<SignalOptions, 'code'> = {},
  ) {
    const signal = signalOf('RetryLater', message, options, ['reason', 'cause'], () => ({
      signal: 'later',
      reason: slug(options.reason, 'explicit.later'),
      ...wait(after),
    }));
    super(message, signal, options);
  }
}

/** The other side limits the rate. With `after`: a deferral of at least that. Without: the policy's rule for rate limits applies. */
export class RateLimited extends SignalError {
  constructor(after?: DurationInput, message = 'The other side limits the rate.', options: SignalOptions = {}) {
    const signal = signalOf('RateLimited', message, options, OPTIONS, () => ({
      signal: 'rate_limited',
      reason: slug(options.reason, 'throttled'),
      ...wait(after),
      ...code(options),
    }));
    super(message, signal, options);
  }
}

/**
 * A charged failure with your own reason. For a reason of Holdfast's, `kind` is by default that of the reason (`quota.exhausted` is
 * permanent). For any other reason it is `transient`, so the policy retries it.
 */
export class Failed extends SignalError {
  constructor(message: string, options: SignalOptions & { readonly kind?: FailureKind } = {}) {
    const signal = signalOf('Failed', message, options, [...OPTIONS, 'kind'], () => {
      const reason = slug(options.reason, 'explicit.failed');
      const kind = options.kind ?? (Object.hasOwn(REASONS, reason) ? REASONS[reason as Reason].kind : 'transient');
      return { signal: 'failed', kind: oneOf(kind, FAILURE_KINDS, 'kind'), reason, ...code(options) };
    });
    super(message, signal, options);
  }
}

/** A `Failed` of a built-in handler, with the fault. A `Failed` of an application is the fault of the task. */
export function failedAt(fault: Fault, message: string, options: ConstructorParameters<typeof Failed>[1]): Failed {
  const failed = new Failed(message, options);
  return Object.assign(failed, { [SIGNAL]: { ...failed[SIGNAL], fault } });
}

/**
 * Makes a signal from checked options. If they are refused, the error is a charged failure that the policy retries: the code is wrong, and
 * not the task.
 */
function signalOf(
  what: string,
  message: unknown,
  options: unknown,
  known: readonly string[],
  make: () => Signal,
): Signal {
  try {
    if (typeof message === 'object' && message !== null) {
      const hint = message instanceof Error ? 'Write error.message, { cause: error }.' : 'Options come after it.';
      throw new InvalidInputError(`The message of ${what} must be a text, got ${show(message)}. ${hint}`);
    }
    refuseUnknown(options, known, what, OTHERWISE_CALLED.signal);
    return make();
  } catch (error) {
    const signal: Signal = { signal: 'failed', reason: 'explicit.failed', kind: 'unknown' };
    throw error instanceof InvalidInputError ? Object.assign(error, { [SIGNAL]: signal }) : error;
  }
}

function slug(reason: string | undefined, fallback: string): string {
  if (reason === undefined) return fallback;
  if (!isReason(reason)) {
    throw new InvalidInputError(
      `reason must be a lower-case slug such as 'order.closed', at most 64 characters, got ${show(reason)}.`,
    );
  }
  return reason;
}

function code(options: SignalOptions): { code?: string } {
  return options.code === undefined ? {} : { code: String(options.code).slice(0, 128) };
}

function wait(after: DurationInput | undefined): { after?: Milliseconds } {
  return after === undefined ? {} : { after: duration(after, 'after') };
}

/** What a handler may return or throw to say how its execution ended. */
export type ReturnedSignal = PermanentFailure | NeedsManual | RetryLater | RateLimited | Failed;

/** Whether a handler returned a signal. It then counts as thrown: as a result it would say that the task succeeded. */
export function isSignal(returned: unknown): boolean {
  return typeof returned === 'object' && returned !== null && parseSignal(returned) !== undefined;
}

/** The signal of an error. It is parsed, because an older or newer copy of the package may have made it. */
export function parseSignal(error: unknown): Signal | undefined {
  const found = read(error, SIGNAL);
  const reason = read(found, 'reason');
  if (!isReason(reason)) return undefined;
  const text = read(found, 'code');
  const code = typeof text === 'string' ? { code: text } : {};
  const ms = readNumber(found, 'after');
  const after = ms !== undefined && ms >= 0 ? { after: Math.min(ms, LONGEST) } : {};
  const signal = read(found, 'signal');
  switch (signal) {
    case 'permanent':
    case 'needs_manual':
      return { signal, reason, ...code };
    case 'later':
      return { signal, reason, ...after };
    case 'rate_limited':
      return { signal, reason, ...after, ...code };
    case 'failed': {
      const kind = read(found, 'kind');
      const said = read(found, 'fault');
      const fault = FAULTS.find((known) => known === said);
      return {
        signal,
        reason,
        kind: FAILURE_KINDS.find((known) => known === kind) ?? 'unknown',
        ...code,
        ...(fault && { fault }),
      };
    }
    default:
      return undefined;
  }
}
