import type { Task } from '../queue/task-view.ts';
import type { TaskState } from '../task.ts';

/** A state as people see it. */
export type ShownState = TaskState | 'retrying';

/** What a colour means. Each comes with a glyph or a word, so that nothing depends on seeing it. */
export type Style = 'ok' | 'active' | 'idle' | 'waiting' | 'human' | 'dead' | 'strong';

/** Of a task that is shown. A scheduled task that was tried before is retrying. */
export function shownState(task: Pick<Task, 'state' | 'attempts' | 'deferrals' | 'executions'>): ShownState {
  const tried = task.attempts > 0 || task.deferrals > 0 || task.executions > 0;
  return task.state === 'scheduled' && tried ? 'retrying' : task.state;
}

/** What a state is called in a sentence. */
export function stateWords(state: ShownState): string {
  return state === 'needs_manual' ? 'needs a person' : state;
}

/** The glyph carries the meaning; colour only helps. */
export const GLYPHS: Readonly<Record<ShownState, string>> = {
  scheduled: '◷',
  ready: '○',
  running: '▶',
  retrying: '↻',
  held: '⏸',
  needs_manual: '⚑',
  dead: '✕',
  succeeded: '✓',
  cancelled: '⊘',
};

const STYLES: Readonly<Record<ShownState, Style>> = {
  scheduled: 'idle',
  ready: 'idle',
  running: 'active',
  retrying: 'waiting',
  held: 'waiting',
  needs_manual: 'human',
  dead: 'dead',
  succeeded: 'ok',
  cancelled: 'idle',
};

/** A state as its glyph, and the style of that. */
export function signOf(state: ShownState): { readonly text: string; readonly style: Style } {
  return { text: GLYPHS[state], style: STYLES[state] };
}

/** What a locale without UTF-8 gets instead of the glyphs, and of the few other signs that our own texts use. */
const IN_ASCII: Readonly<Record<string, string>> = {
  '◷': '@',
  '○': 'o',
  '▶': '>',
  '↻': '~',
  '⏸': '=',
  '⚑': '!',
  '✕': 'x',
  '✓': '+',
  '⊘': '/',
  '→': '->',
  '×': 'x',
  '≤': '<=',
  '±': '+-',
  '·': '-',
  '…': '...',
  '—': '-',
  '›': '>',
  '↳': '>',
  '’': "'",
};

const SIGNS = new RegExp(`[${Object.keys(IN_ASCII).join('')}]`, 'gu');

/** Our own signs in ASCII. Text of a task stays as it is: it was typed in this locale. */
export function inAscii(text: string): string {
  return text.replace(SIGNS, (sign) => IN_ASCII[sign] as string);
}
