import { ERRORS } from '../error-codes.ts';
import {
  type ConfigProblem,
  type ErrorCode,
  FailureGroupNotFoundError,
  HoldfastError,
  InvalidConfigError,
  StoreError,
} from '../errors.ts';
import { InvalidFilterError } from '../filter.ts';
import { visible, visibleLines } from '../views/visible.ts';
import { EXIT } from './exit-codes.ts';

/**
 * `not_found`: the store does not know the name. `output_failed`: writing to stdout failed. `unexpected`: any other error, so a bug
 * in Holdfast or a failing machine.
 */
export type ProblemCode = ErrorCode | 'not_found' | 'output_failed' | 'unexpected';

export interface ProblemOptions {
  /** Sentences, a line each. */
  readonly why?: readonly string[];
  /** What to do next: commands, or sentences that name one. */
  readonly hints?: readonly string[];
  readonly exit?: number;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/** Why a command failed: what happened, why, what to do next, and the exit code. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly why: readonly string[];
  readonly hints: readonly string[];
  readonly exit: number;
  readonly retryable: boolean;

  constructor(code: ProblemCode, what: string, options: ProblemOptions = {}) {
    super(withoutPasswords(what), 'cause' in options ? { cause: options.cause } : undefined);
    this.name = 'Problem';
    this.code = code;
    this.why = (options.why ?? []).map(withoutPasswords);
    this.hints = (options.hints ?? []).map(withoutPasswords);
    this.exit = options.exit ?? EXITS[code];
    this.retryable = options.retryable ?? false;
  }

  /** The same problem for a command that has exit codes of its own. */
  endingWith(exit: number): Problem {
    const { code, message, why, hints, retryable } = this;
    return new Problem(code, message, { why, hints, retryable, exit, cause: this.cause });
  }
}

/** The address of a store may stand in any text, for example where it was typed by mistake. */
function withoutPasswords(text: string): string {
  return text.replaceAll(/(postgres(?:ql)?:\/\/[^\s:@/]*):[^\s@]*@/gi, '$1@');
}

/** The problem for a flag or argument that is refused. */
export function usage(what: string, options: ProblemOptions = {}): Problem {
  return new Problem('invalid_input', what, options);
}

/** Whatever was thrown, as a problem. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof InvalidConfigError) return problemOfConfig(error);
  if (error instanceof InvalidFilterError) return problemOfFilter(error);
  if (error instanceof FailureGroupNotFoundError) {
    return new Problem(error.code, `there is no group of failures '${visible(error.group)}' in this store`, {
      hints: ['list those that exist: holdfast failures --all'],
      cause: error,
    });
  }
  if (error instanceof HoldfastError) {
    const retryable = error instanceof StoreError && error.retryable;
    return new Problem(error.code, error.message, { cause: error, retryable });
  }
  const message = error instanceof Error ? error.message : String(error);
  return new Problem('unexpected', message || 'something failed without a message', {
    why: ['This is an unexpected error, probably a bug in Holdfast. Recorded tasks are safe.'],
    hints: ['run it again with -vv to see where it happened'],
    cause: error,
  });
}

/** The filter with carets under what is wrong with it. */
function problemOfFilter(error: InvalidFilterError): Problem {
  const { what, hint, text, at, length } = error;
  const before = visible(text.slice(0, at));
  return usage(`${visible(what)}, at column ${at + 1}`, {
    why: [visible(text), `${' '.repeat(before.length)}${'^'.repeat(Math.max(1, length))} ${visible(hint)}`],
    cause: error,
  });
}

/** A full disk under stdout, for example. */
export function outputFailed(error: NodeJS.ErrnoException): Problem {
  return new Problem('output_failed', unwritable(error), {
    why: ['Recorded tasks are safe: holdfast list shows them.'],
    cause: error,
  });
}

/** `the output cannot be written: no space left on device (ENOSPC)`. */
export function unwritable({ code = '', message, syscall }: NodeJS.ErrnoException): string {
  const said = message.replace(`${code}: `, '').replace(new RegExp(`, ${syscall}$`), '');
  return `the output cannot be written: ${said}${code === '' ? '' : ` (${code})`}`;
}

/** All errors at once, each on a line with a position that editors understand. */
function problemOfConfig(error: InvalidConfigError): Problem {
  const { file, problems } = error;
  const found = problems.filter(({ severity }) => severity === 'error').length;
  return new Problem('invalid_config', `${visible(file)} is refused: ${found} ${found === 1 ? 'error' : 'errors'}`, {
    why: problems.map((one) => configProblemLine(file, one)),
    hints: ['the file is not used; correct it, then check it: holdfast policies validate'],
    cause: error,
  });
}

/** `holdfast.yaml:12:9  error  types.order.retry  …  Did you mean …?` */
export function configProblemLine(file: string, problem: ConfigProblem): string {
  const { severity, line, column, path, value, message, suggestion } = problem;
  const about = path === '' ? '' : `${path}: `;
  const got = value === '' || message.includes(value) ? '' : ` (${value})`;
  const next = suggestion === undefined ? '' : ` ${suggestion}`;
  return visible(`${file}:${line}:${column}  ${severity.padEnd(7)}  ${about}${message}${got}${next}`);
}

export function configProblemJson(problem: ConfigProblem): object {
  const { severity, path, line, column, value, message, suggestion } = problem;
  return { severity, path, line, column, value, message, suggestion: suggestion ?? null };
}

/** For a terminal: a line with what happened, then why, then what to do next, and the exit code at the end. */
export function problemLines(problem: Problem): string[] {
  const [what = '', ...more] = visibleLines(problem.message);
  const lines = [`error: ${what}`, ...[...more, ...problem.why, ...problem.hints].map((line) => `       ${line}`)];
  const last = lines.pop() as string;
  return [...lines, `${last}   (exit ${problem.exit})`];
}

/** RFC 9457, with our code, exit code, hints and whether the same call may succeed later. */
export function problemJson(problem: Problem): object {
  const { cause } = problem;
  return {
    type: `urn:holdfast:problem:${problem.code}`,
    code: problem.code,
    title: titleOf(problem.code),
    detail: inOneText([problem.message, ...problem.why]),
    exit: problem.exit,
    hints: problem.hints,
    retryable: problem.retryable,
    ...(cause instanceof InvalidConfigError && { file: cause.file, problems: cause.problems.map(configProblemJson) }),
  };
}

/** A sentence that begins with a capital letter follows a full stop. */
function inOneText(sentences: readonly string[]): string {
  return sentences.reduce(
    (text, next) => `${text}${/[^.:!?…]$/.test(text) && /^\p{Lu}/u.test(next) ? '.' : ''} ${next}`,
  );
}

function titleOf(code: ProblemCode): string {
  return code in TITLES ? TITLES[code as keyof typeof TITLES] : ERRORS[code as ErrorCode].title;
}

/** The exit code of a command that ends with this problem. */
const EXITS: Readonly<Record<ProblemCode, number>> = {
  invalid_input: EXIT.usage,
  invalid_policy: EXIT.usage,
  invalid_config: EXIT.invalidConfig,
  payload_rejected: EXIT.usage,
  payload_too_large: EXIT.usage,
  unknown_type: EXIT.conflict,
  task_not_found: EXIT.notFound,
  worker_not_found: EXIT.notFound,
  redrive_not_found: EXIT.notFound,
  schedule_not_found: EXIT.notFound,
  failure_group_not_found: EXIT.notFound,
  not_found: EXIT.notFound,
  state_conflict: EXIT.conflict,
  redrive_conflict: EXIT.conflict,
  unique_conflict: EXIT.conflict,
  task_failed: EXIT.conflict,
  result_timeout: EXIT.notFinished,
  lease_lost: EXIT.conflict,
  store_busy: EXIT.store,
  store_read_only: EXIT.notPermitted,
  store_full: EXIT.store,
  store_corrupt: EXIT.store,
  store_too_new: EXIT.store,
  store_unsupported: EXIT.store,
  store_unavailable: EXIT.store,
  store_replaced: EXIT.store,
  store_io: EXIT.store,
  closed: EXIT.failed,
  output_failed: EXIT.failed,
  unexpected: EXIT.failed,
};

/** Titles of problems that only the command line has. Those of all others are in `ERRORS`. */
const TITLES: Readonly<Record<Exclude<ProblemCode, ErrorCode>, string>> = {
  not_found: 'Name not found',
  output_failed: 'Output cannot be written',
  unexpected: 'Unexpected failure',
};
