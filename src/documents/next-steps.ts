import type { Task } from '../queue/task-view.ts';
import type { HistoryEntry } from '../store/store.ts';
import { shownState, stateWords } from '../views/glyphs.ts';
import { lastDecision } from '../views/last-decision.ts';
import { heldSentence, isAmbiguous } from '../views/task-text.ts';
import { quoted, visible } from '../views/visible.ts';
import { choicesOf } from './choices.ts';
import type { CommandLine } from './command-line.ts';
import { taskAdvice } from './task-advice.ts';

/** How a task ended, or what it waits for, in a sentence. */
export function endLine(task: Task, history: readonly HistoryEntry[]): string {
  const because = lastDecision(history)?.because;
  const act = history.findLast((entry) => entry.kind === 'action');
  const asked =
    act?.kind === 'action' &&
    act.from !== 'elsewhere' &&
    (act.to === task.state || (act.verb === 'cancel' && task.state === 'cancelled'));
  const byHand = asked ? ` (by ${visible(act.actor)})` : '';
  switch (task.state) {
    case 'succeeded': {
      if (byHand !== '') return `succeeded${byHand}`;
      const attempts = task.attempts + 1;
      return attempts === 1 ? 'succeeded' : `succeeded after ${attempts} attempts`;
    }
    case 'needs_manual':
      return `needs a person: ${visible(because?.text ?? task.reason ?? 'no reason is recorded')}`;
    case 'dead':
      return byHand === ''
        ? `dead: ${visible(because?.text ?? task.reason ?? 'no reason is recorded')}`
        : `dead${byHand}`;
    case 'cancelled':
      return `cancelled${byHand}`;
    default:
      return heldSentence(task) ?? stateWords(shownState(task));
  }
}

/** What a person can do about a task that is dead or waits for one. */
export function nextSteps(commands: CommandLine, task: Task, history: readonly HistoryEntry[]): string[] {
  if (task.state === 'dead') {
    return [`look  ${commands.command(`show ${task.id}`)}        retry it  ${commands.command(`retry ${task.id}`)}`];
  }
  if (task.state === 'held') return [`release it: ${commands.command(`release ${task.id}`)}`];
  if (task.heldBy === 'needs_person') {
    return [`remove the cause, then release the source: ${commands.command(`sources release ${quoted(task.source)}`)}`];
  }
  if (task.state !== 'needs_manual') return [];
  const ambiguous = isAmbiguous(task, history);
  const choices = choicesOf(task, ambiguous);
  const width = Math.max(...choices.map(({ words }) => words.length));
  return [
    ...taskAdvice(task, ambiguous),
    ...choices.map(({ words, does, command }) => {
      const line = `${words.padEnd(width)}  ${commands.command(command)}`;
      return does === undefined ? line : `${line}   (${does})`;
    }),
  ];
}
