/** What `JSON.parse` does not say: where the JSON is invalid, the offsets of its keys, and which numbers JavaScript would change. */
export interface Scan {
  /** Offsets of the top-level keys. */
  readonly members: ReadonlyMap<string, number>;
  /** Whole numbers that JavaScript cannot hold exactly. */
  readonly twisted: readonly { readonly token: string; readonly at: number }[];
  /** The first repeated key of an object, with the second offset. JavaScript would silently keep the last one. */
  readonly twice?: { readonly name: string; readonly at: number };
  /** The offset at which the JSON is invalid, and what was expected there. */
  readonly wrong?: { readonly at: number; readonly expected: string };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON has none in its strings
const PLAIN = /[^"\\\u0000-\u001f]*/y;
/** At most a thousand at once, because without a limit the expression would need a stack as deep as the text is long. */
const ESCAPES = /(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})){1,1000}/y;
const SPACE = /[ \t\r\n]*/y;
const WORD = /true|false|null/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Deeper than any accepted value. */
const DEEPEST = 2_000;

export function scanJson(text: string): Scan {
  const scanner = new Scanner(text);
  const { members, twisted } = scanner;
  try {
    scanner.all();
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return { members, twisted, wrong: { at: error.at, expected: error.message } };
  }
  return { members, twisted, ...(scanner.twice && { twice: scanner.twice }) };
}

class Wrong extends Error {
  readonly at: number;

  constructor(at: number, expected: string) {
    super(expected);
    this.at = at;
  }
}

class Scanner {
  readonly members = new Map<string, number>();
  readonly twisted: { token: string; at: number }[] = [];
  twice: { name: string; at: number } | undefined;
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  all(): void {
    this.#value(0);
    if (this.#next() !== undefined) this.#fail('the end of the line');
  }

  #value(depth: number): void {
    if (depth > DEEPEST) this.#fail(`at most ${DEEPEST} levels`);
    const first = this.#next();
    if (first === '{') this.#object(depth);
    else if (first === '[') this.#list(depth);
    else if (first === '"') this.#string();
    else if (!this.#take(WORD)) this.#number();
  }

  #object(depth: number): void {
    this.#at += 1;
    if (this.#is('}')) return;
    const names = new Set<string>();
    do {
      this.#next();
      const at = this.#at;
      const name = JSON.parse(this.#string()) as string;
      if (names.has(name)) this.twice ??= { name, at };
      else if (depth === 0) this.members.set(name, at);
      names.add(name);
      if (!this.#is(':')) this.#fail('a colon');
      this.#value(depth + 1);
    } while (this.#is(','));
    if (!this.#is('}')) this.#fail('a comma or }');
  }

  #list(depth: number): void {
    this.#at += 1;
    if (this.#is(']')) return;
    do this.#value(depth + 1);
    while (this.#is(','));
    if (!this.#is(']')) this.#fail('a comma or ]');
  }

  /** Reads a string, and returns it with its quotes. */
  #string(): string {
    const from = this.#at;
    if (this.#text[from] !== '"') this.#fail('a text in double quotes');
    this.#at += 1;
    do this.#take(PLAIN);
    while (this.#take(ESCAPES) !== undefined);
    if (this.#text[this.#at] !== '"')
      this.#fail(this.#at < this.#text.length ? 'an escape, as \\n is one' : 'a closing "');
    this.#at += 1;
    return this.#text.slice(from, this.#at);
  }

  #number(): void {
    const token = this.#take(NUMBER);
    if (token === undefined) this.#fail('a value');
    else if (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))) {
      this.twisted.push({ token, at: this.#at - token.length });
    }
  }

  /** The next character that is not a space. */
  #next(): string | undefined {
    this.#take(SPACE);
    return this.#text[this.#at];
  }

  #is(sign: string): boolean {
    if (this.#next() !== sign) return false;
    this.#at += 1;
    return true;
  }

  #take(form: RegExp): string | undefined {
    form.lastIndex = this.#at;
    const found = form.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #fail(expected: string): never {
    throw new Wrong(this.#at, expected);
  }
}
