import { ACTIONS, actionLeads, type TaskState } from '../../src/task.ts';
import { plural } from '../../src/views/plural.ts';
import type { Act } from '../parts/act.tsx';
import { post } from './api.ts';
import { commandFor } from './commands.ts';
import type { TaskJson } from './documents.ts';

/** What a person can do with tasks at once; `resolve` needs an answer, and `redrive` a pace. */
export const TASK_VERBS = ['retry', 'hold', 'release', 'cancel'] as const;
export type TaskVerb = (typeof TASK_VERBS)[number];

export const WORDS: Readonly<
  Record<TaskVerb, { readonly does: string; readonly means: string; readonly done: string }>
> = {
  retry: {
    does: 'Retry now',
    means: 'It becomes due now. If it has ended, its attempts are counted from zero; its history stays.',
    done: 'made due',
  },
  hold: { does: 'Hold', means: 'It is put aside until somebody releases it.', done: 'held' },
  release: { does: 'Release', means: 'It waits in its queue again.', done: 'released' },
  cancel: {
    does: 'Cancel',
    means: 'It ends as cancelled. If it runs, its handler is asked to stop.',
    done: 'cancelled',
  },
};

/** What can be done with a task in this state. */
export function verbsFor(state: TaskState): readonly TaskVerb[] {
  return TASK_VERBS.filter(
    (verb) => actionLeads(verb, state, { isDue: true }) !== undefined || (verb === 'cancel' && state === 'running'),
  );
}

/** In which states tasks are that it can be done with. */
export function statesFor(verb: TaskVerb): readonly TaskState[] {
  const { from } = ACTIONS[verb];
  return verb === 'cancel' ? [...from, 'running'] : from;
}

type SeenTask = Pick<TaskJson, 'id' | 'type' | 'state' | 'executions'>;

/**
 * An act is done only if nothing has happened to the task since it was shown. What waits or runs changes by itself all the time, so there
 * only its present state counts.
 */
export function asSeen({ state, executions }: Pick<TaskJson, 'state' | 'executions'>): object {
  return state === 'ready' || state === 'scheduled' || state === 'running' ? {} : { if_still: { state, executions } };
}

export function actOnTask(verb: TaskVerb, task: SeenTask, then?: () => void): Act {
  if (verb === 'retry' && task.state === 'succeeded') return runAgain(task, then);
  const { id, type } = task;
  const { does, means, done } = WORDS[verb];
  return {
    title: `${does}: #${id} ${type}`,
    words: means,
    does,
    isSevere: verb === 'cancel',
    command: commandFor(verb, id),
    ...(verb === 'retry' && {
      risk: {
        words: 'Do it all the same: it may be done twice.',
        isMet: ({ hints }) => hints.some((hint) => hint.includes('--accept-duplicate')),
      },
    }),
    run: async (note, acceptsRisk) => {
      await post(`tasks/${id}/${verb}`, {
        ...asSeen(task),
        ...(note !== undefined && { note }),
        ...(acceptsRisk && { accept_duplicate: true }),
      });
      then?.();
      return `#${id} is ${done}.`;
    },
  };
}

/** What has succeeded is done a second time: the person is told before, so the server need not refuse it. */
function runAgain(task: SeenTask, then?: () => void): Act {
  const { id, type } = task;
  return {
    title: `Run again: #${id} ${type}`,
    words: 'It has succeeded. Its work is done a second time.',
    does: 'Run again …',
    isSevere: true,
    command: commandFor('retry', id, '--accept-duplicate'),
    run: async (note) => {
      await post(`tasks/${id}/retry`, { accept_duplicate: true, ...asSeen(task), ...(note !== undefined && { note }) });
      then?.();
      return `#${id} runs again.`;
    },
  };
}

/** What became of a selection. */
export interface Outcome {
  readonly done: number;
  readonly requested: number;
  readonly skipped: Readonly<Record<string, number>>;
}

const MOST_AT_ONCE = 1_000;

/** Acts on many tasks, a batch after the other. `onProgress` gets how many were asked for so far. */
export async function actOnMany(
  verb: TaskVerb,
  ids: readonly number[],
  {
    note,
    from,
    onProgress,
  }: {
    readonly note?: string | undefined;
    readonly from?: readonly TaskState[];
    readonly onProgress?: (count: number) => void;
  },
): Promise<Outcome> {
  const all = { done: 0, requested: 0, skipped: {} as Record<string, number> };
  for (let i = 0; i < ids.length; i += MOST_AT_ONCE) {
    const batch = ids.slice(i, i + MOST_AT_ONCE);
    const some = await post<Outcome>('tasks/act', {
      verb,
      ids: batch,
      ...(note !== undefined && { note }),
      ...(from && { from }),
    });
    all.done += some.done;
    all.requested += some.requested;
    for (const [why, count] of Object.entries(some.skipped)) all.skipped[why] = (all.skipped[why] ?? 0) + count;
    onProgress?.(i + batch.length);
  }
  return all;
}

const SKIPPED: Readonly<Record<string, string>> = {
  changed: 'changed meanwhile',
  missing: 'were removed meanwhile',
  unique_key: 'would need a unique key that another task has',
  may_have_happened: 'may have happened already: decide each of them',
};

/** `12 held; 2 skipped: changed meanwhile`. */
export function outcomeWords(verb: TaskVerb, { done, requested, skipped }: Outcome): string {
  const parts = [
    `${plural(done, 'task was', 'tasks were')} ${WORDS[verb].done}`,
    ...(requested > 0 ? [`${requested} running were asked to stop`] : []),
    ...Object.entries(skipped)
      .filter(([, count]) => count > 0)
      .map(([why, count]) => `${count} skipped: ${SKIPPED[why] ?? why}`),
  ];
  return `${parts.join('; ')}.`.replace(/^n/, 'N');
}
