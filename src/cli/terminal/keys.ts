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

const INTERRUPT = '\u0003';

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
  [INTERRUPT]: 'interrupt',
  '\u001a': 'suspend',
};

/** A pasted text between its marks, an escape sequence, or one character. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals send keys as control characters
const KEYS = /\u001b\[200~([\s\S]*?)\u001b\[201~|\u001b\[[0-9;?]*[ -/]*[@-~]|\u001bO[@-~]|[\s\S]/gu;

/** What may be the beginning of a key: a pasted text without its end, or a sequence without its last character. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals send keys as control characters
const BEGUN = /\u001b\[200~(?![\s\S]*\u001b\[201~)[\s\S]*$|\u001b\[[0-9;?]*[ -/]*$/u;

/** Finds the keys in what a terminal in raw mode sends. A key may come in several parts: a terminal sends at most 4 KiB at once. */
export class KeyReader {
  readonly #decoder = new TextDecoder();
  #begun = '';

  /** The keys that are complete now. Sequences and control characters that we do not know are left out. */
  read(sent: Uint8Array): Key[] {
    const text = this.#begun + this.#decoder.decode(sent, { stream: true });
    const end = BEGUN.exec(text)?.index ?? text.length;
    this.#begun = text.slice(end);
    // A pasted text contains no Ctrl-C: it is the person, who waits in vain for the end of the text.
    const isGivenUp = this.#begun.includes(INTERRUPT);
    if (isGivenUp) this.#begun = '';
    return [...keysIn(text.slice(0, end)), ...(isGivenUp ? keysIn(INTERRUPT) : [])];
  }
}

function keysIn(text: string): Key[] {
  return [...text.matchAll(KEYS)].flatMap(([key, pasted]): Key[] => {
    if (pasted !== undefined) return [{ pasted }];
    const name = NAMES[key];
    if (name) return [{ name }];
    return key < ' ' || key.startsWith('\u001b') ? [] : [{ typed: key }];
  });
}
