import { FULL, tokensAfter, untilToken } from '../../src/budget.ts';
import { type Decision, decide, type Facts } from '../../src/failure/decide.ts';
import type { Outcome } from '../../src/failure/outcome.ts';
import type { Policy } from '../../src/failure/policy.ts';
import { UNTRIED } from '../../src/failure/untried.ts';
import type { Change, Restriction } from '../../src/source/change.ts';
import { aged, type Memory } from '../../src/source/memory.ts';
import { observationOf } from '../../src/source/observation.ts';
import { observe } from '../../src/source/observe.ts';
import { operate } from '../../src/source/operate.ts';
import { readMemory } from '../../src/source/stored.ts';
import { raised } from '../property/ledger.ts';

/*
 * One source with its tasks, in memory: a plain model of what a store keeps of a source and enforces at a claim, and of how a worker
 * observes, decides and writes. It shows what the pure functions do together, also where several workers write at the same time.
 */

/** What became of one execution, as in the history. */
interface Row {
  readonly execution: number;
  readonly reason: string;
  to: 'success' | 'task' | 'deferrals' | 'source' | 'nobody' | 'refunded';
}

export interface SmallTask {
  readonly id: number;
  readonly submittedAt: number;
  readonly rows: Row[];
  executions: number;
  charged: Facts['charged'];
  deferralsInARow: number;
  needsToken: boolean;
  verdict: string | undefined;
  end: 'succeeded' | 'dead' | 'needs_manual' | undefined;
}

interface State {
  readonly revision: number;
  readonly memory: string;
  readonly writtenAt: number;
  readonly restriction: Restriction | undefined;
  readonly opensAt: number;
}

/** An execution, and what its worker knows of the source. */
export interface Running {
  readonly task: SmallTask;
  readonly execution: number;
  readonly startedAt: number;
  readonly probe: boolean;
  readonly drained: boolean;
  known: State | undefined;
}

/** What a worker has worked out and not yet written. */
export interface Judged {
  readonly decision: Decision;
  readonly revision: number;
  readonly change: Change | undefined;
  /** It says nothing of the source. */
  readonly any: boolean;
}

export class SmallWorld {
  now = 0;
  readonly tasks: SmallTask[] = [];
  readonly running = new Set<Running>();
  #state: State | undefined;
  #tokens = FULL;
  #tokensAt = 0;
  #revisions = 0;
  #nextStart = 0;
  /** Work that became ready while the source ramped, the rest, and retries that need a token. */
  #lanes: Record<'new' | 'backlog' | 'retries', SmallTask[]> = { new: [], backlog: [], retries: [] };
  #scheduled: { readonly task: SmallTask; readonly dueAt: number }[] = [];
  #turn: 'new' | 'backlog' = 'new';
  readonly #policy: Policy;
  readonly #roll: () => number;

  constructor(policy: Policy, roll: () => number) {
    this.#policy = policy;
    this.#roll = roll;
  }

  get memory(): Memory | undefined {
    return this.#state && this.#memoryOf(this.#state);
  }

  get restriction(): Restriction | undefined {
    return this.#state?.restriction;
  }

  get tokens(): number {
    return tokensAfter(this.#tokens, this.now - this.#tokensAt);
  }

  enqueue(): SmallTask {
    const task: SmallTask = {
      id: this.tasks.length + 1,
      submittedAt: this.now,
      rows: [],
      executions: 0,
      charged: [],
      deferralsInARow: 0,
      needsToken: false,
      verdict: undefined,
      end: undefined,
    };
    this.tasks.push(task);
    this.#lanes[this.#isRamping ? 'new' : 'backlog'].push(task);
    return task;
  }

  claim(): Running | undefined {
    this.#wake();
    if (this.#startsAt() > this.now) return undefined;
    const task = this.#next();
    if (!task) return undefined;
    const { restriction } = this;
    if (restriction?.pace) {
      const gap = 1_000 / restriction.pace.perSecond;
      this.#nextStart = Math.max(this.#nextStart, this.now - gap * (restriction.pace.burst - 1)) + gap;
    }
    task.executions++;
    const running: Running = {
      task,
      execution: task.executions,
      startedAt: this.now,
      probe: restriction?.probing === true,
      drained: this.#waiting === 0,
      known: this.#state,
    };
    this.running.add(running);
    return running;
  }

  /** When something may start next, as far as that is known; infinity if nothing waits, or only an outcome can change it. */
  nextStart(): number {
    this.#wake();
    const due = this.#scheduled.reduce((least, { dueAt }) => Math.min(least, dueAt), Number.POSITIVE_INFINITY);
    if (this.#waiting === 0) return due;
    const withToken =
      this.#lanes.new.length + this.#lanes.backlog.length > 0 ? this.now : this.now + untilToken(this.tokens);
    return Math.min(due, Math.max(withToken, this.#startsAt()));
  }

  /** What a worker makes of an outcome, from what it knows of the source. */
  judge(running: Running, outcome: Outcome): Judged {
    const { task, execution, startedAt, probe, drained, known } = running;
    const about = { task: task.id, execution, startedAgo: this.now - startedAt, probe, drained };
    const observation = observationOf(outcome, this.#policy, about);
    const observed = observation && observe(known && this.#memoryOf(known), observation, this.#roll());
    const facts: Facts = {
      ...UNTRIED,
      executions: task.executions,
      charged: task.charged,
      deferralsInARow: task.deferralsInARow,
      ...(task.verdict !== undefined && { verdict: task.verdict }),
      ...(observed && { source: observed.source }),
    };
    const decision = decide(facts, outcome, this.#policy, this.#roll());
    return { decision, revision: known?.revision ?? 0, change: observed?.change, any: observation === undefined };
  }

  /** Writes what was judged. False where the source changed meanwhile: then the worker knows the new state, and judges again. */
  write(running: Running, { decision, revision, change, any }: Judged): boolean {
    if (!any && revision !== (this.#state?.revision ?? 0)) {
      running.known = this.#state;
      return false;
    }
    this.running.delete(running);
    this.#settle(running, decision);
    if (change) this.#change(change);
    return true;
  }

  /** Judges and writes until it is taken. */
  finish(running: Running, outcome: Outcome): Decision {
    for (;;) {
      const judged = this.judge(running, outcome);
      if (this.write(running, judged)) return judged.decision;
    }
  }

  /** The worker is lost: nothing is known of how it ended. */
  lose(running: Running): void {
    this.running.delete(running);
    running.task.rows.push({ execution: running.execution, reason: 'worker.lost', to: 'nobody' });
    this.#lanes.backlog.push(running.task);
  }

  release(): void {
    const released = operate(this.memory, 'release');
    if (released) this.#change(released.change);
  }

  get #isRamping(): boolean {
    return this.restriction?.ramping === true && this.now >= (this.#state?.opensAt ?? 0);
  }

  get #waiting(): number {
    return this.#lanes.new.length + this.#lanes.backlog.length + this.#lanes.retries.length;
  }

  #memoryOf({ memory, writtenAt }: State): Memory {
    return aged(readMemory(memory), this.now - writtenAt);
  }

  /** When the source lets the next one start. */
  #startsAt(): number {
    if (!this.#state) return this.now;
    const { restriction, opensAt } = this.#state;
    if (this.now < opensAt) return opensAt;
    if (restriction?.probing && [...this.running].some(({ probe }) => probe)) return Number.POSITIVE_INFINITY;
    return restriction?.pace ? Math.max(this.now, this.#nextStart) : this.now;
  }

  #wake(): void {
    const due = this.#scheduled.filter(({ dueAt }) => dueAt <= this.now);
    if (due.length === 0) return;
    this.#scheduled = this.#scheduled.filter(({ dueAt }) => dueAt > this.now);
    for (const { task } of due) this.#lanes[task.needsToken ? 'retries' : 'backlog'].push(task);
  }

  #next(): SmallTask | undefined {
    if (this.#lanes.retries.length > 0 && this.tokens >= 1) {
      this.#addTokens(-1);
      return this.#lanes.retries.shift();
    }
    const other = this.#turn === 'new' ? 'backlog' : 'new';
    const lane = this.#lanes[this.#turn].length > 0 ? this.#turn : other;
    this.#turn = lane === 'new' ? 'backlog' : 'new';
    return this.#lanes[lane].shift();
  }

  #settle({ task, execution }: Running, decision: Decision): void {
    task.verdict = undefined;
    task.needsToken = false;
    if (decision.next === 'cancelled') throw new Error('Nothing is cancelled here.');
    if (decision.next === 'succeeded') {
      task.rows.push({ execution, reason: '', to: 'success' });
      task.end = decision.next;
      return;
    }
    const { charge, reason } = decision;
    if (charge.to === 'recoveries') throw new Error('Recoveries are not judged here.');
    task.rows.push({ execution, reason, to: charge.to });
    if (charge.to === 'task') task.charged = raised(task.charged, charge);
    if (decision.next === 'scheduled') {
      if (charge.to === 'deferrals') task.deferralsInARow++;
      if (charge.to === 'task') task.deferralsInARow = 0;
      task.needsToken = decision.needsToken === true;
      task.verdict = decision.verdict;
      this.#scheduled.push({ task, dueAt: this.now + decision.after });
    } else {
      task.end = decision.next;
    }
  }

  #change({ memory, restriction, tokens, refunds }: Change): void {
    this.#addTokens(tokens);
    for (const refund of refunds) this.#refund(refund.task, refund.execution);
    const wasPaced = this.restriction?.pace !== undefined;
    if (memory === undefined) {
      this.#state = undefined;
    } else {
      const { shutFor = 0 } = restriction ?? {};
      const opensAt = shutFor === 'released' ? Number.POSITIVE_INFINITY : this.now + shutFor;
      this.#state = { revision: ++this.#revisions, memory, writtenAt: this.now, restriction, opensAt };
      if (restriction?.pace && !wasPaced) this.#nextStart = opensAt;
    }
    if (!this.restriction?.ramping && this.#lanes.new.length > 0) {
      const merged = [...this.#lanes.backlog, ...this.#lanes.new].sort((a, b) => a.submittedAt - b.submittedAt);
      this.#lanes = { ...this.#lanes, new: [], backlog: merged };
    }
  }

  #refund(id: number, execution: number): void {
    const task = this.tasks[id - 1] as SmallTask;
    const row = task.rows.find((each) => each.execution === execution && each.to === 'task');
    if (!row || task.end !== undefined) return;
    row.to = 'refunded';
    task.charged = task.charged.map((each) => (each.reason === row.reason ? { ...each, count: each.count - 1 } : each));
    task.verdict = undefined;
  }

  #addTokens(tokens: number): void {
    this.#tokens = Math.min(FULL, this.tokens + tokens);
    this.#tokensAt = this.now;
  }
}

/** A generator of random numbers from 0 to 1 that always gives the same ones. */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}
