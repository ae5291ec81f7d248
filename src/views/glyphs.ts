import type { TaskState } from '../task.ts';

/** A state as people see it: a scheduled task that was tried before is retrying. */
export type ShownState = TaskState | 'retrying';

/** What a colour means. Each comes with a glyph or a word, so that nothing depends on seeing it. */
export type Style = 'ok' | 'active' | 'idle' | 'waiting' | 'human' | 'dead' | 'strong';

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

/** What a locale without UTF-8 gets instead: of the glyphs, and of the few other signs that our own texts use. */
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
