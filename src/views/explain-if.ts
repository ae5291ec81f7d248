import type { Charged, Facts } from '../failure/decide.ts';
import { failureOf, later } from '../failure/foresee.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import type { Task } from '../queue/task-view.ts';
import type { ExecutionEntry, HistoryEntry } from '../store/store.ts';
import { agoInFull } from './done-by.ts';
import { failsWords } from './explain.ts';
import { type ExplainedFailure, explainFailure } from './explain-failure.ts';
import { type FailedExecution, lastFailureIn } from './last-decision.ts';
import { roundOf } from './new-round.ts';

/** What another policy would do with a task. Nothing is changed. */
export interface AssumedPolicy {
  readonly task: Task;
  /** What it would have decided for the last failure of the present round; absent if there was none. */
  readonly lastFailure?: ExplainedFailure;
  /** What it would decide for the next failure, if that is like the last one; absent if the task would have ended. */
  readonly nextFailure?: ExplainedFailure;
  /** Lines with labels, as in `Explanation`. */
  readonly text: string;
}

/** What an explanation by another policy is made of. `policy` is the effective one with the assumed options over it. */
interface Assumed {
  readonly now: number;
  readonly task: Task;
  readonly history: readonly HistoryEntry[];
  /** With which the outcome of its present or next execution would be decided. */
  readonly facts: Facts;
  readonly policy: ExplainedPolicy;
}

/** Decides the last failure again, by another policy. Pure. */
export function explainIf({ now, task, history, facts, policy }: Assumed): AssumedPolicy {
  const name = `#${task.id} ${task.type}`;
  const last = lastFailureIn(roundOf(history));
  if (last === undefined) {
    const failure = lastFailureIn(history)?.failure ?? failureOf('unknown');
    const nextFailure = explainFailure(facts, { kind: 'failure', failure }, policy);
    const lines = [`${name} has not failed in this round. With these options, its next failure:`, nextFailure.text];
    return { task, nextFailure, text: indented(lines) };
  }
  const before = factsBefore(last, { now, task, history, facts, policy });
  const outcome = { kind: 'failure', failure: last.failure } as const;
  const lastFailure = explainFailure(before, outcome, policy);
  const { decision, delay } = lastFailure;
  const goesOn = decision.next === 'scheduled' && delay !== undefined && decision.verdict === undefined;
  const nextFailure = goesOn
    ? explainFailure(later(before, decision.charge, delay.nominal), outcome, policy)
    : undefined;
  const lines = [
    `${name}: with these options, its last failure (${agoInFull(last.endedAt, now)}) would have been decided so.`,
    lastFailure.text,
    ...(nextFailure ? [`next     ${failsWords(nextFailure, task)}`] : []),
    `decided  ${last.next}: ${last.because?.text ?? 'the reason is not recorded.'}`,
  ];
  return { task, lastFailure, ...(nextFailure && { nextFailure }), text: indented(lines) };
}

function indented([headline = '', ...lines]: readonly string[]): string {
  return [headline, ...lines.flatMap((line) => line.split('\n')).map((line) => `  ${line}`)].join('\n');
}

/** The facts with which a failure of the present round was decided: the present ones without it and what came after it. */
function factsBefore(last: FailedExecution, { now, task, history, facts }: Assumed): Facts {
  const { verdict: _, ...present } = facts;
  const round = roundOf(history).filter((entry) => entry.kind === 'execution' && !entry.late);
  const executions = round as readonly ExecutionEntry[];
  const at = executions.indexOf(last);
  const [earlier, since] = [executions.slice(0, at), executions.slice(at)];
  const deferred = earlier.slice(earlier.findLastIndex(({ charge }) => charge !== 'deferrals') + 1);
  const elapsed = now - last.endedAt;
  const recoveries = facts.recoveriesAgoMs.map((ago) => ago - elapsed).filter((ago) => ago >= 0);
  const current = task.state === 'running' ? task.executions : task.executions + 1;
  return {
    ...present,
    executions: facts.executions - (current - last.execution),
    charged: since.reduce(withoutCharge, facts.charged),
    deferralsInARow: deferred.length,
    deferredForMs: deferred[0] === undefined ? 0 : last.endedAt - deferred[0].endedAt,
    recoveriesAgoMs: recoveries,
    cancelRequested: last.because?.step === 'cancelled',
    sinceFirstStartMs: Math.max(0, facts.sinceFirstStartMs - elapsed),
    ...(facts.untilDeadlineMs !== undefined && { untilDeadlineMs: facts.untilDeadlineMs + elapsed }),
    // Of its source only that is known which the decision says.
    source: { standing: last.because?.step === 'source_down' ? 'down' : 'open', shutFor: 0 },
  };
}

function withoutCharge(charged: readonly Charged[], { charge, failure, after = 0 }: ExecutionEntry) {
  if (charge !== 'task' || failure === undefined) return charged;
  return charged
    .map((each) =>
      each.reason === failure.reason
        ? { ...each, count: each.count - 1, delayMs: Math.max(0, (each.delayMs ?? 0) - after) }
        : each,
    )
    .filter(({ count }) => count > 0);
}
