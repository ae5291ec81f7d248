// What the witness says, held against the records of the store.
import { MAX_ATTEMPTS } from './plans.mjs';

const CRASH_LIMIT = 4;
const WAITING = ['scheduled', 'ready', 'running', 'held'];
const END_OF_HANDLER = { failure: 'failure', permanent: 'failure', deferral: 'deferral', success: 'success' };

/**
 * The promises, each a sentence with what was found against it. `lines` are the witness, `tasks` all that the store has, and
 * `histories` those of the tasks that did not simply succeed, by id. `foreign`: some processes were in a pid namespace of their own.
 */
export function judge({ lines, tasks, histories, foreign }) {
  const witness = new Witness(lines);
  const all = tasks.map((task) => ({ ...task, plan: task.input.plan, history: histories.get(task.id) ?? [] }));
  return [
    ['no acknowledged task is lost', lost(witness, all)],
    ['no task is stuck', stuck(all)],
    ['no task ran twice at once', together(lines, foreign)],
    ['no living worker lost a lease', foreign ? [] : robbed(lines, all)],
    ['no execution was settled twice', settledTwice(lines, all)],
    ['no task that must not run twice did', repeated(witness, all)],
    ['nothing ran again that had ended', ranAfterItsEnd(lines, witness)],
    ['no task is charged for what it did not do', unjust(witness, all)],
    ['only a task that kills its worker ends as a crash loop', accused(all)],
    ['each end has its cause', unfounded(witness, all)],
    ['what workers were told is what is recorded', untrue(witness, all)],
  ];
}

const nameOf = ({ task, execution }) => `${task} ${execution}`;

class Witness {
  #ends = new Map();
  #byTask = new Map();

  constructor(lines) {
    this.lines = lines;
    for (const line of lines) {
      if (line.what === 'end') this.#ends.set(nameOf(line), line.how);
      const of = this.#byTask.get(line.task) ?? [];
      of.push(line);
      this.#byTask.set(line.task, of);
    }
  }

  of(task, ...what) {
    return (this.#byTask.get(task) ?? []).filter((line) => what.includes(line.what));
  }

  /** What the handler ended with, if it ended. */
  endOf(task, execution) {
    return this.#ends.get(nameOf({ task, execution }));
  }
}

/** What is pruned had ended: a handler said so, or an operator cancelled it. */
function lost(witness, all) {
  const there = new Map(all.map((task) => [task.id, task]));
  return witness.lines
    .filter(({ what }) => what === 'acknowledged')
    .flatMap(({ task: id, execution: number }) => {
      const task = there.get(id);
      if (task)
        return task.input.number === number ? [] : [`#${id} was acknowledged for ${number}, and is another task.`];
      const ended = witness.of(id, 'end').some(({ how }) => how === 'success') || witness.of(id, 'cancel').length > 0;
      return ended ? [] : [`#${id} was acknowledged, never ended, and is not there.`];
    });
}

function stuck(all) {
  return all
    .filter(({ state }) => WAITING.includes(state))
    .map(({ id, state, plan }) => `#${id} (${plan}) is ${state}.`);
}

/**
 * The executions that run at a moment, as far as the witness shows: from their start to their end, or until their process dies. One
 * that was stopped may have lost its lease, if there are processes that cannot see that it is alive.
 */
function together(lines, foreign) {
  const violations = [];
  const open = new Map();
  const of = (process) => [...open].filter(([, one]) => one.process === process);
  for (const { what, task, execution, process } of lines) {
    switch (what) {
      case 'start': {
        const other = open.get(task);
        if (other && !other.mayBeLost) {
          violations.push(
            `#${task} began execution ${execution} in ${process} while ${other.execution} ran in ${other.process}.`,
          );
        }
        open.set(task, { execution, process, mayBeLost: false });
        break;
      }
      case 'end':
        if (open.get(task)?.execution === execution) open.delete(task);
        break;
      case 'killing':
      case 'dies':
        for (const [id] of of(process)) open.delete(id);
        break;
      case 'stopping':
        if (foreign) for (const [, one] of of(process)) one.mayBeLost = true;
        break;
    }
  }
  return violations;
}

/** One that was told to end may leave what the store did not take in time. */
function robbed(lines, all) {
  const mayLose = new Set(['killing', 'dies', 'told']);
  const dead = new Set(lines.filter(({ what }) => mayLose.has(what)).map(({ process }) => process));
  return all.flatMap(({ id, plan, history }) =>
    history
      .filter(
        ({ kind, outcome, late, worker }) => kind === 'execution' && outcome === 'loss' && !late && !dead.has(worker),
      )
      .map(
        ({ execution, worker }) => `#${id} (${plan}) was taken in execution ${execution} from ${worker}, which lived.`,
      ),
  );
}

/** A lost execution that succeeded all the same is settled as lost, then as a success. */
function settledTwice(lines, all) {
  const answered = lines.filter(({ what, how }) => what === 'answered' && how === 'succeeded');
  return [
    ...twice(answered.map(nameOf)).map((name) => `The execution ${name} was answered as succeeded twice.`),
    ...all.flatMap(({ id, history }) => {
      const settled = history.filter(({ kind, late, outcome }) => kind === 'execution' && !late && outcome !== 'loss');
      return twice(settled.map(({ execution }) => execution)).map((n) => `#${id} has two records of execution ${n}.`);
    }),
  ];
}

function twice(names) {
  return names.filter((name, i) => names.indexOf(name) !== i);
}

function repeated(witness, all) {
  return all.flatMap(({ id, plan }) => {
    const starts = witness.of(id, 'start').length;
    const answers = witness.of(id, 'retry').length;
    return plan === 'once' && starts > 1 + answers ? [`#${id} was started ${starts} times.`] : [];
  });
}

/** Without those that a person put back: an answer may be noted after that. */
function ranAfterItsEnd(lines, witness) {
  const violations = [];
  const ended = new Map();
  for (const { what, task, execution, how } of lines) {
    if (what === 'answered' && ['succeeded', 'dead', 'cancelled'].includes(how)) ended.set(task, { execution, how });
    const before = ended.get(task);
    if (what === 'start' && before && execution > before.execution && witness.of(task, 'retry').length === 0) {
      violations.push(`#${task} began execution ${execution} after it was ${before.how}.`);
    }
  }
  return violations;
}

/**
 * How many tasks were lost with each process. A task that was lost alone looks as if it had killed its process, although the storm
 * did: only then may it be charged, or be a crash loop.
 */
function lossesByWorker(all) {
  const losses = new Map();
  for (const { history } of all) {
    for (const { kind, outcome, late, worker } of history) {
      if (kind === 'execution' && outcome === 'loss' && !late) losses.set(worker, (losses.get(worker) ?? 0) + 1);
    }
  }
  return losses;
}

function unjust(witness, all) {
  const losses = lossesByWorker(all);
  return all.flatMap(({ id, plan, history }) =>
    history.flatMap(({ kind, late, charge, execution, outcome, failure, worker }) => {
      if (kind !== 'execution' || late) return [];
      const how = witness.endOf(id, execution);
      if (charge === 'task' && !['failure', 'permanent'].includes(how)) {
        return [
          `#${id} (${plan}) is charged for execution ${execution} (${failure?.reason ?? outcome}), which ended with ${how}.`,
        ];
      }
      if (charge === 'recoveries' && plan !== 'poison' && losses.get(worker) > 1) {
        return [
          `#${id} (${plan}) is charged a recovery for execution ${execution}, and others were lost with ${worker}.`,
        ];
      }
      const should = END_OF_HANDLER[how];
      if (['success', 'failure', 'deferral'].includes(outcome) && should !== outcome) {
        return [`#${id} (${plan}) is recorded with ${outcome} in execution ${execution}, which ended with ${how}.`];
      }
      return [];
    }),
  );
}

function accused(all) {
  const losses = lossesByWorker(all);
  const looksGuilty = ({ history }) => {
    const charged = history.filter(({ charge }) => charge === 'recoveries');
    return charged.length >= CRASH_LIMIT && charged.every(({ worker }) => losses.get(worker) === 1);
  };
  return all
    .filter((task) => task.reason === 'worker.crash_loop' && task.plan !== 'poison' && !looksGuilty(task))
    .map(({ id, plan }) => `#${id} (${plan}) is a crash loop.`);
}

/** No end without a handler that ended so, or an operator who asked for it. */
function unfounded(witness, all) {
  return all.flatMap(({ id, plan, state, reason, executions, result }) => {
    const ends = witness.of(id, 'end');
    const said = `#${id} (${plan}) is ${state} (${reason})`;
    switch (state) {
      case 'succeeded':
        return ends.some(({ how, execution }) => how === 'success' && execution === result?.execution)
          ? []
          : [`${said} by execution ${result?.execution} of ${executions}, which did not succeed.`];
      case 'dead': {
        const failures = ends.filter(({ how }) => how === 'failure').length;
        const wanted = ends.some(({ how }) => how === 'permanent') || failures >= MAX_ATTEMPTS;
        return wanted ? [] : [`${said} after ${failures} failures.`];
      }
      case 'cancelled':
        return witness.of(id, 'cancel').length > 0 ? [] : [`${said}, and nobody cancelled it.`];
      case 'needs_manual':
        return plan === 'once' || reason === 'worker.crash_loop' ? [] : [`${said}.`];
      default:
        return [];
    }
  });
}

function untrue(witness, all) {
  return all.flatMap(({ id, plan, state }) => {
    const retried = witness.of(id, 'retry').length > 0;
    const last = witness.of(id, 'answered').findLast(({ how }) => ['succeeded', 'dead', 'cancelled'].includes(how));
    return !last || retried || last.how === state
      ? []
      : [`#${id} (${plan}) was answered as ${last.how}, and is ${state}.`];
  });
}
