import { describeOrigin } from '../failure/layers.ts';
import type { Task } from '../queue/task-view.ts';
import type { Explanation, PossibleAction } from '../views/explain.ts';
import type { PastExplanation } from '../views/explain-at.ts';
import type { ExplainedFailure } from '../views/explain-failure.ts';
import type { AssumedPolicy } from '../views/explain-if.ts';
import { becauseJson, failureJson, historyJson, taskJson } from '../views/json-shapes.ts';
import { isOwnType } from '../views/task-text.ts';
import { rfc3339 } from '../views/times.ts';
import { quoted } from '../views/visible.ts';
import type { CommandLine } from './command-line.ts';

/** What to do, in words. */
export function wordsOf(task: Task, { verb, words, worker }: PossibleAction): string {
  return needsItsProgram(task, verb) && worker === undefined
    ? `start the program that defines the type ${task.type}`
    : words;
}

/** `holdfast worker` runs no tasks of other types, but it records the loss of any. */
function needsItsProgram({ type, state }: Task, verb: PossibleAction['verb']): boolean {
  return verb === 'work' && state !== 'running' && !isOwnType(type);
}

/** The command that does it; undefined if no command can. */
export function commandOf(
  commands: CommandLine,
  task: Task,
  { verb, as, name = '', worker }: PossibleAction,
): string | undefined {
  const { id } = task;
  // The command has no flags for categories and capabilities: its configuration has.
  if (worker === 'category' || worker === 'needs' || (worker !== 'any' && needsItsProgram(task, verb)))
    return undefined;
  switch (verb) {
    case 'resolve':
      return commands.command(`resolve ${id} --as ${as}`);
    case 'releaseSource':
      return commands.command(`sources release ${quoted(name)}`);
    case 'probeSource':
      return commands.command(`sources probe ${quoted(name)}`);
    case 'resumeQueue':
      return commands.command(`queues resume ${quoted(name)}`);
    case 'work':
      return commands.command('worker');
    case 'retry':
    case 'release':
    case 'cancel':
      return commands.command(`${verb} ${id}`);
  }
}

/** The content of `holdfast explain ID --if … --json`. */
export function assumedContent({ task, lastFailure, nextFailure, text }: AssumedPolicy): object {
  return {
    task: taskJson(task),
    last_failure: lastFailure ? explainedFailureJson(lastFailure) : null,
    next_failure: nextFailure ? explainedFailureJson(nextFailure) : null,
    text,
  };
}

/** The content of `holdfast explain ID --at … --json`. */
export function pastContent(
  { task, state, headline, before, after, because, text }: PastExplanation,
  at: Date,
): object {
  return {
    task: taskJson(task),
    at: rfc3339(at),
    state,
    headline,
    because: because ? becauseJson(because) : null,
    before: before ? historyJson(before) : null,
    after: after ? historyJson(after) : null,
    text,
  };
}

/** The content of `holdfast explain ID --error … --json`. */
export function explainedErrorContent(explained: ExplainedFailure, task: Task | undefined): object {
  return { task: task ? taskJson(task) : null, ...explainedFailureJson(explained) };
}

/** The content of `holdfast explain ID --json`. */
export function explanationContent(commands: CommandLine, explanation: Explanation): object {
  return { task: taskJson(explanation.task), ...explanationParts(commands, explanation) };
}

/** An explanation without its task. */
export function explanationParts(commands: CommandLine, explanation: Explanation): object {
  const { task, headline, heldBy, checks, because, nextFailure, next, actions, text } = explanation;
  return {
    headline,
    held_by: heldBy,
    checks,
    because: because ? becauseJson(because) : null,
    next_failure: nextFailure ? explainedFailureJson(nextFailure) : null,
    next,
    actions: actions.map((action) => ({
      words: wordsOf(task, action),
      command: commandOf(commands, task, action) ?? null,
    })),
    text,
  };
}

function explainedFailureJson({ failure, outcome, rule, from, decision, delay, ends, text }: ExplainedFailure): object {
  return {
    outcome,
    failure: failure ? failureJson(failure) : null,
    rule,
    from: describeOrigin(from),
    next: decision.next,
    reason: decision.next === 'succeeded' ? null : decision.reason,
    charge: 'charge' in decision ? decision.charge.to : 'nobody',
    delay_ms: delay?.nominal ?? null,
    min_ms: delay?.low ?? null,
    max_ms: delay?.high ?? null,
    because: becauseJson(decision.because),
    ends,
    text,
  };
}
