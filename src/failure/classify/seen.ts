import { bodyOf, wordsIn } from './body.ts';
import { bagOf, type HeaderBag } from './headers.ts';
import { inheritedNames, isReadable, type Names, read, readOf, readText } from './inspect.ts';
import { type Status, statusOf } from './status.ts';

/** How much of a message is searched for words, in characters. */
const LONGEST_READ = 1_024;

/**
 * Sorts of errors, told apart by little, so that not every family must look at each: with the status of an answer; as the
 * system made it, with its call; with a code that is text or a number; or with none.
 */
export const SORTS = ['answered', 'system', 'coded', 'numbered', 'bare'] as const;
export type Sort = (typeof SORTS)[number];

const ABSENT = Symbol('not read yet');

/** One error of a chain, read no more often than needed: what is asked for by several families is kept. */
export class Seen {
  readonly value: unknown;
  readonly name: string;
  /** The name of its class, which differs from `name` where a library forgot to set that. */
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

  /** The property of an object that stands in a property. */
  in(outer: string, key: string): unknown {
    return read(this.get(outer), key);
  }

  is(...names: readonly string[]): boolean {
    return names.includes(this.name) || names.includes(this.class);
  }

  /** The answer that a client attached, wherever it is kept. */
  get response(): unknown {
    if (this.#response === ABSENT) this.#response = this.get('response');
    return this.#response;
  }

  /** What sort of error it is, by which families are asked. */
  get sort(): Sort {
    const { code, status } = this;
    if (status !== undefined) return 'answered';
    if (typeof code === 'string') return this.syscall === '' ? 'coded' : 'system';
    return typeof code === 'number' ? 'numbered' : 'bare';
  }

  /** The HTTP status, in any of the places where clients put it. */
  get status(): Status | undefined {
    if (this.#status === ABSENT) this.#status = statusOf(this);
    return this.#status;
  }

  /** Where clients keep the headers of an answer. */
  get rawHeaders(): unknown {
    const own = read(this.response, 'headers') ?? this.get('headers') ?? this.get('responseHeaders');
    return own ?? this.in('meta', 'headers') ?? this.in('$response', 'headers') ?? this.get('metadata');
  }

  /** What the answer's headers say of waiting and trying again. */
  get headers(): HeaderBag | undefined {
    if (this.#headers === ABSENT) this.#headers = bagOf(this.rawHeaders);
    return this.#headers;
  }

  /** The answer's body, parsed if it is JSON. */
  get body(): unknown {
    if (this.#body === ABSENT) this.#body = bodyOf(this);
    return this.#body;
  }

  /** What its message and the body of the answer say in words. */
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
