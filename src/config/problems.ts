import type { ConfigProblem } from '../errors.ts';

/** Something in a configuration that a problem can be about. */
export interface Located {
  readonly path: readonly string[];
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  /** As it is written there. */
  readonly source: string;
}

const MOST_PROBLEMS = 100;
const LONGEST_VALUE = 80;

/** What was found wrong so far. Everything is looked at before anything is refused, so that a file is mended in one go. */
export class Problems {
  readonly #found: ConfigProblem[] = [];

  refuse(at: Located, message: string, suggestion?: string | undefined): void {
    this.#add('error', at, message, suggestion);
  }

  warn(at: Located, message: string, suggestion?: string | undefined): void {
    this.#add('warning', at, message, suggestion);
  }

  /** Whether no more problems are reported. Then costly checks are not needed. */
  get full(): boolean {
    return this.#found.length >= MOST_PROBLEMS;
  }

  get refused(): boolean {
    return this.#found.some(({ severity }) => severity === 'error');
  }

  /** In the order of the file; errors before warnings of the same place. */
  get all(): readonly ConfigProblem[] {
    return this.#found.toSorted(
      (a, b) =>
        a.line - b.line || a.column - b.column || Number(a.severity === 'warning') - Number(b.severity === 'warning'),
    );
  }

  #add(severity: ConfigProblem['severity'], at: Located, message: string, suggestion: string | undefined): void {
    const { line, column } = at;
    const known = this.#found.some((each) => each.line === line && each.column === column && each.message === message);
    if (known || this.full) return;
    this.#found.push({
      severity,
      path: pathText(at.path),
      line,
      column,
      value: oneLine(at.source),
      message,
      ...(suggestion !== undefined && { suggestion }),
    });
  }
}

/** `types.order.push` could be two levels or three: a name that is no plain word is quoted. */
function pathText(path: readonly string[]): string {
  return path
    .map((part) => (/^[\w-]+$/.test(part) ? part : JSON.stringify(part)))
    .join('.')
    .slice(0, 400);
}

/** Somebody else's text on one line, without control characters. */
export function oneLine(text: string): string {
  const flat = text
    .slice(0, 400)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: replacing them is the point
    .replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .trim()
    .toWellFormed();
  return flat.length > LONGEST_VALUE ? `${flat.slice(0, LONGEST_VALUE - 1)}…` : flat;
}

/** A name or value of the file in a sentence. */
export function quoted(text: string): string {
  return `'${oneLine(text)}'`;
}
