import { InvalidInputError } from '../errors.ts';
import { REASONS } from '../failure/classify/reasons.ts';
import type { ChargedCount } from '../failure/decide.ts';
import { FAILURE_KINDS, type FailureKind, isKind, isReason } from '../failure/outcome.ts';
import { encodeJson } from '../json.ts';
import { list, moment, name, oneOf, refuseUnknown, text, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import type { By, Imported, ImportedTask } from '../store/store.ts';
import { hasEnded, IMPORT_STATES, type ImportState } from '../task.ts';
import { type EnqueueOptions, madeOfEach, OPTIONS, type TaskMaker } from './enqueue.ts';
import { LONGEST_NOTE } from './operate.ts';

/**
 * A task of another queue: its options as for `enqueue`, and its state and counts there. A count that is left out is zero. Its
 * `key` recognises it if it is imported again; a `unique` key is for new tasks only.
 */
export interface TaskToImport extends Omit<EnqueueOptions, 'unique'> {
  readonly type: string;
  readonly input: unknown;
  /** Default: it waits until it is due. For a task that was running there, say `ready` or `scheduled`. */
  readonly state?: ImportState;
  /** Its charged failures, by reason. The counts continue here. Without a kind, it is the usual one of the reason. */
  readonly charged?: readonly (Omit<ChargedCount, 'kind'> & { readonly kind?: FailureKind })[];
  /** How often it was started. Default: the sum of its failures, its deferrals and its success. */
  readonly executions?: number;
  /** How often it was deferred without a charge. */
  readonly deferrals?: number;
  /** The reason of its last deferral, failure or end. Default: the last reason in `charged`. */
  readonly reason?: string;
  /** The message of its last failure. */
  readonly error?: string;
  /** The result, if it succeeded. */
  readonly result?: unknown;
  /** When it ended, if it ended. Default: now. */
  readonly endedAt?: Date;
  /** A note about where it came from, for its history. */
  readonly note?: string;
}

const OWN = [
  'type',
  'input',
  'state',
  'charged',
  'executions',
  'deferrals',
  'reason',
  'error',
  'result',
  'endedAt',
  'note',
];

const KNOWN = [...OWN, ...OPTIONS.filter((option) => option !== 'unique')];

/** The largest count that is accepted. */
const MOST = 1_000_000_000;

/** How many tasks one transaction records. Other writers wait for this transaction. */
export const IMPORTED_AT_ONCE = 1_000;

/** How many characters of payloads and results are written in one transaction, unless a task has more. */
const CHARACTERS_AT_ONCE = 32 * 1_048_576;

/** Tasks in parts, each of which is written in one transaction. */
export function* partsOfImport(tasks: readonly ImportedTask[]): Generator<readonly ImportedTask[]> {
  let size = 0;
  let from = 0;
  for (const [at, { payload, result }] of tasks.entries()) {
    const more = payload.length + (result?.length ?? 0);
    if (at - from === IMPORTED_AT_ONCE || (at > from && size + more > CHARACTERS_AT_ONCE)) {
      yield tasks.slice(from, at);
      from = at;
      size = 0;
    }
    size += more;
  }
  if (from < tasks.length) yield tasks.slice(from);
}

const LONGEST_ERROR = 8_192;

/** What all tasks of one import share. */
export interface Circumstances {
  readonly now: number;
  readonly by: By;
  readonly sizeLimit: number;
  /** The function of `enqueue` for each type. */
  readonly makerFor: (type: string) => (options: EnqueueOptions) => TaskMaker;
}

/**
 * Checks a task of another queue, and makes an imported task for the store; a promise of it if its input's schema returns one.
 * @throws InvalidInputError or PayloadError that names the refused option.
 */
export function importedTask(given: TaskToImport, around: Circumstances): ImportedTask | Promise<ImportedTask> {
  refuseUnknown(given, KNOWN, 'importTasks');
  const { type, input, state, charged, executions, deferrals, reason, error, result, endedAt, note, ...rest } = given;
  const made = around.makerFor(name(type, 'type'))(submitted(rest, endedAt))(input);
  const stood = standing(given, around);
  const complete = (task: Awaited<typeof made>): ImportedTask => ({ ...task, ...stood });
  return made instanceof Promise ? made.then(complete) : complete(made);
}

/** Prepares all tasks; the error names the first refused one. A promise only if a schema returns one. */
export function importedTasks(
  given: readonly TaskToImport[],
  around: Circumstances,
): readonly ImportedTask[] | Promise<readonly ImportedTask[]> {
  return madeOfEach(
    given,
    (one) => importedTask(one, around),
    (index) => `tasks[${index}] is refused, so none was imported.`,
  );
}

/** A task that has ended was submitted before its end. */
function submitted(options: EnqueueOptions, endedAt: Date | undefined): EnqueueOptions {
  if (endedAt === undefined) return options;
  const { submittedAt } = options;
  if (submittedAt === undefined) return { ...options, submittedAt: moment(endedAt, 'endedAt') };
  if (moment(submittedAt, 'submittedAt') <= moment(endedAt, 'endedAt')) return options;
  throw new InvalidInputError(`endedAt is ${endedAt.toISOString()}, before it was submitted.`);
}

type Standing = Pick<ImportedTask, 'stands' | 'result' | 'endedAt' | 'by'> & Imported;

function standing(given: TaskToImport, { now, by, sizeLimit }: Circumstances): Standing {
  const { result, endedAt, note } = given;
  const stands = standsAs(given, now);
  const ended = stands !== 'waiting' && hasEnded(stands);
  if (result !== undefined && stands !== 'succeeded') {
    throw new InvalidInputError('result is what came of a success, so it goes with state succeeded only.');
  }
  if (endedAt !== undefined && !ended) {
    throw new InvalidInputError(
      'endedAt goes with what has ended: succeeded, dead or cancelled. What needs a person has not.',
    );
  }
  if (endedAt !== undefined && moment(endedAt, 'endedAt').getTime() > now) {
    throw new InvalidInputError(`endedAt lies in the future: ${endedAt.toISOString()}.`);
  }
  return {
    stands,
    ...counted(given, stands),
    ...(result !== undefined && { result: encodeJson(result, 'result', sizeLimit) }),
    ...(endedAt !== undefined && { endedAt: endedAt.getTime() }),
    by: note === undefined ? by : { ...by, note: text(note, 'note', LONGEST_NOTE) },
  };
}

function standsAs({ state, at, delay }: TaskToImport, now: number): ImportedTask['stands'] {
  if (state === undefined) return 'waiting';
  if ((state as unknown) === 'running') {
    throw new InvalidInputError(
      "state cannot be 'running': nothing of what ran elsewhere runs here. Say ready where it may run again at once, scheduled with its time where it may not, or needs_manual where a person must look first.",
    );
  }
  const later = at === undefined ? delay !== undefined : moment(at, 'at').getTime() > now;
  switch (oneOf(state, IMPORT_STATES, 'state')) {
    case 'scheduled':
      if (at !== undefined || delay !== undefined) return 'waiting';
      throw new InvalidInputError('state scheduled needs the time at which it is due. What is due now is ready.');
    case 'ready':
      if (!later) return 'waiting';
      throw new InvalidInputError('state ready means due, so it cannot be due later. What is due later is scheduled.');
    case 'held':
      return 'held';
    case 'succeeded':
    case 'needs_manual':
    case 'dead':
    case 'cancelled':
      if (at === undefined && delay === undefined) return state as Exclude<ImportState, 'scheduled' | 'ready'>;
      throw new InvalidInputError(`state ${state} has no time at which it is due: it does not go on by itself.`);
  }
}

function counted(given: TaskToImport, stands: ImportedTask['stands']): Imported {
  const charged = chargedFrom(given.charged === undefined ? [] : given.charged);
  const deferrals = wholeNumber(given.deferrals === undefined ? 0 : given.deferrals, 'deferrals', 0, MOST);
  const counted = charged.reduce((sum, { count }) => sum + count, deferrals);
  const { executions = counted + (stands === 'succeeded' ? 1 : 0) } = given;
  wholeNumber(executions, 'executions', 0);
  if (executions < counted) {
    throw new InvalidInputError(`executions must be at least charged + deferrals (${counted}), got ${executions}.`);
  }
  const reason = reasonOf(given, stands, charged, deferrals);
  const untried = (stands === 'waiting' || stands === 'held') && executions === 0;
  if (untried && (reason !== undefined || given.error !== undefined)) {
    const what = given.reason === undefined ? 'error' : 'reason';
    throw new InvalidInputError(
      `${what} tells of an earlier try, but nothing counts one: say what was charged, deferrals or executions.`,
    );
  }
  return {
    executions,
    charged,
    deferrals,
    ...(reason !== undefined && { reason }),
    ...(given.error !== undefined && { error: text(given.error, 'error', LONGEST_ERROR) }),
  };
}

function chargedFrom(given: unknown): readonly ChargedCount[] {
  const charged = list(given, 'charged', (one, what): ChargedCount => {
    refuseUnknown(one, ['reason', 'kind', 'count'], what);
    const { reason, kind, count } = one as Readonly<Record<string, unknown>>;
    const slug = slugOf(reason, `${what}.reason`);
    return {
      reason: slug,
      kind: kind === undefined ? usualKind(slug) : oneOf(kind, FAILURE_KINDS, `${what}.kind`),
      count: wholeNumber(count, `${what}.count`, 1, MOST),
    };
  });
  const names = new Set(charged.map(({ reason, kind }) => `${reason} ${kind}`));
  if (names.size === charged.length) return charged;
  throw new InvalidInputError('charged names a reason twice: add its counts up.');
}

function usualKind(reason: string): FailureKind {
  if (isKind(reason)) return reason;
  return Object.hasOwn(REASONS, reason) ? REASONS[reason as keyof typeof REASONS].kind : 'unknown';
}

function reasonOf(
  { reason }: TaskToImport,
  stands: ImportedTask['stands'],
  charged: readonly ChargedCount[],
  deferrals: number,
): string | undefined {
  if (stands === 'succeeded') {
    if (reason === undefined) return undefined;
    throw new InvalidInputError('reason goes with what has not succeeded. Why it failed before stands in charged.');
  }
  if (reason !== undefined) return slugOf(reason, 'reason');
  if (stands === 'cancelled') return 'cancelled';
  const last = charged.at(-1)?.reason ?? (deferrals > 0 ? 'explicit.later' : undefined);
  return last ?? (stands === 'dead' || stands === 'needs_manual' ? 'unknown' : undefined);
}

function slugOf(value: unknown, what: string): string {
  if (isReason(value)) return value;
  throw new InvalidInputError(
    `${what} must be a lower-case slug such as 'fs.locked', at most 64 characters, got ${show(value)}.`,
  );
}
