import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Pair,
  parseDocument,
  type Node as YamlNode,
} from 'yaml';
import type { Located, Problems } from './problems.ts';

/** A value of a configuration and its place. */
export type Node = ScalarNode | ListNode | MapNode;

interface ScalarNode extends Located {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
}

interface ListNode extends Located {
  readonly kind: 'list';
  readonly items: readonly Node[];
}

export interface MapNode extends Located {
  readonly kind: 'map';
  readonly entries: readonly Entry[];
}

export interface Entry {
  readonly name: string;
  /** The key. */
  readonly at: Located;
  readonly value: Node;
}

/*
 * A mistake in a file must not break the process that reads it. The parser is recursive, and slow for some inputs, so its input is
 * limited first.
 */
const LONGEST_FILE = 256 * 1_024;
const MOST_TOKENS = 60_000;
const DEEPEST_FLOW = 24;
const WIDEST_INDENT = 120;
const MOST_INDICATORS_A_LINE = 24;
/** After its aliases were followed. */
const MOST_VALUES = 20_000;
const MOST_SYNTAX_ERRORS = 10;

/** Reads YAML 1.2, which includes JSON. Undefined if the text is not a map; `problems` says why. Never throws. */
export function readSource(text: string, problems: Problems): MapNode | undefined {
  const start: Located = { path: [], line: 1, column: 1, source: '' };
  const objection = tooMuch(text);
  if (objection !== undefined) {
    problems.refuse(start, objection);
    return undefined;
  }
  const lines = new LineCounter();
  // Duplicate keys are checked here, because the parser needs quadratic time for it.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false, version: '1.2' });
  for (const { message, pos, code } of [...document.errors, ...document.warnings].slice(0, MOST_SYNTAX_ERRORS)) {
    const { line, col } = lines.linePos(pos[0]);
    const at = { path: [], line: Math.max(line, 1), column: Math.max(col, 1), source: text.slice(pos[0], pos[1]) };
    problems.refuse(at, ...inOurWords(code, message));
  }
  if (problems.refused) return undefined;
  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) {
    problems.refuse(start, 'The file is empty.', 'If this is intended, write `version: 1`.');
    return undefined;
  }
  const node = new Conversion(text, lines, problems).convert(root as YamlNode, []);
  if (problems.refused || node === undefined) return undefined;
  if (node.kind === 'map') return node;
  problems.refuse(node, `A configuration is a map of names, such as \`types:\`, not ${KINDS[node.kind]}.`);
  return undefined;
}

export const KINDS = { scalar: 'a single value', list: 'a list', map: 'a map' } as const;

function tooMuch(text: string): string | undefined {
  if (text.length > LONGEST_FILE) return `The file has ${text.length} characters; at most ${LONGEST_FILE} are allowed.`;
  let [tokens, flow, indicators] = [0, 0, 0];
  for (const token of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > MOST_TOKENS) return `The file has more than ${MOST_TOKENS} parts.`;
    if (token === '[' || token === '{') flow += 1;
    else if (token === ']' || token === '}') flow -= 1;
    else if (token === '-' || token === '?' || token === ':') indicators += 1;
    else if (token === '\n' || token === '\r\n') indicators = flow === 0 ? 0 : indicators;
    const indent = /^[ \t]+$/.test(token) ? token.length : 0;
    // Inside of brackets there may be any number of colons; the depth of brackets is limited.
    if (flow > DEEPEST_FLOW || indent > WIDEST_INDENT || (flow === 0 && indicators > MOST_INDICATORS_A_LINE)) {
      return 'The file is nested too deeply.';
    }
    if (flow > 0) indicators = 0;
  }
  return undefined;
}

function inOurWords(code: string, message: string): [message: string, suggestion?: string] {
  switch (code) {
    case 'MULTIPLE_DOCS':
      return ['A configuration is one document, and `---` begins a second one.', 'Remove it.'];
    case 'TAB_AS_INDENT':
      return ['A line is indented with a tab, but YAML allows only spaces there.', 'Replace it with spaces.'];
    case 'TAG_RESOLVE_FAILED':
      return [`${message}. A configuration is plain data, without tags.`, 'Remove the tag.'];
    default:
      return [`${message}.`.replace(/\.\.$/, '.')];
  }
}

/** Turns the parser's tree into ours, and follows aliases. */
class Conversion {
  readonly #text: string;
  readonly #lines: LineCounter;
  readonly #problems: Problems;
  readonly #anchors = new Map<string, YamlNode>();
  /** Anchors whose end is not reached yet: an alias inside of one would never end. */
  readonly #open = new Set<YamlNode>();
  #values = 0;

  constructor(text: string, lines: LineCounter, problems: Problems) {
    this.#text = text;
    this.#lines = lines;
    this.#problems = problems;
  }

  /** Undefined if something was refused. */
  convert(node: YamlNode | null, path: readonly string[], key?: Located): Node | undefined {
    // A key without a value has no place of its own.
    if (node === null) return { kind: 'scalar', value: null, ...(key as Located), path, source: '' };
    const at = this.#locate(node, path);
    this.#values += 1;
    if (this.#values > MOST_VALUES) {
      // Reported once: everything that follows is over the limit too.
      if (this.#values === MOST_VALUES + 1) {
        this.#problems.refuse(
          at,
          `With its aliases the file has more than ${MOST_VALUES} values.`,
          'Write fewer `*names`.',
        );
      }
      return undefined;
    }
    if (isAlias(node)) return this.#follow(node.source, at);
    if ('anchor' in node && node.anchor) this.#anchors.set(node.anchor, node);
    this.#open.add(node);
    const converted = this.#inner(node, at);
    this.#open.delete(node);
    return converted;
  }

  #inner(node: YamlNode, at: Located): Node | undefined {
    if (isScalar(node)) {
      const { value } = node;
      const plain = value === null || ['string', 'number', 'boolean'].includes(typeof value);
      return { ...at, kind: 'scalar', value: plain ? (value as ScalarNode['value']) : at.source };
    }
    if (isSeq(node)) {
      const items = node.items.map((item, i) => this.convert(item as YamlNode, [...at.path, String(i)], at));
      return { ...at, kind: 'list', items: items.filter((item) => item !== undefined) };
    }
    if (isMap(node)) return { ...at, kind: 'map', entries: this.#entries(node.items as Pair[], at.path) };
    return undefined;
  }

  #entries(pairs: readonly Pair[], path: readonly string[]): Entry[] {
    const known = new Map<string, Located>();
    return pairs.flatMap(({ key, value }) => {
      const at = this.#locate(key as YamlNode, path);
      if (!isScalar(key) || isAlias(key)) {
        this.#problems.refuse(at, 'A name must be a plain text here.');
        return [];
      }
      const name = typeof key.value === 'string' ? key.value : at.source;
      const named = { ...at, path: [...path, name], source: name };
      const refusal = refusalOfName(name, known.get(name));
      if (refusal) this.#problems.refuse(named, ...refusal);
      known.set(name, named);
      const converted = this.convert(value as YamlNode | null, named.path, named);
      return refusal || converted === undefined ? [] : [{ name, at: named, value: converted }];
    });
  }

  #follow(name: string, at: Located): Node | undefined {
    const target = this.#anchors.get(name);
    if (target && !this.#open.has(target)) return this.convert(target, at.path);
    const why = target
      ? `The alias *${name} is inside of its own anchor, so it would never end.`
      : `Nothing above is named &${name}.`;
    this.#problems.refuse(at, why);
    return undefined;
  }

  #locate(node: YamlNode | null, path: readonly string[]): Located {
    const [from, to] = node?.range ?? [0, 0];
    const { line, col } = this.#lines.linePos(from);
    return { path, line: Math.max(line, 1), column: Math.max(col, 1), source: this.#text.slice(from, to) };
  }
}

function refusalOfName(name: string, first: Located | undefined): [message: string, suggestion?: string] | undefined {
  if (name === '__proto__') return ["'__proto__' is no name that can be configured."];
  if (name === '<<')
    return ['Merge keys (`<<`) are not used here.', 'Name the policy under `policies:`, and write `extends: NAME`.'];
  return first && [`'${name}' is already set in line ${first.line}.`, 'Keep one of them.'];
}
