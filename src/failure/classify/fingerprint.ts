/** Raised when the same failure would get another fingerprint, so that nobody compares two that were made differently. */
const VERSION = 1;

/** How much of a message counts: what comes later is detail, and the message may be long. */
const LONGEST = 160;

/**
 * What failures of the same sort have in common: their reason, class and message, less what differs from one to the next
 * (ids, numbers, times, paths, URLs, e-mail addresses). The same text in every process and version: `1:` and 13 hex digits.
 */
export function fingerprint(reason: string, name: string, message: string): string {
  return `${VERSION}:${hash(`${reason}\n${name}\n${masked(message)}`)}`;
}

const SPACE = 32;

/**
 * The message with each varying word as `#`. A word ends at white space, a quote, a bracket or a comma, so that what stands
 * between quotes is one; a digit, a slash, a backslash or an @ makes it a number, an id, a time, a path, a URL or an address.
 */
function masked(message: string): string {
  const length = Math.min(message.length, LONGEST);
  let text = '';
  let from = 0;
  let start = 0;
  let varies = false;
  for (let i = 0; i <= length; i++) {
    const code = i < length ? message.charCodeAt(i) : SPACE;
    if (!endsWord(code)) {
      if ((code >= 47 && code <= 57) || code === 92 || code === 64) varies = true;
      continue;
    }
    if (varies) {
      text += `${message.slice(from, start)}#`;
      from = i;
    }
    start = i + 1;
    varies = false;
  }
  return text + message.slice(from, length);
}

/** White space, and: " ' ( ) , ; < > [ ] ` { } */
function endsWord(code: number): boolean {
  if (code <= SPACE) return true;
  if (code > 125 || (code >= 97 && code <= 122)) return false;
  return ENDS.has(code);
}

const ENDS = new Set([...'"\'(),;<>[]`{}'].map((end) => end.charCodeAt(0)));

/** 52 bits from two mixes of 32: enough to tell groups apart, at a tenth of the cost of a cryptographic hash. */
function hash(text: string): string {
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
