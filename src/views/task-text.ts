import { formatDuration } from '../duration.ts';
import { type Backoff, describeBackoff } from '../failure/backoff.ts';
import type { Because, ChargedCount } from '../failure/decide.ts';
import type { Jitter } from '../failure/jitter.ts';
import type { Policy } from '../failure/policy.ts';
import type { Answered } from '../queue/policy-cache.ts';
import type { Task } from '../queue/task-view.ts';
import type { ExecutionEntry, HeldBy, HistoryEntry, Imported } from '../store/store.ts';
import type { Json } from '../task.ts';
import { lastDecision } from './last-decision.ts';
import { plural } from './plural.ts';
import { quoted, visible } from './visible.ts';

/** The types that the command line itself records and works. */
export const SHELL_COMMAND = 'shell_command';
export const FILE_MOVE = 'file_move';
export const HTTP_DELIVERY = 'http_delivery';
export const OWN_TYPES = [SHELL_COMMAND, FILE_MOVE, HTTP_DELIVERY] as const;
/** Whether `holdfast worker` and `holdfast resume` can run it. Tasks of other types are run by the program that defines the type. */
export function isOwnType(type: string): boolean {
  return (OWN_TYPES as readonly string[]).includes(type);
}
/** Them in a sentence. */
export const OWN_TYPES_TEXT = OWN_TYPES.join(', ').replace(/, (?=[^,]+$)/, ' and ');

/** What a task is, in a line: its command, its move, its request, else its type. Safe to print. */
export function summaryOf({ type, input }: Pick<Task, 'type' | 'input'>): string {
  // Whoever may not see inputs gets null.
  if (input === null) return visible(type);
  const member = (name: string): unknown =>
    typeof input === 'object' && input !== null && name in input ? (input as Record<string, unknown>)[name] : undefined;
  if (type === SHELL_COMMAND) {
    const argv = member('argv');
    if (Array.isArray(argv) && argv.length > 0) {
      return member('shell') === true ? visible(String(argv[0])) : argv.map((each) => quoted(String(each))).join(' ');
    }
  }
  if (type === FILE_MOVE) return `mv ${quoted(String(member('from')))} ${quoted(String(member('to')))}`;
  if (type === HTTP_DELIVERY)
    return `${visible(String(member('method')))} ${quoted(withoutQuery(String(member('url'))))}`;
  return visible(type);
}

/** A query may be long, and hold what is not for everybody's eyes. */
function withoutQuery(url: string): string {
  return url.replace(/\?.*$/s, '?…');
}

/** What an execution reported of its progress, in a line: `40 of 100`, a text as it is, anything else as JSON. Safe to print. */
export function progressWords(progress: Json): string {
  const { done, total, ...more } = Object(progress) as Record<string, Json>;
  if (typeof done === 'number' && typeof total === 'number' && Object.keys(more).length === 0)
    return `${done} of ${total}`;
  return visible(typeof progress === 'string' ? progress : JSON.stringify(progress));
}

/** What holds a ready task, in few words; empty where nothing does but a missing worker. */
export function heldWords({ heldBy }: Pick<Task, 'heldBy'>): string {
  return heldBy === undefined ? '' : HELD[heldBy];
}

const HELD: Readonly<Record<HeldBy, string>> = {
  source_held: 'source held',
  breaker: 'source down',
  rate_limit: 'rate limit',
  needs_person: 'source needs a person',
  budget: 'too many retries',
  pace: 'pace',
  concurrency: 'concurrency',
  queue_paused: 'queue paused',
  no_worker: '',
};

/** What holds a ready task for a while, in a sentence; undefined for what soon passes, such as a pace. Safe to print. */
export function heldSentence({
  heldBy,
  heldFor,
  source,
  queue,
}: Pick<Task, 'heldBy' | 'heldFor' | 'source' | 'queue'>): string | undefined {
  const name = visible(source);
  switch (heldBy) {
    case 'source_held':
      return `an operator holds its source ${name}`;
    case 'breaker':
      return `its source ${name} is down, or its tasks are released slowly after an outage`;
    case 'rate_limit':
      return `its source ${name} asked to wait${heldFor === undefined ? '' : `, for ${formatDuration(heldFor)}`}`;
    case 'needs_person':
      return `its source ${name} needs a person`;
    case 'budget':
      return `its source ${name} had too many retries lately`;
    case 'queue_paused':
      return `its queue ${visible(queue)} is paused`;
    default:
      return undefined;
  }
}

/** `2/8`: failures charged, and the limit that they count against. Without the limit for types that we know nothing of. */
export function attemptsOf(task: Task, { answer, known }: Answered): string {
  return known ? `${task.attempts}/${answer.maxAttempts}` : String(task.attempts);
}

/** `up to 8 attempts, exponential 5s ×2 ≤ 1h, full jitter`. A rule is named: `up to 10 attempts by the rule fs.locked, …`. */
export function policyWords(answer: Answered['answer'] | Policy): string {
  const { maxAttempts, backoff, adaptive, jitter } = answer;
  const rule = 'rule' in answer && answer.rule !== 'policy' ? ` by the rule ${visible(answer.rule)}` : '';
  if (maxAttempts === 1 || backoff.kind === 'none') return `one attempt${rule}`;
  return `up to ${maxAttempts} attempts${rule}, ${spreadWords(backoff, jitter)}${adaptive ? ', adaptive' : ''}`;
}

function spreadWords(backoff: Backoff, jitter: Jitter): string {
  const words = describeBackoff(backoff);
  switch (jitter.kind) {
    case 'none':
      return words;
    case 'proportional':
      return `${words} ±${Math.round(jitter.factor * 100)}%`;
    case 'full':
    case 'equal':
      return `${words}, ${jitter.kind} jitter`;
  }
}

/** `±10%`, `full`, `none`. */
export function jitterWords(jitter: Jitter): string {
  return jitter.kind === 'proportional' ? `±${Math.round(jitter.factor * 100)}%` : jitter.kind;
}

/** Whether the task waits for a person because its effect may have happened. */
export function isAmbiguous(task: Pick<Task, 'state'>, history: readonly HistoryEntry[]): boolean {
  return task.state === 'needs_manual' && lastDecision(history)?.because?.step === 'ambiguous';
}

/** How a delay came about: `rule fs.locked, exponential 5m ×2 ≤ 24h, retry 2, random wait from 0ms to 10m`. */
export function reasoning({ rule, formula, jitter }: Because): string {
  const spread = jitter !== undefined && jitter.low < jitter.high;
  const parts = [
    ...(rule === 'policy' ? [] : [`rule ${rule}`]),
    ...(formula === undefined ? [] : [formula]),
    ...(spread ? [`random wait from ${formatDuration(jitter.low)} to ${formatDuration(jitter.high)}`] : []),
  ];
  return visible(parts.join(', '));
}

/** How an execution ended (`exit 255`), and what it said. Both safe to print. */
export function endOf(entry: Pick<ExecutionEntry, 'failure' | 'message'>): {
  readonly how: string;
  readonly said: string;
} {
  const message = entry.failure?.message ?? entry.message ?? '';
  const [, how = '', said = ''] = /^(exit \d+|killed by SIG[A-Z0-9]+)(?:: (.*))?$/s.exec(message) ?? [];
  return how === '' ? { how: '', said: visible(message) } : { how, said: visible(said) };
}

/** `2 of 8 attempts used`. */
export function attemptsUsed(task: Task, answered: Answered): string {
  const [used, limit] = attemptsOf(task, answered).split('/');
  return limit === undefined ? `${used} attempts used` : `${used} of ${limit} attempts used`;
}

/** `3 failures counted there: fs.locked 3`, of a task that was imported with them. */
export function importedWords({ executions, charged, deferrals }: Imported): string {
  const reasons = charged.map(({ reason, count }) => `${reason} ${count}`);
  const parts = [
    ...(charged.length > 0
      ? [`${plural(chargesIn(charged), 'failure', 'failures')} counted (${reasons.join(', ')})`]
      : []),
    ...(deferrals > 0 ? [`put off ${deferrals}×`] : []),
    ...(executions > 0 ? [plural(executions, 'execution', 'executions')] : []),
  ];
  return parts.join(', ');
}

function chargesIn(charged: readonly ChargedCount[]): number {
  return charged.reduce((sum, { count }) => sum + count, 0);
}

/** Which attempt of its round each execution was. One that charged nothing leaves its number to the next. */
export function numbered(history: readonly HistoryEntry[]): ReadonlyMap<HistoryEntry, number> {
  const numbers = new Map<HistoryEntry, number>();
  let charged = 0;
  for (const entry of history) {
    if (entry.kind === 'action') {
      if (entry.verb === 'retry' && entry.from !== 'scheduled') charged = 0;
      else if (entry.imported) charged = chargesIn(entry.imported.charged);
    } else if (entry.kind === 'execution' && !entry.late) {
      numbers.set(entry, charged + 1);
      if (entry.charge === 'task') charged += 1;
    }
  }
  return numbers;
}
