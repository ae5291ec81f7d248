import { isReadable, read } from './inspect.ts';

/** How many headers are looked at: more than any server sends. */
const MOST_HEADERS = 256;
const LONGEST_NAME = 64;
const LONGEST_VALUE = 1_024;

/** The headers that somebody here asks for. */
const WANTED = /retry|limit|-towait-|^date$|^www-authenticate$/;

/** The headers of an answer that speak of waiting and trying again, whatever object they came in; names in lower case. */
export class HeaderBag {
  readonly #kept = new Map<string, string>();
  readonly #get: ((name: string) => unknown) | undefined;

  constructor(headers: object) {
    try {
      collect(headers, this.#kept);
      if (this.#kept.size > 0) return;
      // gRPC's Metadata only answers when asked by name; Azure's and node-fetch's headers tell what they have by and by.
      const get = read(headers, 'get');
      if (typeof get !== 'function') return;
      this.#get = (name) => get.call(headers, name);
      collectPairs(headers, this.#kept);
    } catch {
      // Somebody else's object refused to be read, and what cannot be read asks for nothing.
    }
  }

  /** The first value of a header. */
  get(name: string): string | undefined {
    const kept = this.#kept.get(name);
    if (kept !== undefined || this.#get === undefined) return kept;
    try {
      return text(this.#get(name));
    } catch {
      // As above.
      return undefined;
    }
  }

  /** The names of its headers that are of this form. */
  names(form: RegExp): string[] {
    return [...this.#kept.keys()].filter((name) => form.test(name));
  }

  [Symbol.iterator](): Iterator<[string, string]> {
    return this.#kept[Symbol.iterator]();
  }
}

function collect(headers: object, kept: Map<string, string>): void {
  if (headers instanceof Headers || headers instanceof Map || Array.isArray(headers)) {
    collectPairs(headers, kept);
    return;
  }
  let looked = 0;
  for (const key in headers) {
    keep(kept, key, read(headers, key));
    looked += 1;
    if (looked === MOST_HEADERS) break;
  }
}

/** The same of what lists its headers as pairs. */
function collectPairs(headers: object, kept: Map<string, string>): void {
  if (typeof read(headers, Symbol.iterator) !== 'function') return;
  let looked = 0;
  for (const pair of headers as Iterable<unknown>) {
    keep(kept, read(pair, 0), read(pair, 1));
    looked += 1;
    if (looked === MOST_HEADERS) break;
  }
}

/** Keeps the first value of a header that somebody asks for. */
function keep(kept: Map<string, string>, key: unknown, value: unknown): void {
  if (typeof key !== 'string' || key.length > LONGEST_NAME) return;
  const name = key.toLowerCase();
  const first = WANTED.test(name) ? text(value) : undefined;
  if (first !== undefined && !kept.has(name)) kept.set(name, first);
}

function text(value: unknown): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof first === 'number') return String(first);
  return typeof first === 'string' && first.length <= LONGEST_VALUE ? first.trim() : undefined;
}

/** The bag of whatever a client keeps as headers, if it is anything. */
export function bagOf(headers: unknown): HeaderBag | undefined {
  return isReadable(headers) ? new HeaderBag(headers) : undefined;
}
