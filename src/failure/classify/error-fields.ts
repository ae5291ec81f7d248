import { bodyOf, wordsIn } from './body.ts';
import { bagOf, type HeaderBag } from './headers.ts';
import { inheritedNames, isReadable, type Names, read, readOf, readText } from './inspect.ts';
import { type Status, statusOf } from './status.ts';

/** How many characters of a message are searched. */
const LONGEST_READ = 1_024;

/**
 * Sorts of errors that are cheap to tell apart, so that not every family must look at each error. `answered`: it has an HTTP
 * status. `system`: a system error with `syscall`. `coded`, `numbered`: its code is a string, a number. `bare`: it has no code.
 */
export const SORTS = ['answered', 'system', 'coded', 'numbered', 'bare'] as const;
export type Sort = (typeof SORTS)[number];

const ABSENT = Symbol('not read yet');

/** One error of a chain. It keeps what several families read, so that each property is read once. */
export class ErrorFields {
  readonly value: unknown;
  readonly name: string;
  /** The name of its class. It differs from `name` if the library did not set that. */
  readonly class: string;
  /** The beginning of its message. */
  readonly message: string;
  readonly code: unknown;
  readonly syscall: string;
  readonly #inherited: Names;
  #status: Status | undefined | typeof ABSENT = ABSENT;
  #body: unknown = ABSENT;
  #headers: HeaderBag | undefined | typeof ABSENT = ABSENT;
  #response: unknown = ABSENT;
  #words: string | undefined;

  constructor(value: unknown) {
    this.value = value;
    this.#inherited = isReadable(value) ? inheritedNames(value) : undefined;
    const text = typeof value === 'string';
    this.name = text ? '' : short(this.#text('name'));
    this.class = text ? '' : short(readText(this.get('constructor'), 'name') ?? '');
    const message = text ? value : this.#text('message');
    this.message = message.length > LONGEST_READ ? message.slice(0, LONGEST_READ) : message;
    const code = this.get('code');
    this.code = typeof code === 'string' ? short(code) : code;
    this.syscall = short(this.#text('syscall'));
  }

  get(key: PropertyKey): unknown {
    return isReadable(this.value) ? readOf(this.value, key, this.#inherited) : undefined;
  }

  number(key: string): number | undefined {
    const found = this.get(key);
    return typeof found === 'number' && Number.isFinite(found) ? found : undefined;
  }

  text(key: string): string | undefined {
    const found = this.get(key);
    return typeof found === 'string' ? found : undefined;
  }

  #text(key: string): string {
    return this.text(key) ?? '';
  }

  /** A property of the object in a property. */
  in(outer: string, key: string): unknown {
    return read(this.get(outer), key);
  }

  is(...names: readonly string[]): boolean {
    return names.includes(this.name) || names.includes(this.class);
  }

  /** The HTTP response that a client attached. */
  get response(): unknown {
    if (this.#response === ABSENT) this.#response = this.get('response');
    return this.#response;
  }

  /** Its sort, which decides which families look at it. */
  get sort(): Sort {
    const { code, status } = this;
    if (status !== undefined) return 'answered';
    if (typeof code === 'string') return this.syscall === '' ? 'coded' : 'system';
    return typeof code === 'number' ? 'numbered' : 'bare';
  }

  /** The HTTP status, from any of the fields in which clients keep it. */
  get status(): Status | undefined {
    if (this.#status === ABSENT) this.#status = statusOf(this);
    return this.#status;
  }

  /** The headers of the response, as the client keeps them. */
  get rawHeaders(): unknown {
    const own = read(this.response, 'headers') ?? this.get('headers') ?? this.get('responseHeaders');
    return own ?? this.in('meta', 'headers') ?? this.in('$response', 'headers') ?? this.get('metadata');
  }

  /** The headers of the response about rate limits and retries. */
  get headers(): HeaderBag | undefined {
    if (this.#headers === ABSENT) this.#headers = bagOf(this.rawHeaders);
    return this.#headers;
  }

  /** The body of the response, parsed if it is JSON. */
  get body(): unknown {
    if (this.#body === ABSENT) this.#body = bodyOf(this);
    return this.#body;
  }

  /** The text of its message and of the body of the response. */
  get words(): string {
    const answer = this.body ?? read(this.response, 'data') ?? this.text('response') ?? this.text('responseText');
    this.#words ??= `${this.message}\n${wordsIn(answer)}`;
    return this.#words;
  }
}

const LONGEST_NAME = 256;

function short(text: string): string {
  return text.length > LONGEST_NAME ? text.slice(0, LONGEST_NAME) : text;
}
