/** A key that is no printable character. */
export type NamedKey =
  | 'up'
  | 'down'
  | 'page_up'
  | 'page_down'
  | 'home'
  | 'end'
  | 'tab'
  | 'back_tab'
  | 'enter'
  | 'backspace'
  | 'escape'
  | 'interrupt'
  | 'suspend';

/** A pressed key: its name, or the character that it types. A pasted text is one key, so that it cannot give commands. */
export type Key = { readonly name: NamedKey } | { readonly typed: string } | { readonly pasted: string };

const NAMES: Readonly<Record<string, NamedKey>> = {
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[5~': 'page_up',
  '\u001b[6~': 'page_down',
  '\u001b[H': 'home',
  '\u001b[1~': 'home',
  '\u001bOH': 'home',
  '\u001b[F': 'end',
  '\u001b[4~': 'end',
  '\u001bOF': 'end',
  '\u001b[Z': 'back_tab',
  '\t': 'tab',
  '\r': 'enter',
  '\n': 'enter',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u001b': 'escape',
  '\u0003': 'interrupt',
  '\u001a': 'suspend',
};

/** A pasted text between its marks, an escape sequence, or one character. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals send keys as control characters
const KEYS = /\u001b\[200~([\s\S]*?)\u001b\[201~|\u001b\[[0-9;?]*[ -/]*[@-~]|\u001bO[@-~]|[\s\S]/gu;

/** The keys in what a terminal in raw mode sent. Sequences and control characters that we do not know are left out. */
export function keysIn(sent: string): Key[] {
  return [...sent.matchAll(KEYS)].flatMap(([key, pasted]): Key[] => {
    if (pasted !== undefined) return [{ pasted }];
    const name = NAMES[key];
    if (name) return [{ name }];
    return key < ' ' || key.startsWith('\u001b') ? [] : [{ typed: key }];
  });
}
