import { isReadable, read } from './inspect.ts';

/** At most this many headers are read. No server sends so many. */
const MOST_HEADERS = 256;
const LONGEST_NAME = 64;
const LONGEST_VALUE = 1_024;

/** The headers that the classifier reads. */
const WANTED = /retry|limit|-towait-|business-use-case-usage|^date$|^www-authenticate$/;

/** The headers of a response about rate limits and retries, from an object of any kind. Names are in lower case. */
export class HeaderBag {
  readonly #kept = new Map<string, string>();
  readonly #get: ((name: string) => unknown) | undefined;

  constructor(headers: object) {
    try {
      collect(headers, this.#kept);
      if (this.#kept.size > 0) return;
      // gRPC's Metadata can only be read by name. Azure's and node-fetch's headers can be iterated.
      const get = read(headers, 'get');
      if (typeof get !== 'function') return;
      this.#get = (name) => get.call(headers, name);
      collectPairs(headers, this.#kept);
    } catch {
      // The object threw when it was read. Headers that cannot be read count as absent.
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

  /** The names of the headers that match. */
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

/** The headers of an object that lists them as pairs. */
function collectPairs(headers: object, kept: Map<string, string>): void {
  if (typeof read(headers, Symbol.iterator) !== 'function') return;
  let looked = 0;
  for (const pair of headers as Iterable<unknown>) {
    keep(kept, read(pair, 0), read(pair, 1));
    looked += 1;
    if (looked === MOST_HEADERS) break;
  }
}

/** Keeps the first value of a header that the classifier reads. */
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

/** Reads what a client keeps as headers. Undefined if there are none. */
export function bagOf(headers: unknown): HeaderBag | undefined {
  return isReadable(headers) ? new HeaderBag(headers) : undefined;
}
