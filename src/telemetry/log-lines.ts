import type { Decision, Facts } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import { isEnabled, type Logger, type LogLevel } from '../log.ts';
import type { RecordedCondition } from '../source/condition.ts';
import type { ActionTaken, Claimed } from '../store/store.ts';
import { hasEnded, type TaskState } from '../task.ts';
import type { EngineEvent, WorkerEvent } from './events.ts';

/**
 * The values of the field `event`. Each thing that happens to a task is one of these, and is logged once. Each round of a task
 * has exactly one line whose event begins with `ended.`; docs/reference/logs.md says which process writes it.
 */
export const LOG_EVENTS = [
  'started.initial',
  'started.retry',
  'started.deferral',
  'started.recovery',
  'started.again',
  'progress',
  'waiting.retry',
  'waiting.deferral',
  'waiting.recovery',
  'waiting.handed_back',
  'waiting.source',
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
  'redriven',
  'redrive.stopped',
  'redrive.done',
  'schedule.enqueued',
  'schedule.skipped',
  'schedule.missed',
  'unwritten',
  'stray',
  'worker.paused',
  'worker.resumed',
  'source.down',
  'source.waits',
  'source.ramping',
  'source.normal',
  'source.needs_person',
] as const;
export type LogEvent = (typeof LOG_EVENTS)[number];

interface LogLine {
  readonly fields: { readonly event: LogEvent; readonly [name: string]: unknown };
  readonly message: string;
}

type Settled = Extract<WorkerEvent, { kind: 'settled' }>;

/** Writes the line of an event, if the log writes lines of its level. It never contains payloads or results. */
export function logEvent(log: Logger, event: EngineEvent, worker: string): void {
  const level = levelOf(event);
  if (!isEnabled(log, level)) return;
  const { fields, message } = lineOf(event, worker);
  log[level](fields, message);
}

/** An error if a person should look, a warning if an execution failed or was lost, otherwise info. */
function levelOf(event: EngineEvent): LogLevel {
  switch (event.kind) {
    case 'started':
    case 'progress':
      return 'debug';
    case 'settled':
      return SETTLED[eventOf(event)] ?? 'info';
    case 'stale':
      return 'warn';
    case 'source':
      return OF_SOURCES[event.change].level;
    case 'action':
    case 'pruned':
    case 'worker_resumed':
      return 'info';
    case 'schedule':
      return event.was === 'enqueued' ? 'info' : 'warn';
    case 'redrive_ended':
      return event.state === 'stopped' ? 'error' : 'info';
    case 'unwritten':
    case 'stray':
    case 'worker_paused':
      return 'error';
  }
}

/** The levels of settlements that are not `info`. */
const SETTLED: { readonly [event in LogEvent]?: LogLevel } = {
  'waiting.retry': 'warn',
  'waiting.recovery': 'warn',
  needs_manual: 'error',
  'ended.dead': 'error',
};

const SCHEDULED = {
  enqueued: 'A schedule enqueued its task',
  skipped: 'A schedule passed a time over, because its task before has not ended',
  missed: 'A schedule passed times over, because no worker was there',
} as const;

function lineOf(event: EngineEvent, worker: string): LogLine {
  switch (event.kind) {
    case 'started': {
      const how = startOf(event.task);
      return { fields: { event: how, ...fieldsOf(event.task), worker }, message: STARTED[how] };
    }
    case 'progress':
      return {
        fields: { event: 'progress', ...fieldsOf(event.task), worker, progress: event.progress },
        message: 'It reported its progress',
      };
    case 'stale':
      return {
        fields: {
          event: 'lease_lost',
          ...fieldsOf(event.task),
          worker,
          outcome: event.outcome.kind,
          ...failureOf(event.outcome),
        },
        message: 'The lease had ended; the outcome was kept as evidence',
      };
    case 'settled':
      return {
        fields: { event: eventOf(event), ...fieldsOf(event.task), worker, ...settledFields(event) },
        message: event.decision.because.text,
      };
    case 'action':
      return lineOfAction(event.action);
    case 'pruned':
      return {
        fields: { event: 'pruned', worker, removed: event.removed },
        message: 'Removed tasks whose time was up',
      };
    case 'redrive_ended': {
      const { id, selected, putBack, skipped, succeeded, failedAgain, endedOtherwise } = event.redrive;
      const counts = { selected, putBack, skipped, succeeded, failedAgain, endedOtherwise };
      return {
        fields: { event: `redrive.${event.state}`, redrive: id, worker, ...counts },
        message: event.because,
      };
    }
    case 'schedule': {
      const { kind: _, was, tick, passedOver, tasks, ...named } = event;
      return {
        fields: {
          event: `schedule.${was}`,
          ...named,
          worker,
          at: new Date(tick).toISOString(),
          tasks,
          passed_over: passedOver,
        },
        message: SCHEDULED[was],
      };
    }
    case 'unwritten':
      return { fields: { event: 'unwritten', ...event.execution, worker }, message: UNWRITTEN };
    case 'stray': {
      const { reason, message: error } = event.failure;
      const more = event.isLast ? ' Later ones of this execution are not recorded.' : '';
      return {
        fields: { event: 'stray', ...event.execution, worker, reason, error },
        message: `The handler left something behind that failed where nobody waited for it.${more}`,
      };
    }
    case 'worker_paused': {
      const { reason, message: error } = event;
      return {
        fields: { event: 'worker.paused', worker, reason, error },
        message: `${reason}: the worker claims only single tasks to test, until one ends without this trouble`,
      };
    }
    case 'source': {
      const { source, change, reason, heldForMs, refunded } = event;
      return {
        fields: {
          event: `source.${change}`,
          source,
          worker,
          ...(reason !== undefined && { reason }),
          ...(heldForMs !== undefined && { heldForMs: Math.round(heldForMs) }),
          ...(refunded > 0 && { refunded }),
        },
        message: OF_SOURCES[change].message,
      };
    }
    case 'worker_resumed':
      return {
        fields: { event: 'worker.resumed', worker },
        message: 'A task ended without trouble: the worker claims tasks again',
      };
  }
}

const OF_SOURCES: Readonly<Record<RecordedCondition, { readonly level: LogLevel; readonly message: string }>> = {
  down: {
    level: 'warn',
    message: 'Different tasks failed at the fault of the source: its tasks are held, and one at a time tests it',
  },
  waits: { level: 'info', message: 'The source asked for a wait: none of its tasks starts until then' },
  ramping: { level: 'info', message: 'The source works again: its tasks are released slowly' },
  normal: { level: 'info', message: 'The source is in its normal state again' },
  needs_person: {
    level: 'error',
    message:
      'The source needs a person: none of its tasks starts until somebody releases it (holdfast sources release)',
  },
};

const UNWRITTEN =
  'The worker stopped before the store took the outcome of the task; the task is recovered when the store hears that the worker has ended';

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

/** The cause of an execution: the last thing that happened to the task. */
function startOf({ facts }: Claimed): Started {
  if (facts.lostInARow > 0) return 'started.recovery';
  if (facts.deferralsInARow > 0) return 'started.deferral';
  if (facts.executions <= 1) return 'started.initial';
  return chargedOf(facts) > 0 ? 'started.retry' : 'started.again';
}

function eventOf({ state, decision, outcome }: Settled): LogEvent {
  if (hasEnded(state)) return `ended.${state}`;
  if (state === 'needs_manual') return 'needs_manual';
  if (outcome.kind === 'loss') return 'waiting.recovery';
  if (outcome.kind === 'interruption') return 'waiting.handed_back';
  if ('charge' in decision && decision.charge.to === 'source') return 'waiting.source';
  return 'charge' in decision && decision.charge.to === 'task' ? 'waiting.retry' : 'waiting.deferral';
}

function settledFields({ state, decision, outcome, ranFor }: Settled): object {
  const { step, rule, policyVersion, count, limit } = decision.because;
  const superseded = state === 'cancelled' && decision.next !== 'cancelled';
  return {
    state,
    ...(superseded ? { reason: 'unique.superseded' } : reasonOf(decision)),
    ...failureOf(outcome),
    ...(decision.next === 'scheduled' && !hasEnded(state) && { retryInMs: decision.after }),
    ranForMs: Math.round(ranFor),
    step,
    rule,
    ...(count !== undefined && { count }),
    ...(limit !== undefined && { limit }),
    policyVersion,
    ...(outcome.kind === 'loss' && { lostBy: outcome.worker }),
  };
}

function reasonOf(decision: Decision): { readonly reason?: string } {
  return decision.next === 'succeeded' ? {} : { reason: decision.reason };
}

function failureOf(outcome: Outcome): object {
  if (outcome.kind !== 'failure') return {};
  const { kind, fault, ambiguous, code, message, fingerprint, stack, causes } = outcome.failure;
  return {
    kind,
    fault,
    ...(ambiguous && { ambiguous }),
    ...(code !== undefined && { code }),
    error: message,
    ...(fingerprint !== undefined && { fingerprint }),
    ...(stack !== undefined && { stack }),
    ...(causes && { causes }),
  };
}

function chargedOf({ charged }: Facts): number {
  return charged.reduce((sum, { count }) => sum + count, 0);
}

function lineOfAction({ task, type, queue, source, at, actor, verb, note, from, to }: ActionTaken): LogLine {
  const by = { actor, verb, ...(note !== undefined && { note }) };
  const reason = REASONS_OF_ACTIONS[verb];
  return {
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
  if (hasEnded(to)) return `ended.${to}`;
  if (to === 'running') return 'cancel_requested';
  if (to === 'held') return 'held';
  if (verb === 'redrive') return 'redriven';
  return verb === 'release' ? 'released' : 'retried';
}
