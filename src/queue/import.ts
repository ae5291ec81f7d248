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

/**
 * A task of another queue: what it is, as for `enqueue`, and how it stood there. What is left out, it did not have. By its `key` it
 * is recognised again; a `unique` key is for new tasks.
 */
export interface TaskToImport extends Omit<EnqueueOptions, 'unique'> {
  readonly type: string;
  readonly input: unknown;
  /** Default: it waits, until it is due. What was running there is said to be `ready`, or `scheduled`. */
  readonly state?: ImportState;
  /** Its failures that counted, by reason: the next one counts on. A kind that is not said is the usual one of its reason. */
  readonly charged?: readonly (Omit<ChargedCount, 'kind'> & { readonly kind?: FailureKind })[];
  /** How often it was started. Default: as often as it failed, was deferred and succeeded. */
  readonly executions?: number;
  /** How often it was put off without being charged. */
  readonly deferrals?: number;
  /** Why it was last put off or ended. Default: the last reason in `charged`. */
  readonly reason?: string;
  /** The message of its last failure. */
  readonly error?: string;
  /** Of one that succeeded. */
  readonly result?: unknown;
  /** Of one that ended. Default: now. */
  readonly endedAt?: Date;
  /** A word about where it came from, for its history. */
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

/** More than any queue counts, and few enough to be added up. */
const MOST = 1_000_000_000;

/** How many tasks one transaction records: others wait to write for as long as it lasts. */
export const IMPORTED_AT_ONCE = 1_000;

const LONGEST_ERROR = 8_192;
export const LONGEST_NOTE = 4_096;

/** What is the same for all tasks that are imported together. */
export interface Circumstances {
  readonly now: number;
  readonly by: By;
  readonly sizeLimit: number;
  /** As for `enqueue`, by type. */
  readonly makerFor: (type: string) => (options: EnqueueOptions) => TaskMaker;
}

/**
 * Checks a task of another queue, and makes of it what a store takes. A promise of it where its input's schema answers one.
 * @throws InvalidInputError or PayloadError naming what is refused.
 */
export function importedTask(given: TaskToImport, around: Circumstances): ImportedTask | Promise<ImportedTask> {
  refuseUnknown(given, KNOWN, 'importTasks');
  const { type, input, state, charged, executions, deferrals, reason, error, result, endedAt, note, ...rest } = given;
  const made = around.makerFor(name(type, 'type'))(submitted(rest, endedAt))(input);
  const stood = standing(given, around);
  const complete = (task: Awaited<typeof made>): ImportedTask => ({ ...task, ...stood });
  return made instanceof Promise ? made.then(complete) : complete(made);
}

/** All of them; the first that is refused is named. A promise only where a schema answers one. */
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

/** What had ended was submitted before that. */
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
  const told = charged.reduce((sum, { count }) => sum + count, deferrals);
  const { executions = told + (stands === 'succeeded' ? 1 : 0) } = given;
  wholeNumber(executions, 'executions', 0);
  if (executions < told) {
    throw new InvalidInputError(`executions must be at least charged + deferrals (${told}), got ${executions}.`);
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
