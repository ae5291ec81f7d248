import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** A key, or two keys one after the other such as `g t`, and what it does. */
export interface Key {
  readonly keys: string;
  readonly does: string;
  readonly run: () => void;
}

/** What keys do on every page, and on the page that is open, for the help. */
export const activeKeys = { everywhere: signal<readonly Key[]>([]), here: signal<readonly (readonly Key[])[]>([]) };
/** Single letters can be switched off, for who speaks to the browser or has a keyboard that types by itself. */
export const lettersOn = signal(readLetters());

const STORED_AS = 'holdfast.letters';
const SECOND_WITHIN = 1_500;

/** Keys that have an effect as long as the component is shown. */
export function useKeys(keys: readonly Key[]): void {
  const { here } = activeKeys;
  // Made anew at each drawing, for what they do must be the newest.
  useEffect(() => {
    here.value = [...here.peek(), keys];
    return () => {
      here.value = here.peek().filter((each) => each !== keys);
    };
  });
}

export function setLetters(on: boolean): void {
  lettersOn.value = on;
  try {
    localStorage.setItem(STORED_AS, on ? 'on' : 'off');
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

function readLetters(): boolean {
  try {
    return localStorage.getItem(STORED_AS) !== 'off';
  } catch {
    return true;
  }
}

let first = '';
let firstAt = 0;

/** Listens to the keyboard. Called once. */
export function followKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.altKey || event.defaultPrevented || document.querySelector('dialog[open]')) return;
    const pressed = nameOf(event);
    // With Ctrl or Cmd they work also in a field.
    if (pressed === undefined || (isTyping(event.target as Element) && pressed !== 'Ctrl+K')) return;
    const isLetter = event.key.length === 1 && pressed !== 'Ctrl+K';
    if (isLetter && !lettersOn.value) return;
    // On a button or a box, Space presses that.
    if (pressed === 'Space' && (event.target as Element).closest('button, summary, input')) return;
    // What the open page says of a key counts before what all pages say.
    const known = [...activeKeys.everywhere.value, ...activeKeys.here.value.flat()];
    const two = first !== '' && performance.now() - firstAt < SECOND_WITHIN ? `${first} ${pressed}` : pressed;
    first = '';
    const found = known.findLast(({ keys }) => keys === two) ?? known.findLast(({ keys }) => keys === pressed);
    if (found) {
      // Enter on a link or a button is theirs.
      if (event.key === 'Enter' && (event.target as Element).closest('a, button, summary')) return;
      event.preventDefault();
      found.run();
    } else if (known.some(({ keys }) => keys.startsWith(`${pressed} `))) {
      first = pressed;
      firstAt = performance.now();
    }
  });
}

/** The name of a key, as the help shows it. Undefined for keys that are left to the browser. */
function nameOf({ key, ctrlKey, metaKey }: KeyboardEvent): string | undefined {
  if (ctrlKey || metaKey) return key.toLowerCase() === 'k' ? 'Ctrl+K' : undefined;
  return key === ' ' ? 'Space' : key;
}

function isTyping(target: Element): boolean {
  return target.matches('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]');
}
