import { createHash } from 'node:crypto';
import { type ErrorCode, HoldfastError } from '../../errors.ts';
import { POLICY_FIELDS } from '../../failure/policy-fields.ts';
import { DEFAULT_SIZE_LIMIT } from '../../json.ts';
import { isRecord } from '../../options.ts';
import { parseInstant } from '../../past-moment.ts';
import { taskMaker, unworked } from '../../queue/enqueue.ts';
import { importedTask, type TaskToImport } from '../../queue/import.ts';
import { show } from '../../show.ts';
import type { By, ImportedTask } from '../../store/store.ts';
import { policyOptions } from '../../views/json-shapes.ts';
import { snakeCase } from '../../views/snake-case.ts';
import { visible } from '../../views/visible.ts';
import type { AnyTask } from '../../worker/define-task.ts';
import { nearest } from '../suggest.ts';
import { recordedTypes } from '../types/task-types.ts';
import { scanJson } from './json-scan.ts';
import type { Line } from './lines.ts';
import { SeenKeys } from './seen-keys.ts';

/** The longest line, in bytes: a payload and a result of the largest size, with room for escapes. */
export const LONGEST_LINE = 16 * DEFAULT_SIZE_LIMIT;

/** Why a line is refused. */
export interface Objection {
  readonly line: number;
  /** Counted in characters from 1, if it is known. */
  readonly column?: number;
  readonly member?: string;
  readonly code: ErrorCode;
  readonly text: string;
  /** What to do about it, if that is not clear. */
  readonly hint?: string;
}

export type Reading = { readonly task: ImportedTask } | { readonly objections: readonly Objection[] };

export interface ReaderOptions {
  /** What the keys of lines without one begin with. */
  readonly keys?: string;
  readonly actor: string;
  /** For the history of lines that have no note of their own. Default: the file and the line. */
  readonly note?: string;
  readonly file: string;
  readonly now: () => number;
}

/** Reads lines as tasks of another queue. Each file needs a new reader, because a reader remembers the keys. */
export class ImportReader {
  readonly #options: ReaderOptions;
  readonly #keys = new SeenKeys();
  readonly #definitions = new Map<string, { readonly definition: AnyTask; readonly known: boolean }>();

  constructor(options: ReaderOptions) {
    this.#options = options;
    for (const definition of recordedTypes()) this.#definitions.set(definition.type, { definition, known: true });
  }

  /** Undefined for an empty line. */
  async read(line: Line): Promise<Reading | undefined> {
    const { text } = line;
    if (text === undefined) return { objections: [unreadable(line)] };
    if (text.trim() === '') return undefined;
    const objections: Objection[] = [];
    const parsed = parse(line.number, text, objections);
    if (!parsed) return { objections };
    const given = this.#membersOf(parsed, text, line.number, objections);
    if (objections.length > 0) return { objections };
    try {
      const task = await importedTask(given as unknown as TaskToImport, this.#circumstances(line.number));
      const before = this.#keys.add(task.type, task.key as string, line.number);
      if (before === undefined) return { task };
      const twice = `line ${before} has this key of this type already: each task needs its own`;
      return { objections: [placed(text, { line: line.number, member: 'key', code: 'invalid_input', text: twice })] };
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      return { objections: [refusal(text, line.number, parsed, error)] };
    }
  }

  #circumstances(line: number) {
    const { actor, note = `${this.#options.file}, line ${line}`, now } = this.#options;
    const by: By = { actor, note };
    return {
      now: now(),
      by,
      sizeLimit: DEFAULT_SIZE_LIMIT,
      makerFor: (type: string) => {
        const { definition, known } = this.#definitionOf(type);
        return (options: Parameters<typeof taskMaker>[1]) => taskMaker(definition, options, DEFAULT_SIZE_LIMIT, !known);
      },
    };
  }

  #definitionOf(type: string) {
    const found = this.#definitions.get(type) ?? { definition: unworked(type), known: false };
    if (this.#definitions.size >= MOST_TYPES_KNOWN) return found;
    this.#definitions.set(type, found);
    return found;
  }

  #membersOf(parsed: object, text: string, line: number, objections: Objection[]): Record<string, unknown> {
    const given: Record<string, unknown> = { input: null };
    const object = (member: string, why: string) =>
      objections.push(placed(text, { line, member, code: 'invalid_input', text: why }));
    for (const [member, value] of Object.entries(parsed)) {
      const read = Object.hasOwn(MEMBERS, member) ? MEMBERS[member] : undefined;
      if (!read) object(member, unknownMember(member));
      // As in the documents of --json, null means unknown. Only for a payload it is a value.
      else if (value !== null || member === 'payload') {
        const [option, converted] = read(value);
        if (converted === undefined)
          object(member, `${member} must be a time with its zone, such as 2026-01-31T09:00:00Z, got ${show(value)}`);
        else given[option] = converted;
      }
    }
    if (given.at !== undefined && given.delay !== undefined)
      object('delay', 'due_at and delay contradict each other: give one');
    if (given.type === undefined)
      objections.push({ line, member: 'type', code: 'invalid_input', text: 'type is missing' });
    if (given.key === undefined) {
      const { keys } = this.#options;
      if (keys !== undefined) given.key = `${keys}:${line}:${digest(text)}`;
      else objections.push({ line, member: 'key', code: 'invalid_input', text: 'key is missing', hint: KEY_HINT });
    }
    return given;
  }
}

const KEY_HINT =
  'A key makes it safe to import a file again: its id in the old queue is a good one. To have keys made: --keys NAME';

const LINES_HINT = "A list becomes one object a line with: jq -c '.[]' FILE | holdfast import -";

const MOST_TYPES_KNOWN = 1_000;

function digest(text: string): string {
  return createHash('sha256').update(text.trim()).digest('hex').slice(0, 12);
}

// ── Members ──

type Member = (value: unknown) => readonly [option: string, value: unknown];

const as =
  (option: string): Member =>
  (value) => [option, value];
const time =
  (option: string): Member =>
  (value) => [option, parseInstant(value)];

/** The members of a line, and their names in `importTasks`, which checks them. */
export const MEMBERS: Readonly<Record<string, Member>> = {
  type: as('type'),
  payload: as('input'),
  key: as('key'),
  queue: as('queue'),
  source: as('source'),
  priority: as('priority'),
  category: as('category'),
  needs: as('needs'),
  due_at: time('at'),
  delay: as('delay'),
  submitted_at: time('submittedAt'),
  deadline: time('deadline'),
  idempotent: as('idempotent'),
  retry: (value) => ['retry', policyOptions(value)],
  state: as('state'),
  charged: (value) => ['charged', chargedList(value)],
  executions: as('executions'),
  deferrals: as('deferrals'),
  reason: as('reason'),
  error: as('error'),
  result: as('result'),
  ended_at: time('endedAt'),
  note: as('note'),
};

/** `{"fs.locked": 3}` says the same as `[{"reason": "fs.locked", "count": 3}]`. */
function chargedList(value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.entries(value).map(([reason, count]) => ({ reason, count: count as unknown }));
}

/** Names of members in other queues and in other parts of Holdfast. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  ...{ input: 'payload', data: 'payload', args: 'payload', body: 'payload', params: 'payload' },
  ...{ id: 'key', job_id: 'key', uuid: 'key', dedupe_key: 'key', idempotency_key: 'key' },
  ...{ name: 'type', kind: 'type', task: 'type', status: 'state' },
  ...{
    run_at: 'due_at',
    next_run_at: 'due_at',
    scheduled_at: 'due_at',
    scheduled_for: 'due_at',
    next_retry_at: 'due_at',
  },
  ...{ created_at: 'submitted_at', enqueued_at: 'submitted_at', finished_at: 'ended_at', completed_at: 'ended_at' },
  ...{ attempts: 'charged', attempt_count: 'charged', attempts_by_reason: 'charged', failures: 'charged' },
  ...{ last_error: 'error', error_message: 'error', policy: 'retry', output: 'result', connector: 'source' },
};

function unknownMember(member: string): string {
  const key = member.toLowerCase();
  const word = Object.hasOwn(OTHER_WORDS, key) ? OTHER_WORDS[key] : nearest(member, Object.keys(MEMBERS))[0];
  const shown = `there is no member "${visible(member)}"`;
  if (member === 'max_attempts') return `${shown}: it is part of retry, as in {"retry": {"max_attempts": 5}}`;
  return word === undefined
    ? `${shown}. There are: ${Object.keys(MEMBERS).join(', ')}`
    : `${shown}: did you mean "${word}"?`;
}

/** The states of other queues. */
const OTHER_STATES: Readonly<Record<string, string>> = {
  ...{ pending: 'ready', queued: 'ready', waiting: 'ready', new: 'ready', open: 'ready', available: 'ready' },
  ...{ retrying: 'scheduled', retry: 'scheduled', retryable: 'scheduled', delayed: 'scheduled' },
  ...{ failed: 'dead', abandoned: 'dead', discarded: 'dead', exhausted: 'dead', error: 'dead' },
  ...{ done: 'succeeded', completed: 'succeeded', finished: 'succeeded', success: 'succeeded' },
  ...{ paused: 'held', suspended: 'held', canceled: 'cancelled', aborted: 'cancelled', manual: 'needs_manual' },
};

// ── Objections ──

function unreadable({ number, bytes, wrong }: Line): Objection {
  return wrong === 'not_utf8'
    ? { line: number, code: 'invalid_input', text: 'it is not valid UTF-8' }
    : {
        line: number,
        code: 'payload_too_large',
        text: `it is ${bytes} bytes long, and the limit is ${LONGEST_LINE}. Keep large data elsewhere and put its address in the payload`,
      };
}

/** The object of a line. Undefined, with objections, if it is not an object. */
function parse(line: number, text: string, objections: Objection[]): object | undefined {
  const object = (words: string, at?: number) => {
    const column = at === undefined ? {} : { column: columnOf(text, at) };
    const hint = line === 1 && /^\s*(?:\[|\{\s*$)/.test(text) ? { hint: LINES_HINT } : {};
    objections.push({ line, ...column, code: 'invalid_input', text: words, ...hint });
    return undefined;
  };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const { wrong } = scanJson(text);
    return object(`it is not JSON: ${wrong?.expected ?? 'a value'} was expected here`, wrong?.at);
  }
  if (!isRecord(value)) {
    return object(`each line is one task, an object such as {"type": "…", "payload": …}, got ${show(value)}`);
  }
  const { twice, twisted } = scanJson(text);
  if (twice !== undefined) return object(`the member "${visible(twice.name)}" is given twice`, twice.at);
  const [number] = twisted;
  if (number === undefined) return value;
  return object(`the number ${number.token} is larger than JavaScript can hold: write it as a text`, number.at);
}

/** An objection of the library, in the words of the file. */
function refusal(text: string, line: number, parsed: object, error: HoldfastError): Objection {
  const words = inFileWords(error.message).replace(/\.$/, '');
  const member = error.code === 'invalid_policy' ? 'retry' : words.match(MEMBER)?.[0];
  const state = (parsed as { state?: unknown }).state;
  const meant = typeof state === 'string' && Object.hasOwn(OTHER_STATES, state) ? OTHER_STATES[state] : undefined;
  const hint = member === 'state' && meant !== undefined ? `. Is it ${meant} here?` : '';
  const objection = { line, code: error.code, text: visible(words) + hint };
  return member === undefined ? objection : placed(text, { ...objection, member });
}

const MEMBER = new RegExp(`\\b(?:${Object.keys(MEMBERS).join('|')})\\b`);

const FILE_WORDS: Readonly<Record<string, string>> = Object.fromEntries(
  ['endedAt', 'submittedAt', ...Object.keys(POLICY_FIELDS)].map((name) => [name, snakeCase(name)]),
);

function inFileWords(message: string): string {
  return message
    .replace(/^The input of/, 'The payload of')
    .replaceAll(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, (word) => FILE_WORDS[word] ?? word);
}

/** With the column of its member, if the line has it. */
function placed(text: string, objection: Objection & { readonly member: string }): Objection {
  const at = scanJson(text).members.get(objection.member);
  return at === undefined ? objection : { ...objection, column: columnOf(text, at) };
}

/** Characters, as an editor counts them. */
function columnOf(text: string, at: number): number {
  let column = 1;
  for (const _ of text.slice(0, at)) column += 1;
  return column;
}
