import type { Decision, Facts } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { LogLevel } from '../log.ts';
import type { ActionTaken, Claimed } from '../store/store.ts';
import { hasEnded, type TaskState } from '../task.ts';
import type { WorkerEvent } from './events.ts';

/**
 * What a line is about, in its field `event`: each thing that happens to a task is one of these, and is logged once. Of those that
 * begin with `ended.` there is exactly one in each round of a task; docs/logs.md says who writes which.
 */
export const LOG_EVENTS = [
  'started.initial',
  'started.retry',
  'started.deferral',
  'started.recovery',
  'started.again',
  'waiting.retry',
  'waiting.deferral',
  'waiting.recovery',
  'waiting.handed_back',
  'needs_manual',
  'ended.succeeded',
  'ended.dead',
  'ended.cancelled',
  'lease_lost',
  'cancel_requested',
  'retried',
  'held',
  'released',
  'pruned',
  'unwritten',
  'stray',
  'worker.paused',
  'worker.resumed',
] as const;
export type LogEvent = (typeof LOG_EVENTS)[number];

/** A line that is about to be logged. */
export interface LogLine {
  readonly level: LogLevel;
  readonly fields: { readonly event: LogEvent; readonly [name: string]: unknown };
  readonly message: string;
}

type Settled = Extract<WorkerEvent, { kind: 'settled' }>;

/** How urgent it is: an error where a person should look, a warning for an execution that failed or was lost, else news. */
export function levelOf(event: WorkerEvent): LogLevel {
  switch (event.kind) {
    case 'started':
      return 'debug';
    case 'settled':
      return SETTLED[eventOf(event)] ?? 'info';
    case 'stale':
      return 'warn';
  }
}

/** What is no news. */
const SETTLED: { readonly [event in LogEvent]?: LogLevel } = {
  'waiting.retry': 'warn',
  'waiting.recovery': 'warn',
  needs_manual: 'error',
  'ended.dead': 'error',
};

/** The line of what a worker did. Payloads and results are never in it. */
export function lineOf(event: WorkerEvent, worker: string): LogLine {
  const level = levelOf(event);
  const whose = { ...fieldsOf(event.task), worker };
  switch (event.kind) {
    case 'started': {
      const how = startOf(event.task);
      return { level, fields: { event: how, ...whose }, message: STARTED[how] };
    }
    case 'stale':
      return {
        level,
        fields: { event: 'lease_lost', ...whose, outcome: event.outcome.kind, ...failureOf(event.outcome) },
        message: 'The lease had ended; the outcome was kept as evidence',
      };
    case 'settled':
      return {
        level,
        fields: { event: eventOf(event), ...whose, ...settledFields(event) },
        message: event.decision.because.text,
      };
  }
}

function fieldsOf({ lease, type, queue, source, key, facts }: Claimed): object {
  return {
    task: lease.task,
    type,
    queue,
    source,
    ...(key !== undefined && { key }),
    execution: lease.execution,
    attempt: chargedOf(facts) + 1,
  };
}

type Started = Extract<LogEvent, `started.${string}`>;

const STARTED: Readonly<Record<Started, string>> = {
  'started.initial': 'First execution',
  'started.retry': 'Retry after a failure',
  'started.deferral': 'Again, as it was put off',
  'started.recovery': 'Again, after its worker was lost',
  'started.again': 'Again, after it was handed back',
};

/** What led to an execution: the last thing that happened to the task. */
function startOf({ facts }: Claimed): Started {
  if (facts.lostInARow > 0) return 'started.recovery';
  if (facts.deferralsInARow > 0) return 'started.deferral';
  if (facts.executions <= 1) return 'started.initial';
  return chargedOf(facts) > 0 ? 'started.retry' : 'started.again';
}

function eventOf({ state, decision, outcome }: Settled): LogEvent {
  if (state === 'succeeded' || state === 'dead' || state === 'cancelled') return `ended.${state}`;
  if (state === 'needs_manual') return 'needs_manual';
  if (outcome.kind === 'loss') return 'waiting.recovery';
  if (outcome.kind === 'interruption') return 'waiting.handed_back';
  return 'charge' in decision && decision.charge.to === 'task' ? 'waiting.retry' : 'waiting.deferral';
}

function settledFields({ state, decision, outcome, ranFor }: Settled): object {
  const { step, rule, policyVersion } = decision.because;
  const superseded = state === 'cancelled' && decision.next !== 'cancelled';
  return {
    state,
    ...(superseded ? { reason: 'unique.superseded' } : reasonOf(decision)),
    ...failureOf(outcome),
    ...(decision.next === 'scheduled' && !hasEnded(state) && { retryInMs: decision.after }),
    ranForMs: Math.round(ranFor),
    step,
    rule,
    policyVersion,
    ...(outcome.kind === 'loss' && { lostBy: outcome.worker }),
  };
}

function reasonOf(decision: Decision): { readonly reason?: string } {
  return decision.next === 'succeeded' ? {} : { reason: decision.reason };
}

function failureOf(outcome: Outcome): object {
  if (outcome.kind !== 'failure') return {};
  const { kind, fault, ambiguous, code, message, fingerprint } = outcome.failure;
  return {
    kind,
    fault,
    ...(ambiguous && { ambiguous }),
    ...(code !== undefined && { code }),
    error: message,
    ...(fingerprint !== undefined && { fingerprint }),
  };
}

function chargedOf({ charged }: Facts): number {
  return charged.reduce((sum, { count }) => sum + count, 0);
}

/** The line of a step that somebody took with a task, in whatever process. */
export function lineOfAction({ task, type, queue, source, at, actor, verb, note, from, to }: ActionTaken): LogLine {
  const by = { actor, verb, ...(note !== undefined && { note }) };
  const reason = REASONS_OF_ACTIONS[verb];
  return {
    level: 'info',
    fields: {
      event: eventOfAction(verb, to),
      task,
      type,
      queue,
      source,
      ...by,
      from,
      state: to,
      ...(reason !== undefined && { reason }),
      at,
    },
    message: `${verb} by ${actor}${note === undefined ? '' : `: ${note}`}`,
  };
}

/** As the store has them. */
const REASONS_OF_ACTIONS: Readonly<Record<string, string>> = { cancel: 'cancelled', supersede: 'unique.superseded' };

function eventOfAction(verb: string, to: TaskState): LogEvent {
  if (to === 'succeeded' || to === 'dead' || to === 'cancelled') return `ended.${to}`;
  if (to === 'running') return 'cancel_requested';
  if (to === 'held') return 'held';
  return verb === 'release' ? 'released' : 'retried';
}
