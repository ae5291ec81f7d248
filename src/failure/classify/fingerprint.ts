import type { Failure } from '../outcome.ts';
import { ownFrame, placeOf } from './stack.ts';

/** Raised when the algorithm changes, so that fingerprints of different versions are never compared. */
const VERSION = 2;

/** How many characters of a message count. */
const LONGEST = 160;

/**
 * The same text for similar failures, in every process and version: `2:` and 13 hex digits. It is made from the reason, the class, the
 * message without ids, numbers, times, paths, URLs, hosts and e-mail addresses, and the function and file of the first own frame.
 */
export function fingerprint(
  reason: string,
  { name, message, stack }: Pick<Failure, 'name' | 'message' | 'stack'>,
): string {
  return `${VERSION}:${hash(`${reason}\n${name}\n${masked(message)}\n${placeIn(stack)}`)}`;
}

/** The fingerprint of a failure, also of one that `classify` did not make. */
export function fingerprintOf(failure: Failure): string {
  return failure.fingerprint ?? fingerprint(failure.reason, failure);
}

let lastStack: string | undefined;
let lastPlace = '';

/** The place of the first own frame. Errors of the same place often come one after the other. */
function placeIn(stack: string | undefined): string {
  if (stack === undefined) return '';
  if (stack !== lastStack) {
    const frame = ownFrame(stack);
    lastPlace = frame === undefined ? '' : masked(placeOf(frame));
    lastStack = stack;
  }
  return lastPlace;
}

const SPACE = 32;
const DOT = 46;

/**
 * The message, with `#` for each word that contains a digit, a slash, a backslash, an @ or two dots: a number, an id, a time, a path, a
 * URL, an address or a host. Words end at white space, quotes, brackets, commas and semicolons. The name after ENOTFOUND is a host too.
 */
function masked(message: string): string {
  const length = Math.min(message.length, LONGEST);
  let text = '';
  let from = 0;
  let start = 0;
  let varies = false;
  let dots = 0;
  for (let i = 0; i <= length; i++) {
    const code = i < length ? message.charCodeAt(i) : SPACE;
    if (!endsWord(code)) {
      if ((code >= 47 && code <= 57) || code === 92 || code === 64) varies = true;
      else if (code === DOT && !endsWord(message.charCodeAt(i - 1)) && ++dots === 2) varies = i + 1 < length;
      continue;
    }
    if (varies || (start > 10 && /\b(?:ENOTFOUND|EAI_AGAIN) $/.test(message.slice(start - 11, start)))) {
      text += `${message.slice(from, start)}#`;
      from = i;
    }
    start = i + 1;
    varies = false;
    dots = 0;
  }
  return text + message.slice(from, length);
}

/** Whether a character is white space or one of: " ' ( ) , ; < > [ ] ` { } */
function endsWord(code: number): boolean {
  if (code <= SPACE) return true;
  if (code > 125 || (code >= 97 && code <= 122)) return false;
  return ENDS.has(code);
}

const ENDS = new Set([...'"\'(),;<>[]`{}'].map((end) => end.charCodeAt(0)));

/** A hash of 52 bits, made from two of 32. It costs a tenth of a cryptographic hash. */
export function hash(text: string): string {
  let high = 0x9e3779b9;
  let low = 0x85ebca6b;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    high = Math.imul(high ^ code, 0x2c1b3c6d);
    low = Math.imul(low ^ code ^ (high >>> 16), 0x297a2d39);
  }
  high = Math.imul(high ^ (high >>> 15), 0xd168aaad);
  low = Math.imul(low ^ (low >>> 13), 0xaf723597) ^ (high >>> 9);
  return ((high >>> 12) * 2 ** 32 + (low >>> 0)).toString(16).padStart(13, '0');
}
