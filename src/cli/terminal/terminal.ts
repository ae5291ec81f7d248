import { inAscii, type ShownState, type Style, shownState, signOf } from '../../views/glyphs.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { visibleJson, visibleOutput } from '../../views/visible.ts';
import type { GlobalFlags } from '../flags/global-flags.ts';
import { type Cell, type Column, table } from './table.ts';

const SGR: Readonly<Record<Style, string>> = {
  ok: '32',
  active: '36',
  idle: '2',
  waiting: '33',
  human: '35',
  dead: '31',
  strong: '1',
};

type Environment = Readonly<Record<string, string | undefined>>;

/** The part of a stream that we use. */
export interface Sink {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(chunk: string | Uint8Array, done?: (error?: Error | null) => void): unknown;
}

/** One of stdout and stderr, and how it may be written to. */
export class Channel {
  readonly isTerminal: boolean;
  readonly #sink: Sink;
  readonly #colour: boolean;
  readonly #ascii: boolean;
  readonly #environment: Environment;
  /** Whether the last thing written was a whole line. */
  atLineStart = true;

  constructor(sink: Sink, environment: Environment, options: { colour: boolean | undefined; ascii: boolean }) {
    this.#sink = sink;
    this.#environment = environment;
    this.isTerminal = sink.isTTY === true;
    this.#colour = options.colour ?? wantsColour(this.isTerminal, environment);
    this.#ascii = options.ascii;
  }

  /** Columns that a table may use. Unlimited if the output is no terminal. */
  get columns(): number {
    if (!this.isTerminal) return Number.POSITIVE_INFINITY;
    const given = Number(this.#environment.COLUMNS);
    // A terminal that does not know its size says 0.
    return Number.isInteger(given) && given > 0 ? given : this.#sink.columns || 80;
  }

  /** Writes one line. Text of a task must have been made visible before. */
  line(text = ''): void {
    this.raw(`${this.inLocale(text)}\n`);
  }

  /** The text with our own signs in ASCII, if the locale needs that. */
  inLocale(text: string): string {
    return this.#ascii ? inAscii(text) : text;
  }

  /** Writes a text unchanged: JSON, and the output of a command that runs in the foreground. */
  raw(chunk: string | Uint8Array): void {
    if (chunk.length === 0) return;
    this.atLineStart = typeof chunk === 'string' ? chunk.endsWith('\n') : chunk.at(-1) === 10;
    this.#sink.write(chunk);
  }

  /** As `raw`, and waits until the reader has taken it; false if nobody reads any more. */
  taken(chunk: Uint8Array): Promise<boolean> {
    this.atLineStart = chunk.at(-1) === 10;
    return new Promise((resolve) => this.#sink.write(chunk, (error) => resolve(!error)));
  }

  /** Writes the output of a task, unchanged unless this is a terminal: then control characters are spelled out. */
  printed(text: string): void {
    this.raw(this.isTerminal ? visibleOutput(text, this.#colour) : text);
  }

  paint(style: Style, text: string): string {
    return this.#colour ? `\u001b[${SGR[style]}m${text}\u001b[0m` : text;
  }

  /** The glyph of a state, or of a task's, in its colour. */
  glyph(of: ShownState | Parameters<typeof shownState>[0]): string {
    const { text, style } = signOf(typeof of === 'string' ? of : shownState(of));
    return this.paint(style, text);
  }
}

/** The part of a process that a terminal uses. */
export interface ProcessStreams {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: { readonly isTTY?: boolean };
  readonly env: Environment;
  readonly platform: NodeJS.Platform;
}

/** Where a command writes: its result to `out`, everything else to `err`. */
export class Terminal {
  readonly out: Channel;
  readonly err: Channel;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly verbose: number;
  /** Whether a person is there to be asked. */
  readonly mayAsk: boolean;

  constructor({ stdout, stderr, stdin, env, platform }: ProcessStreams, flags: GlobalFlags) {
    const { json = false, quiet = false, verbose = 0, color = true, input = true } = flags;
    const how = { colour: color ? undefined : false, ascii: !speaksUtf8(env, platform) };
    this.out = new Channel(stdout, env, how);
    this.err = new Channel(stderr, env, how);
    this.json = json;
    this.quiet = quiet;
    this.verbose = verbose;
    this.mayAsk = input && !json && stdin.isTTY === true && stderr.isTTY === true;
  }

  /** A line of the result. */
  result(text: string): void {
    this.out.line(text);
  }

  /** The result as a table, as wide as the terminal at most. Without rows a note says `none`. */
  table(columns: readonly Column[], rows: readonly (readonly Cell[])[], none?: string): void {
    if (rows.length > 0) for (const line of table(columns, rows, this.out)) this.result(line);
    else if (none !== undefined) this.note(none);
  }

  /** The result of a command: its document with --json, else what `print` writes. */
  answer(name: string, content: object, print: () => void): void {
    if (this.json) this.document(documentOf(name, content));
    else print();
  }

  /** Progress or a hint: on stderr, and off with --quiet. */
  note(text: string): void {
    if (this.quiet) return;
    this.#finishLine();
    this.err.line(text);
  }

  /** A line on stderr that is written with --quiet too. */
  warn(text: string): void {
    this.#finishLine();
    this.err.line(text);
  }

  /** The one document of a command that was called with --json. */
  document(value: object): void {
    this.out.raw(`${visibleJson(value)}\n`);
  }

  /** If a command did not end its last line, ours must not continue it on the same terminal. */
  #finishLine(): void {
    const shared = this.out.isTerminal && this.err.isTerminal;
    if (this.err.atLineStart && (!shared || this.out.atLineStart)) return;
    this.err.raw('\n');
    this.out.atLineStart = true;
  }
}

/** https://no-color.org, https://force-color.org and https://bixense.com/clicolors, in this order. */
export function wantsColour(isTerminal: boolean, environment: Environment): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM, CLICOLOR } = environment;
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return isTerminal && TERM !== 'dumb' && CLICOLOR !== '0';
}

/** By the locale. If none is set it is `C`, which is ASCII only, except on Windows and macOS. */
export function speaksUtf8(environment: Environment, platform: NodeJS.Platform): boolean {
  const locale = [environment.LC_ALL, environment.LC_CTYPE, environment.LANG].find((value) => value);
  if (locale === undefined) return platform === 'win32' || platform === 'darwin';
  return /utf-?8/i.test(locale);
}
