import type { ActionEntry, ExecutionEntry, TaskEvent } from '../store/store.ts';
import type { TaskState } from '../task.ts';
import { decisionOf } from './decision-words.ts';
import type { ShownState } from './glyphs.ts';
import { historyJson } from './json-shapes.ts';
import { endOf } from './task-text.ts';
import { rfc3339 } from './times.ts';
import { shortened, visible } from './visible.ts';

/** The state whose glyph an event has. */
export function stateOfEvent({ entry }: TaskEvent): ShownState {
  if (entry.kind === 'stray') return 'dead';
  const to = (entry.kind === 'action' ? entry.to : entry.next) as TaskState;
  return to === 'scheduled' ? 'retrying' : to;
}

/** What happened, in one line of bounded length. */
export function eventWords({ entry }: TaskEvent): string {
  switch (entry.kind) {
    case 'execution':
      return executionWords(entry);
    case 'action':
      return actionWords(entry);
    case 'stray': {
      const said = entry.failure?.message ?? '';
      return `an error of execution ${entry.execution} that nobody waited for: ${shortened(visible(said))}`;
    }
  }
}

function executionWords(entry: ExecutionEntry): string {
  const { how, said } = endOf(entry);
  const what = [visible(entry.failure?.reason ?? entry.outcome), how, shortened(said)].filter((part) => part !== '');
  return `${what.join(': ')}  → ${decisionOf(entry)}`;
}

function actionWords({ verb, actor, note, from, to }: ActionEntry): string {
  const why = note === undefined ? '' : `: ${shortened(visible(note))}`;
  const change = from === to ? '' : `  → ${to}`;
  return `${visible(verb)} by ${visible(actor)}${why}${change}`;
}

/** An event of `holdfast events --json`. */
export function eventJson({ at, task, type, queue, source, entry }: TaskEvent): object {
  return { at: rfc3339(at), task, type, queue, source, event: historyJson(entry) };
}
