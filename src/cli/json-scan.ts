/** What `JSON.parse` does not tell of a text: where it stops being JSON, where its members stand, and which numbers it would twist. */
export interface Scan {
  /** Where the names of the outermost object's members stand, counted from 0. */
  readonly members: ReadonlyMap<string, number>;
  /** Whole numbers that JavaScript cannot hold: it would make others of them. */
  readonly twisted: readonly { readonly token: string; readonly at: number }[];
  /** Where it is no JSON, and what should stand there. */
  readonly wrong?: { readonly at: number; readonly expected: string };
}

/** Deeper than anything that is taken. */
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
  return { members, twisted };
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
    else if (!this.#take(/true|false|null/y)) this.#number();
  }

  #object(depth: number): void {
    this.#at += 1;
    if (this.#is('}')) return;
    do {
      this.#next();
      const at = this.#at;
      const name = this.#string();
      if (depth === 0) this.members.set(name, at);
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

  #string(): string {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON has none in its strings
    const inside = this.#take(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*/y);
    if (inside === undefined) return this.#fail('a text in double quotes');
    if (this.#text[this.#at] !== '"')
      this.#fail(this.#at < this.#text.length ? 'an escape, as \\n is one' : 'a closing "');
    this.#at += 1;
    return JSON.parse(`${inside}"`) as string;
  }

  #number(): void {
    const token = this.#take(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (token === undefined) this.#fail('a value');
    else if (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))) {
      this.twisted.push({ token, at: this.#at - token.length });
    }
  }

  /** The next character that is no space. */
  #next(): string | undefined {
    this.#take(/[ \t\r\n]*/y);
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
