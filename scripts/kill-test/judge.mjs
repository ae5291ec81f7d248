// What the witness says, held against the records of the store.
import { ENDED, startedAgain } from './witness.mjs';

/** What a handler's end is called in a task's history. */
const OUTCOME_OF = { success: 'success', failure: 'failure', permanent: 'failure', deferral: 'deferral' };

/**
 * The promises, each a sentence with what was found against it. `lines` are the witness, `tasks` all that the store has,
 * `histories` those of the tasks that did not simply succeed, by id, and `killed` the names of the workers that were killed.
 */
export function judge({ lines, tasks, histories, killed }) {
  const seen = byWhat(lines);
  const records = new Map(tasks.map((task) => [task.id, task]));
  return [
    ['every task that was acknowledged is there, and none twice', missing(seen, tasks, records)],
    ['every task has ended', unfinished(tasks)],
    ['nothing ran again that had ended', [...startedAgain(lines), ...twice(seen.start, 'was started')]],
    ['no execution was settled twice', settledTwice(seen, histories)],
    [
      'what is recorded is what the handlers ended with',
      [...unfounded(seen, tasks), ...misremembered(seen, histories)],
    ],
    ['what workers were told is what is recorded', untrue(seen, records, histories)],
    ['no living worker lost a lease', robbed(seen, histories, killed)],
  ];
}

function byWhat(lines) {
  const seen = { asked: [], acknowledged: [], start: [], end: [], answered: [], stale: [] };
  for (const line of lines) seen[line.what].push(line);
  return seen;
}

const nameOf = ({ task, execution }) => `${task} ${execution}`;

/** The enqueuer's lines have the task's number where others have an execution. */
function missing({ acknowledged, asked }, tasks, records) {
  const violations = [];
  for (const { task, execution: number } of acknowledged) {
    if (records.get(task)?.input.number !== number) violations.push(`#${task} was acknowledged, and is lost.`);
  }
  if (acknowledged.length < asked.length) {
    violations.push(`${asked.length - acknowledged.length} of ${asked.length} tasks were never acknowledged.`);
  }
  const numbers = new Set();
  for (const { id, input } of tasks) {
    if (numbers.has(input.number)) violations.push(`#${id} was enqueued once, and is there twice.`);
    numbers.add(input.number);
  }
  return violations;
}

function unfinished(tasks) {
  return tasks
    .filter(
      ({ state, reason }) => !(ENDED.includes(state) || (state === 'needs_manual' && reason === 'worker.crash_loop')),
    )
    .map(({ id, state, reason }) => `#${id} is ${state} (${reason}), which is neither an end nor a crash loop.`);
}

function twice(lines, what) {
  const names = new Set();
  const violations = [];
  for (const line of lines) {
    if (names.has(nameOf(line))) violations.push(`#${line.task} ${what} twice in its execution ${line.execution}.`);
    names.add(nameOf(line));
  }
  return violations;
}

function settledTwice({ answered }, histories) {
  const violations = twice(answered, 'was answered as settled');
  for (const [id, entries] of histories) {
    const recorded = entries.filter(({ late }) => !late).map(({ execution }) => ({ task: id, execution }));
    violations.push(...twice(recorded, 'is recorded'));
  }
  return violations;
}

/** No state without a handler that ended so, in the execution that was the last. */
function unfounded({ end }, tasks) {
  const ends = new Map(end.map((line) => [nameOf(line), line.more]));
  const violations = [];
  for (const { id, state, executions, result } of tasks) {
    const how = ends.get(nameOf({ task: id, execution: executions }));
    if (state === 'succeeded' && (how !== 'success' || result.execution !== executions)) {
      violations.push(`#${id} succeeded in execution ${executions}, where its handler ended with ${how}.`);
    }
    if (state === 'dead' && OUTCOME_OF[how] !== 'failure') {
      violations.push(`#${id} died in execution ${executions}, where its handler ended with ${how}.`);
    }
  }
  return violations;
}

function misremembered({ end }, histories) {
  const ends = new Map(end.map((line) => [nameOf(line), line.more]));
  const violations = [];
  for (const [id, entries] of histories) {
    for (const { execution, outcome } of entries) {
      const how = ends.get(nameOf({ task: id, execution }));
      if (Object.values(OUTCOME_OF).includes(outcome) && OUTCOME_OF[how] !== outcome) {
        violations.push(`#${id} is recorded with ${outcome} in execution ${execution}, which ended with ${how}.`);
      }
    }
  }
  return violations;
}

function untrue({ answered }, records, histories) {
  const violations = [];
  for (const { task: id, execution, more: state } of answered) {
    const task = records.get(id);
    const isKept = ENDED.includes(state)
      ? task?.state === state && task.executions === execution
      : histories.get(id)?.some((entry) => entry.execution === execution && !entry.late);
    if (!isKept) violations.push(`#${id} was answered as ${state} in execution ${execution}, and is ${task?.state}.`);
  }
  return violations;
}

function robbed({ stale }, histories, killed) {
  const violations = stale.map(
    ({ task, execution }) => `#${task} was no longer its worker's in execution ${execution}.`,
  );
  for (const [id, entries] of histories) {
    for (const { outcome, worker, execution } of entries) {
      if (outcome !== 'loss' || killed.has(worker)) continue;
      violations.push(`#${id} was taken in execution ${execution} from ${worker}, which nobody killed.`);
    }
  }
  return violations;
}
