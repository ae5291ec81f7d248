import type { RecordedCondition } from '../source/condition.ts';
import type { ChangeRecord } from '../store/changes.ts';
import type { ActionEntry, ExecutionEntry, HappenedEvent, TaskEvent } from '../store/store.ts';
import type { TaskState } from '../task.ts';
import { decisionOf } from './decision-words.ts';
import type { ShownState } from './glyphs.ts';
import { historyJson } from './json-shapes.ts';
import { changeJson, changeWords } from './source-history.ts';
import { endOf } from './task-text.ts';
import { rfc3339 } from './times.ts';
import { shortened, visible } from './visible.ts';

/** The state whose glyph an event has. */
export function stateOfEvent(event: HappenedEvent): ShownState {
  return 'change' in event ? stateOfChange(event.change) : stateOfEntry(event);
}

function stateOfChange({ change, to }: ChangeRecord): ShownState {
  if (to !== undefined) return STATES_OF_CONDITIONS[to];
  return change === 'hold' || change === 'pause' ? 'held' : 'ready';
}

const STATES_OF_CONDITIONS: Readonly<Record<RecordedCondition, ShownState>> = {
  normal: 'succeeded',
  down: 'held',
  waits: 'held',
  ramping: 'running',
  needs_person: 'needs_manual',
};

function stateOfEntry({ entry }: TaskEvent): ShownState {
  if (entry.kind === 'stray') return 'dead';
  const to = (entry.kind === 'action' ? entry.to : entry.next) as TaskState;
  return to === 'scheduled' ? 'retrying' : to;
}

/** Whom an event is about: `#12 sync  imap:INBOX`, `source imap:INBOX`. Safe to print. */
export function eventSubject(event: HappenedEvent): string {
  if ('change' in event) return `${event.change.kind} ${visible(event.change.name)}`;
  const { task, type, source } = event;
  return `#${task} ${visible(type)}${source === type ? '' : `  ${visible(source)}`}`;
}

/** What happened, in one line of bounded length. */
export function eventWords(event: HappenedEvent): string {
  return 'change' in event ? changeWords(event.change) : entryWords(event);
}

function entryWords({ entry }: TaskEvent): string {
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
export function eventJson(event: HappenedEvent): object {
  const said = { state: stateOfEvent(event), text: eventWords(event) };
  if ('change' in event) return { ...changeEventJson(event.change), ...said };
  const { at, task, type, queue, source, entry } = event;
  return { at: rfc3339(at), task, type, queue, source, event: historyJson(entry), ...said };
}

function changeEventJson(record: ChangeRecord): object {
  const { id: _, at, kind, name, ...event } = changeJson(record);
  const none = { task: null, type: null, queue: null, source: null };
  return { at, ...none, [kind]: name, event: { kind: 'change', ...event } };
}
