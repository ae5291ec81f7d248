import type { Task } from '../queue/task-view.ts';
import type { HistoryEntry } from '../store/store.ts';
import { FILE_MOVE, isAmbiguous } from '../views/task-text.ts';
import { visible } from '../views/visible.ts';
import type { CommandLine } from './command-line.ts';

/** What a person can answer about a task that waits for one. */
export const ANSWERS = ['succeeded', 'retry', 'dead'] as const;
export type Answer = (typeof ANSWERS)[number];

/** What a person can choose if something stands at the destination of a move. The first two change files, on the machine that has them. */
export const COLLISION_CHOICES = ['keep-both', 'overwrite', 'skip'] as const;
export type CollisionChoice = (typeof COLLISION_CHOICES)[number];

/** One of the choices that a task offers. */
export interface Choice {
  readonly as: Answer | CollisionChoice;
  /** The answer that it comes to. */
  readonly answer: Answer;
  readonly words: string;
  /** What it does; absent if its words say it. */
  readonly does?: string;
  /** The arguments of the command that does it. */
  readonly command: string;
}

/** The choices for a task that waits for a person. `ambiguous`: its effect may have happened. */
export function choicesOf(task: Task, ambiguous: boolean): readonly Choice[] {
  const { id } = task;
  const resolve = (as: Choice['as']) => `resolve ${id} --as ${as}`;
  const answer = (as: Answer, words: string): Choice => ({ as, answer: as, words, command: resolve(as) });
  const to = collisionOf(task);
  if (to !== undefined && !ambiguous) {
    const collision = (as: CollisionChoice, words: string, does: string): Choice => {
      return { as, answer: as === 'skip' ? 'dead' : 'retry', words, does, command: resolve(as) };
    };
    const aside = visible(asideOf(to, id));
    return [
      collision('keep-both', 'keep both', `what is there becomes ${aside}, and the move is tried again`),
      collision('overwrite', 'overwrite', `${visible(to)} is removed, and the move is tried again`),
      collision('skip', 'skip', 'the source stays where it is, and the task is dead'),
      answer('succeeded', 'it is done'),
    ];
  }
  if (ambiguous) return [answer('succeeded', 'it happened'), answer('retry', 'it did not'), answer('dead', 'give up')];
  return [
    { ...answer('retry', 'retry it'), command: `retry ${id}` },
    answer('succeeded', 'it is done'),
    answer('dead', 'give up'),
  ];
}

/** The destination of a move that found something there. */
export function collisionOf({ type, reason, input }: Task): string | undefined {
  const { to } = Object(input) as { readonly to?: unknown };
  return type === FILE_MOVE && reason === 'fs.dest_exists' && typeof to === 'string' ? to : undefined;
}

/** The name that what stands at a destination gets, if both are kept. */
export function asideOf(to: string, id: number): string {
  return `${to}.before-${id}`;
}

/** The choices in JSON: none if it does not wait for a person. */
export function choicesJson(commands: CommandLine, task: Task, history: readonly HistoryEntry[]): readonly object[] {
  if (task.state !== 'needs_manual') return [];
  return choicesOf(task, isAmbiguous(task, history)).map(({ as, answer, words, does, command }) => {
    return { as, answer, words, does: does ?? null, command: commands.command(command) };
  });
}
