import { formatDuration, type Milliseconds } from '../duration.ts';
import type { Because } from '../failure/decide.ts';
import { failureOf } from '../failure/foresee.ts';
import type { Task } from '../queue/task-view.ts';
import type { ActionEntry, HistoryEntry } from '../store/store.ts';
import { isOver, isWaiting } from '../task.ts';
import { agoInFull, doneBy } from './done-by.ts';
import { type ExplainedFailure, explainFailure } from './explain-failure.ts';
import type { Lack } from './lack.ts';
import { lastDecision, lastFailureIn } from './last-decision.ts';
import { lostWorkerOf } from './lost-worker.ts';
import { beganRound, newRoundOf } from './new-round.ts';
import { capital } from './plural.ts';
import { type Check, checksOf, type Holder, holdersOf, type Known, lackFor } from './readiness.ts';
import { nextInRedrive, redriveWords } from './redrive-of-task.ts';
import { REFUNDED } from './refunded.ts';
import { holdsTasks, inTime, shownSourceState, sourceFacts } from './source-state.ts';
import { suspectNext, suspectWords } from './suspect-rule.ts';

/** What a person can do about a task; `as` is for `resolve`, `name` for a source, queue or other name. */
export interface PossibleAction {
  readonly words: string;
  readonly verb: 'retry' | 'release' | 'resolve' | 'cancel' | 'releaseSource' | 'probeSource' | 'resumeQueue' | 'work';
  readonly as?: 'succeeded' | 'retry' | 'dead';
  readonly name?: string;
  /** For `work`: which worker. `any`, or one that also takes its queue or category, or meets its needs. Absent: one that takes its type. */
  readonly worker?: 'any' | Exclude<Lack['of'], 'type'>;
}

/** Why a task is in its state, and what happens next. `text` says all of it, and is the same wherever it is shown. */
export interface Explanation {
  readonly task: Task;
  readonly headline: string;
  /** Everything that holds it; the headline names the first. */
  readonly heldBy: readonly Holder[];
  /** Of a task that waits. */
  readonly checks: readonly Check[];
  /** The last decision about it, in its present round or the one before. */
  readonly because?: Because;
  /** What its next failure would lead to, if it is like the last one; only for a task that can still fail. */
  readonly nextFailure?: ExplainedFailure;
  readonly next: string;
  readonly actions: readonly PossibleAction[];
  /** Lines with labels. Names and notes are unchanged, so escape them for the place where they are shown. */
  readonly text: string;
}

/** Explains a task from its stored data. Pure. */
export function explain(known: Known): Explanation {
  const { task, history } = known;
  const checks = (waits(known) && !isLate(known)) || task.state === 'held' ? checksOf(known) : [];
  const heldBy = holdersOf(task, checks);
  const summary = summaryOf(known, checks, heldBy);
  const because = lastDecision(history)?.because;
  const mayFail = !isOver(task.state) && !lostWorkerOf(known) && !known.facts.verdict && !isLate(known);
  const nextFailure = mayFail ? nextFailureOf(known) : undefined;
  const made = { task, heldBy, checks, ...summary, ...(because && { because }), ...(nextFailure && { nextFailure }) };
  return { ...made, text: textOf(known, made) };
}

function waits({ task }: Known): boolean {
  return isWaiting(task.state);
}

/** Whether its deadline passed while it waits: no worker starts it any more. */
function isLate({ now, task }: Known): boolean {
  return isWaiting(task.state) && task.deadline !== undefined && task.deadline.getTime() <= now;
}

// ── What is said first, what happens next, and what can be done ──

type Summary = Pick<Explanation, 'headline' | 'next' | 'actions'>;

function summaryOf(known: Known, checks: readonly Check[], heldBy: readonly Holder[]): Summary {
  const { task } = known;
  switch (task.state) {
    case 'scheduled':
    case 'ready':
      return summaryOfWaiting(known, checks, heldBy);
    case 'running':
      return summaryOfRunning(known);
    case 'held':
      return summaryOfHeld(known, heldBy);
    case 'needs_manual':
      return summaryOfNeedsManual(known);
    case 'dead':
      return summaryOfDead(known);
    case 'cancelled':
      return summaryOfCancelled(known);
    case 'succeeded':
      return summaryOfSucceeded(known);
  }
}

function summaryOfWaiting(known: Known, checks: readonly Check[], heldBy: readonly Holder[]): Summary {
  const { now, task } = known;
  const name = nameOf(task);
  const [holder] = heldBy;
  const dueIn = task.dueAt ? task.dueAt.getTime() - now : 0;
  const actions = [...heldBy.flatMap((each) => actionAgainst(each, known)), CANCEL];
  if (isLate(known)) return summaryOfLate(known);
  if (known.facts.verdict) return summaryOfLastWait(known, dueIn, actions);
  if (isTooLate(task)) return summaryOfTooLate(known, dueIn, actions);
  if (dueIn > 0 || task.waitsForGroup) {
    const then = holder
      ? `When it is due, ${goesOnWhen(heldBy, known)}.`
      : 'When it is due, a worker takes it in its turn.';
    const next = `${then}${atDeadline(known)}`;
    return { headline: `${name} ${whatItWaitsFor(known, dueIn)}`, next, actions: [RETRY_NOW, ...actions] };
  }
  if (!holder) {
    const suspect = suspectWords(task);
    const headline = suspect ? `${name} is ready, and ${suspect}.` : `${name} is ready and waits for its turn.`;
    const next = suspectNext(task) ?? 'A worker takes it as soon as it has a free slot.';
    return { headline, next: `${next}${atDeadline(known)}`, actions };
  }
  const check = checks.find((each) => each.holder === holder);
  const headline = `${name} is ready, but ${check?.text ?? 'something holds it'}.`;
  return {
    headline,
    next: `${capital(goesOnWhen(heldBy, known))}.${freeOfCharge(heldBy)}${atDeadline(known)}`,
    actions,
  };
}

/** Its deadline comes before its due time. */
function isTooLate({ deadline, dueAt }: Task): boolean {
  return deadline !== undefined && dueAt !== undefined && deadline.getTime() <= dueAt.getTime();
}

function summaryOfTooLate({ now, task }: Known, dueIn: Milliseconds, actions: readonly PossibleAction[]): Summary {
  const left = formatDuration((task.deadline?.getTime() ?? now) - now);
  return {
    headline: `${nameOf(task)} will not start: its deadline comes in ${left}, before it is due in ${formatDuration(dueIn)}.`,
    next: `A worker ends it in ${left}, unless it is made due before.`,
    actions: [RETRY_NOW, ...actions],
  };
}

/** Any worker ends it, also one that does not take its type. */
function summaryOfLate({ now, task, workers }: Known): Summary {
  const passed = task.deadline ? agoInFull(task.deadline.getTime(), now) : '';
  const someoneRuns = workers.some(({ leaseUntil }) => leaseUntil > now);
  return {
    headline: `${nameOf(task)} does not start any more: its deadline passed ${passed}.`,
    next: someoneRuns
      ? 'The next worker that looks ends it.'
      : 'No worker is running. The next one that starts ends it.',
    actions: [...(someoneRuns ? [] : [{ ...START_WORKER, worker: 'any' as const }]), CANCEL],
  };
}

/** Its last failure was at the fault of its source: it waits to see whether others fail there too. */
function summaryOfLastWait(known: Known, dueIn: Milliseconds, actions: readonly PossibleAction[]): Summary {
  const { task } = known;
  const ends = dueIn > 0 ? `ends in ${formatDuration(dueIn)}` : 'ends now';
  return {
    headline: `${nameOf(task)} has used up its attempts: it ${ends}, unless ${task.source} turns out to be down.`,
    next: `If another task of ${task.source} fails at its fault until then, the attempt is given back, and it goes on.`,
    actions,
  };
}

/** A retry, a deferral, a recovery, or its first due time. */
function whatItWaitsFor({ task, history }: Known, dueIn: Milliseconds): string {
  if (task.waitsForGroup) return 'waits until all tasks of its group have ended.';
  const last = lastDecision(history);
  const due = `due in ${formatDuration(dueIn)}`;
  if (!last && task.attempts === 0) return `was recorded for later: it is ${due}.`;
  if (last?.charge === 'source') return `waits for its source: it is ${due}.`;
  if (last?.charge === 'deferrals') return `is deferred: it is ${due}.`;
  return `is retrying: attempt ${task.attempts + 1} is ${due}.`;
}

function goesOnWhen(heldBy: readonly Holder[], known: Known): string {
  return `it goes on when ${heldBy.map((each) => endOf(each, known)).join(', and ')}`;
}

/** What must happen before it is no longer held. */
function endOf(holder: Holder, { now, source }: Known): string {
  switch (holder) {
    case 'operator':
      return 'it is released';
    case 'source_held': {
      const until = source?.record.hold?.until;
      return until === undefined ? 'its source is released' : `its source is released, or ${inTime(until - now)}`;
    }
    case 'breaker':
    case 'rate_limit':
      if (source && !holdsTasks(shownSourceState(source.record))) return 'its turn comes';
      if (holder === 'rate_limit') return 'the time that its source asked for is over';
      return 'two probes have succeeded: a probe is one task of the source that is let through to test it';
    case 'needs_person':
      return 'a person has mended and released its source';
    case 'budget':
      return 'its source may have a retry again';
    case 'pace':
      return 'the next start is allowed';
    case 'concurrency':
      return 'one of those that run ends';
    case 'queue_paused':
      return 'its queue is resumed';
    case 'no_worker':
      return 'a worker runs that takes it';
    case 'worker_paused':
      return 'its worker works properly again';
  }
}

/** For a task that its source holds. */
function freeOfCharge(heldBy: readonly Holder[]): string {
  const atSource = heldBy.some((each) => each === 'breaker' || each === 'rate_limit' || each === 'needs_person');
  return atSource ? ' Until then it uses up no attempt and keeps its place.' : '';
}

function atDeadline({ now, task }: Known): string {
  if (!task.deadline) return '';
  const left = task.deadline.getTime() - now;
  return ` It ends if it has not started when its deadline comes, in ${formatDuration(left)}.`;
}

function dueAfterHold(hold: ActionEntry | undefined): string {
  return hold?.from === 'scheduled' ? ' When it is released, it waits for its due time, if that is still to come.' : '';
}

/** The time of a held task goes on, but no worker ends it while it is held. */
function atDeadlineOfHeld({ now, task }: Known): string {
  if (!task.deadline) return '';
  const left = task.deadline.getTime() - now;
  return left > 0
    ? ` It ends if it has not started when its deadline comes, in ${formatDuration(left)}.`
    : ` Its deadline passed ${agoInFull(task.deadline.getTime(), now)}: if it is released, a worker ends it.`;
}

function summaryOfRunning(known: Known): Summary {
  const { now, task, policy } = known;
  const { worker = 'a worker', since = new Date(now), cancelRequested = false } = task.running ?? {};
  const asked = cancelRequested ? ', and was asked to stop' : '';
  const headline = `${nameOf(task)} is running on ${worker} for ${formatDuration(Math.max(0, now - since.getTime()))}${asked}.`;
  const { timeout } = policy.policy;
  const actions = cancelRequested ? [] : [CANCEL];
  const lost = lostWorkerOf(known);
  if (lost) return { headline, next: lost.next, actions: [...(lost.needsWorker ? [START_WORKER] : []), ...actions] };
  const stop =
    'Its worker is told within a second on the same host, otherwise at its next renewal. If it still succeeds, it is succeeded, otherwise cancelled.';
  const silence =
    timeout === 'none' ? 'It has no time limit.' : `It is stopped after ${formatDuration(timeout)} of silence.`;
  return { headline, next: cancelRequested ? stop : `Its worker says how it ended. ${silence}`, actions };
}

function summaryOfHeld(known: Known, heldBy: readonly Holder[]): Summary {
  const { now, task } = known;
  const action = lastAction(known.history, (entry) => entry.to === 'held');
  const who = action ? ` (${doneBy(action, action.at, now)})` : '';
  return {
    headline: `${nameOf(task)} is held${who}.`,
    next: `${capital(goesOnWhen(heldBy, known))}. Until then it does not run.${dueAfterHold(action)}${atDeadlineOfHeld(known)}`,
    actions: [...heldBy.flatMap((each) => actionAgainst(each, known)), CANCEL],
  };
}

function summaryOfNeedsManual(known: Known): Summary {
  const { task, history } = known;
  const because = lastDecision(history)?.because;
  const why = because?.text ?? importedWords(history) ?? task.reason ?? 'no reason is recorded.';
  const ambiguous = because?.step === 'ambiguous';
  const unanswered = ambiguous
    ? 'It waits for an answer, for any time. Check whether it happened, then resolve it.'
    : 'It waits for an answer, for any time. A retry starts a new round, with all counts at zero.';
  const inRedrive = nextInRedrive(known);
  const next = inRedrive === undefined ? unanswered : `${inRedrive} ${unanswered}`;
  const actions: PossibleAction[] = [
    { words: ambiguous ? 'it happened' : 'it is done', verb: 'resolve', as: 'succeeded' },
    ambiguous ? { words: 'it did not', verb: 'resolve', as: 'retry' } : { words: 'retry it', verb: 'retry' },
    { words: 'give up', verb: 'resolve', as: 'dead' },
  ];
  return { headline: `${nameOf(task)} needs a person: ${why}`, next, actions };
}

function summaryOfDead(known: Known): Summary {
  const { now, task, history } = known;
  const action = endedBy(history, 'dead');
  const because = lastDecision(history)?.because;
  const why = action
    ? `${action.actor} gave it up ${doneBy(action, action.at, now, '')}.`
    : (because?.text ?? importedWords(history) ?? task.reason ?? 'no reason is recorded.');
  const next = nextInRedrive(known) ?? NO_MORE;
  return { headline: `${nameOf(task)} is dead: ${why}`, next, actions: [NEW_ROUND] };
}

function summaryOfCancelled(known: Known): Summary {
  const { now, task, history } = known;
  const action = lastAction(history, ({ verb, to }) => to === 'cancelled' || verb === 'cancel');
  const why =
    action?.verb === 'supersede' || action?.verb === 'replace'
      ? (action.note ?? 'another task has its unique key.')
      : action
        ? `${action.actor} cancelled it ${doneBy(action, action.at, now, '')}.`
        : 'it was ended before it succeeded.';
  const next = nextInRedrive(known) ?? NO_MORE;
  return { headline: `${nameOf(task)} is cancelled: ${why}`, next, actions: [NEW_ROUND] };
}

function summaryOfSucceeded(known: Known): Summary {
  const { now, task, history } = known;
  const action = endedBy(history, 'succeeded');
  const when = task.endedAt ? ` ${agoInFull(task.endedAt.getTime(), now)}` : '';
  const how = action ? `: ${action.actor} said so` : `, ${whichTry(task)}`;
  return { headline: `${nameOf(task)} has succeeded${when}${how}.`, next: 'Nothing: it is done.', actions: [] };
}

/** A lost or handed-back execution was not an attempt, but it was a start. */
function whichTry({ attempts, executions }: Task): string {
  if (attempts > 0) return `after ${attempts + 1} attempts`;
  return executions === 1 ? 'at the first attempt' : `in execution ${executions}`;
}

const NO_MORE = 'Nothing happens by itself. A retry starts a new round, with all counts at zero.';
const CANCEL: PossibleAction = { words: 'cancel it', verb: 'cancel' };
const START_WORKER: PossibleAction = { words: 'start a worker', verb: 'work' };
const RETRY_NOW: PossibleAction = { words: 'make it due now', verb: 'retry' };
const NEW_ROUND: PossibleAction = { words: 'retry it', verb: 'retry' };

const RELEASE_SOURCE = ({ source }: Task): PossibleAction => ({
  words: 'release its source',
  verb: 'releaseSource',
  name: source,
});

function actionAgainst(holder: Holder, known: Known): readonly PossibleAction[] {
  const { task } = known;
  switch (holder) {
    case 'operator':
      return [{ words: 'release it', verb: 'release' }];
    case 'source_held':
    case 'needs_person':
    case 'rate_limit':
      return [RELEASE_SOURCE(task)];
    case 'breaker':
      return [{ words: 'test its source now', verb: 'probeSource', name: task.source }, RELEASE_SOURCE(task)];
    case 'budget':
    case 'pace':
    case 'concurrency':
      return [];
    case 'queue_paused':
      return [{ words: 'resume its queue', verb: 'resumeQueue', name: task.queue }];
    case 'no_worker':
      return [startWorker(lackFor(known))];
    case 'worker_paused':
      return [];
  }
}

function startWorker(lack: Lack | undefined): PossibleAction {
  if (!lack || lack.of === 'type' || lack.start === undefined) return START_WORKER;
  return { ...START_WORKER, words: lack.start, worker: lack.of };
}

// ── The next failure ──

/** Like the last failure; if there was none, an unknown one. */
function nextFailureOf({ history, facts, policy, source }: Known): ExplainedFailure {
  const failure = lastFailureIn(history)?.failure ?? failureOf('unknown');
  return explainFailure({ ...facts, source: sourceFacts(source) }, { kind: 'failure', failure }, policy);
}

// ── Text ──

function textOf(known: Known, made: Omit<Explanation, 'text'>): string {
  const { now, task, history } = known;
  const { headline, because, checks, nextFailure, next } = made;
  const last = lastDecision(history);
  const retried = newRoundOf(history);
  const redriven = redriveWords(known);
  const isInHeadline = headline.includes(because?.text ?? '\0');
  const holds =
    task.waitsForGroup || (task.dueAt && task.dueAt.getTime() > now) ? 'this would hold it' : 'this holds it';
  const rows: (readonly [label: string, words: string])[] = [
    ...(retried
      ? [['why', `${retried.actor} ${beganRound(retried)} ${doneBy(retried, retried.at, now, '')}`] as const]
      : []),
    ...(redriven ? [['redrive', redriven] as const] : []),
    ...(because && last && !isInHeadline && !retried
      ? [
          [
            'why',
            `${because.text}${last.charge === 'refunded' ? ` ${REFUNDED}` : ''} (${agoInFull(last.endedAt, now)} on ${last.worker})`,
          ] as const,
        ]
      : []),
    ...checks.map(({ name, text, holder }) => [name, holder ? `${text}   ← ${holds}` : text] as const),
    ...(nextFailure ? [['fails', failsWords(nextFailure, task)] as const] : []),
    ['next', next],
  ];
  return [headline, ...rows.map(([label, words]) => `  ${label.padEnd(7)} ${words}`)].join('\n');
}

/** What the next failure would lead to, in a sentence. */
export function failsWords({ failure, decision, delay, rule, ends }: ExplainedFailure, task: Task): string {
  const again =
    failure && failure.evidence.rule !== 'none' ? `with ${failure.reason} again` : task.attempts > 0 ? 'again' : '';
  const which = ['if it fails', again].filter((part) => part !== '').join(' ');
  const by = rule === 'policy' ? '' : `, by the rule ${rule}`;
  if (decision.because.step === 'source_down') return `${which}: nothing is charged, and its source holds it`;
  if (decision.because.step === 'awaits_verdict' && decision.next === 'scheduled') {
    return `${which}${by}: it waits ${formatDuration(decision.after)}, and ends unless its source turns out to be down`;
  }
  if (decision.next !== 'scheduled' || !delay) return `${which}${by}: ${decision.next}. ${decision.because.text}`;
  const spread =
    delay.low === delay.high ? '' : ` (from ${formatDuration(delay.low)} to ${formatDuration(delay.high)})`;
  return `${which}${by}: again after ${formatDuration(delay.nominal)}${spread}; it ends ${ends.join('; ')}`;
}

function nameOf({ id, type }: Task): string {
  return `#${id} ${type}`;
}

function lastAction(
  history: readonly HistoryEntry[],
  which: (action: ActionEntry) => boolean,
): ActionEntry | undefined {
  return history.findLast((entry): entry is ActionEntry => entry.kind === 'action' && which(entry));
}

/** The action that ended it, if the last thing that happened to it was one. */
function endedBy(history: readonly HistoryEntry[], state: Task['state']): ActionEntry | undefined {
  const last = history.at(-1);
  return last?.kind === 'action' && last.to === state && last.from !== 'elsewhere' ? last : undefined;
}

/** The values of an imported task from the other queue. */
function importedWords(history: readonly HistoryEntry[]): string | undefined {
  const { reason, error } = lastAction(history, ({ imported }) => imported !== undefined)?.imported ?? {};
  const words = [reason, error].filter((part) => part !== undefined).join(': ');
  return words === '' ? undefined : `${words}, as another queue had it.`;
}
