import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import { announce } from './announcements.ts';

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
const WRITES_ON_FOR = 2_000;

/** Keys that have an effect as long as the component is shown. */
export function useKeys(keys: readonly Key[]): void {
  const { here } = activeKeys;
  // Made anew at each drawing, and before the browser can deliver the next key: a key acts on what is on the screen.
  useLayoutEffect(() => {
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
/** The field in which somebody writes; and, once it is gone, when the last letter came. */
let written: { readonly field: Element; readonly goneAt?: number } | undefined;

/** Listens to the keyboard. Called once. */
export function followKeys(): void {
  document.addEventListener('pointerdown', () => {
    written = undefined;
  });
  document.addEventListener('keydown', (event) => {
    if (event.altKey || event.defaultPrevented || document.querySelector('dialog[open]')) return;
    const pressed = nameOf(event);
    if (pressed === undefined) return;
    const isCombined = pressed.startsWith('Ctrl+');
    const isLetter = event.key.length === 1 && !isCombined;
    const target = event.target as Element;
    if (isTyping(target)) {
      written = isLetter ? { field: target } : undefined;
      // With Ctrl or Cmd they work also in a field.
      if (!isCombined) return;
    } else if (isLetter && writesOn(event.timeStamp)) {
      announce('The field in which you wrote is gone. Nothing was done.', { isProblem: true });
      return;
    }
    if (isLetter && !lettersOn.value) return;
    // On a button or a box, Space presses that.
    if (pressed === 'Space' && target.closest('button, summary, input')) return;
    // What the open page says of a key counts before what all pages say.
    const known = [...activeKeys.everywhere.value, ...activeKeys.here.value.flat()];
    const two = first !== '' && performance.now() - firstAt < SECOND_WITHIN ? `${first} ${pressed}` : pressed;
    first = '';
    const found = known.findLast(({ keys }) => keys === two) ?? known.findLast(({ keys }) => keys === pressed);
    if (found) {
      // Enter on a link or a button is theirs.
      if (pressed === 'Enter' && target.closest('a, button, summary')) return;
      event.preventDefault();
      found.run();
    } else if (known.some(({ keys }) => keys.startsWith(`${pressed} `))) {
      first = pressed;
      firstAt = performance.now();
    }
  });
}

/**
 * Whether somebody goes on writing in a field that a change of the page has removed: each letter would do something. The first letter
 * afterwards is never a key, nor are those that follow it without a pause. Not after Enter, a click or what else leaves a field on purpose.
 */
function writesOn(now: number): boolean {
  if (!written || written.field.isConnected) return false;
  const { goneAt = now } = written;
  const writes = now - goneAt <= WRITES_ON_FOR;
  written = writes ? { ...written, goneAt: now } : undefined;
  return writes;
}

/** The name of a key, as the help shows it. Undefined for keys that are left to the browser. */
function nameOf({ key, ctrlKey, metaKey }: KeyboardEvent): string | undefined {
  if (ctrlKey || metaKey) return { k: 'Ctrl+K', enter: 'Ctrl+Enter' }[key.toLowerCase()];
  return key === ' ' ? 'Space' : key;
}

function isTyping(target: Element): boolean {
  return target.matches('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]');
}
