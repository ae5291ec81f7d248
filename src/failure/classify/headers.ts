import { isReadable, read } from './inspect.ts';

/** How many headers are looked at: more than any server sends. */
const MOST_HEADERS = 256;
const LONGEST_NAME = 64;
const LONGEST_VALUE = 1_024;

/** The headers that somebody here asks for. */
const WANTED = /retry|rate-?limit|^date$|^www-authenticate$/;

/** The headers of an answer that speak of waiting and trying again, whatever object they came in; names in lower case. */
export class HeaderBag {
  readonly #kept = new Map<string, string>();
  readonly #get: ((name: string) => unknown) | undefined;

  constructor(headers: object) {
    try {
      const any = collect(headers, this.#kept);
      const get = any ? undefined : read(headers, 'get');
      // gRPC's Metadata and others only answer when asked by name.
      if (typeof get === 'function') this.#get = (name) => get.call(headers, name);
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

  [Symbol.iterator](): Iterator<[string, string]> {
    return this.#kept[Symbol.iterator]();
  }
}

/** Keeps what is wanted, and says whether there was anything. */
function collect(headers: object, kept: Map<string, string>): boolean {
  let looked = 0;
  let any = false;
  const keep = (key: unknown, value: unknown) => {
    looked += 1;
    // A method is no header.
    if (typeof key !== 'string' || typeof value === 'function') return;
    any = true;
    if (key.length > LONGEST_NAME) return;
    const name = key.toLowerCase();
    const first = WANTED.test(name) ? text(value) : undefined;
    if (first !== undefined && !kept.has(name)) kept.set(name, first);
  };
  if (headers instanceof Headers || headers instanceof Map || Array.isArray(headers)) {
    for (const pair of headers as Iterable<unknown>) {
      keep(read(pair, 0), read(pair, 1));
      if (looked === MOST_HEADERS) break;
    }
  } else {
    for (const key in headers) {
      keep(key, read(headers, key));
      if (looked === MOST_HEADERS) break;
    }
  }
  return any;
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
