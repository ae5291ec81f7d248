/** What JSON can carry. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * A task's life.
 *
 * ```
 * (new) ─► scheduled ──(due)──► ready ──(claim)──► running ──(success)──► succeeded
 *             ▲  │                ▲ │                │
 *             │  └──(hold)─► held ┤ └─(hold)         ├──► needs_manual ──(a person: done / retry / give up)
 *             └──(retry, deferral)┴──(handed back)───┤
 *                                                    └──► dead
 * cancelled: from every state that has not ended. A person's retry leads out of every ended state.
 * scheduled ─► running: only for the sweep that ends a task whose deadline passed while it waited.
 * scheduled, ready, held, needs_manual ─► succeeded: an execution whose lease was lost succeeded after all, and nobody had begun
 * the task again. From needs_manual a person leads there too.
 * (elsewhere) ─► as it stood in another queue; only a claim of ours makes a task run.
 * ```
 */
export const TASK_STATES = [
  'scheduled',
  'ready',
  'running',
  'held',
  'succeeded',
  'needs_manual',
  'dead',
  'cancelled',
] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** The states in which a task can be imported: every state except running. */
export type ImportState = Exclude<TaskState, 'running'>;
export const IMPORT_STATES: readonly ImportState[] = TASK_STATES.filter((state) => state !== 'running');

/** The one table of legal transitions. A state change that is not in it cannot be written. */
export const TRANSITIONS = {
  new: ['scheduled', 'ready'],
  elsewhere: IMPORT_STATES,
  scheduled: ['ready', 'running', 'held', 'succeeded', 'cancelled'],
  ready: ['running', 'held', 'succeeded', 'cancelled'],
  running: ['succeeded', 'scheduled', 'ready', 'needs_manual', 'dead', 'cancelled'],
  held: ['scheduled', 'ready', 'succeeded', 'cancelled'],
  succeeded: ['ready'],
  needs_manual: ['ready', 'succeeded', 'dead', 'cancelled'],
  dead: ['scheduled', 'ready'],
  cancelled: ['ready'],
} as const satisfies Readonly<Record<TaskState | 'new' | 'elsewhere', readonly TaskState[]>>;

type From = keyof typeof TRANSITIONS;

/** Whether a task may go from one state to another. */
export function isLegal(from: From, to: TaskState): boolean {
  return (TRANSITIONS[from] as readonly TaskState[]).includes(to);
}

/**
 * What an operator can do with a task: from which states, and where it leads. Of a running task a cancel is only a request, since its
 * worker has it. `when due` leads to ready, or to scheduled before the task's time; `as answered` to what the person says.
 */
export const ACTIONS = {
  cancel: { from: ['scheduled', 'ready', 'held', 'needs_manual'], to: 'cancelled' },
  retry: { from: ['scheduled', 'succeeded', 'needs_manual', 'dead', 'cancelled'], to: 'ready' },
  redrive: { from: ['dead', 'needs_manual', 'cancelled'], to: 'ready' },
  hold: { from: ['scheduled', 'ready'], to: 'held' },
  release: { from: ['held'], to: 'when due' },
  resolve: { from: ['needs_manual'], to: 'as answered' },
} as const satisfies Readonly<Record<string, ActionRule>>;

interface ActionRule {
  readonly from: readonly TaskState[];
  readonly to: TaskState | 'when due' | 'as answered';
}

/** Where an action leads a task, or undefined where it cannot be taken. `as`: the answer to one that needs a person. */
export function actionLeads(
  verb: keyof typeof ACTIONS,
  from: TaskState,
  { isDue, as }: { readonly isDue: boolean; readonly as?: 'succeeded' | 'retry' | 'dead' },
): TaskState | undefined {
  const rule: ActionRule = ACTIONS[verb];
  if (!rule.from.includes(from)) return undefined;
  if (rule.to === 'when due') return isDue ? 'ready' : 'scheduled';
  if (rule.to === 'as answered') return as === 'retry' ? 'ready' : as;
  return rule.to;
}

/** The states of ended tasks: nothing more happens by itself. `needs_manual` has not ended, because it waits for a person. */
export const ENDED_STATES = ['succeeded', 'dead', 'cancelled'] as const satisfies readonly TaskState[];
export type EndedState = (typeof ENDED_STATES)[number];

/** Whether a task in this state has ended. */
export function hasEnded(state: TaskState): state is EndedState {
  return (ENDED_STATES as readonly TaskState[]).includes(state);
}

/** The states in which nothing more happens by itself: the task has ended, or a person must answer. */
export const OVER_STATES = [...ENDED_STATES, 'needs_manual'] as const satisfies readonly TaskState[];

/** Whether a task in this state has ended or needs a person. */
export function isOver(state: TaskState): boolean {
  return (OVER_STATES as readonly TaskState[]).includes(state);
}

/** Whether the task runs without anybody's action, now or when it is due. */
export function isWaiting(state: TaskState): boolean {
  return state === 'ready' || state === 'scheduled';
}

/**
 * How long a task keeps its unique key. `unfinished`: until it has ended. `waiting`: until it starts, so that one task may run
 * while the next one waits.
 */
export const UNIQUE_SCOPES = ['unfinished', 'waiting'] as const;
export type UniqueScope = (typeof UNIQUE_SCOPES)[number];

/** Whether a task in this state has its unique key. A held task still waits. */
export function occupies(scope: UniqueScope, state: TaskState): boolean {
  return scope === 'unfinished' ? !hasEnded(state) : isWaiting(state) || state === 'held';
}

/** What happens to a new task whose unique key is taken. */
export const UNIQUE_CONFLICTS = ['ignore', 'replace', 'reject'] as const;
export type UniqueConflict = (typeof UNIQUE_CONFLICTS)[number];

/** What a worker must offer to run a task: numbers mean at least, strings and booleans mean equal. */
export type Needs = Readonly<Record<string, number | string | boolean>>;

/** Whether a worker with these capabilities can meet the needs. */
export function meets(capabilities: Needs, needs: Needs): boolean {
  return Object.entries(needs).every(([name, need]) => {
    const offered = Object.hasOwn(capabilities, name) ? capabilities[name] : undefined;
    return typeof need === 'number' ? typeof offered === 'number' && offered >= need : offered === need;
  });
}

/** The order in which a queue's ready tasks are claimed. */
export const QUEUE_ORDERS = ['fifo', 'lifo', 'priority', 'weighted_random'] as const;
export type QueueOrder = (typeof QUEUE_ORDERS)[number];

/** Priorities run from 0 to 4,095; higher goes first. */
export const HIGHEST_PRIORITY = 4_095;
