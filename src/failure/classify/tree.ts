import { isList, read, readNumber } from './inspect.ts';
import { Seen } from './seen.ts';

/** One error of what was thrown, and what it wraps. */
export interface Node {
  readonly seen: Seen;
  /** Where it stands, such as `cause.` or `errors.0.`; empty for what was thrown itself. */
  readonly path: string;
  /** What it wraps as its one cause, under any of the names that libraries have for it. */
  readonly causes: readonly Node[];
  /** Errors that happened beside one another. */
  readonly together: readonly Node[];
}

const DEEPEST = 10;
const MOST_ERRORS = 100;
const MOST_TOGETHER = 32;

/** Where wrappers keep what they wrap. */
const WRAPPED = [
  'original',
  'parent',
  'driverError',
  'originalError',
  'innerError',
  'error',
  'detail',
  'exception',
  'err',
  'lastError',
  'reason',
  'networkError',
  'previous',
] as const;

/**
 * What was thrown and all that it wraps: `cause`, the `errors` of an AggregateError, and the names that libraries have for
 * them. Each object once, at most ten levels and a hundred errors in all, whatever its getters make up.
 */
export function treeOf(thrown: unknown): Node {
  const walk: Walk = { met: new Set([thrown]), left: MOST_ERRORS - 1 };
  return grow(thrown, '', 1, walk);
}

interface Walk {
  readonly met: Set<unknown>;
  left: number;
}

const NONE: readonly Node[] = [];

function grow(value: unknown, path: string, level: number, walk: Walk): Node {
  const seen = new Seen(value);
  if (typeof value !== 'object' || value === null || level >= DEEPEST)
    return { seen, path, causes: NONE, together: NONE };
  const causes: Node[] = [];
  const cause = seen.get('cause');
  if (isWorthReading(cause, true)) add(causes, cause, `${path}cause.`, level, walk);
  for (const name of WRAPPED) {
    const inner = seen.get(name);
    if (inner !== undefined && isWorthReading(inner, false)) add(causes, inner, `${path}${name}.`, level, walk);
  }
  // A list that was thrown is of errors that happened together, as the `errors` of an AggregateError are.
  const errors = isList(value) ? value : seen.get('errors');
  return { seen, path, causes, together: errors === undefined ? NONE : listed(errors, `${path}errors.`, level, walk) };
}

function add(to: Node[], value: unknown, path: string, level: number, walk: Walk): void {
  if (walk.left <= 0 || walk.met.has(value)) return;
  walk.met.add(value);
  walk.left -= 1;
  to.push(grow(value, path, level + 1, walk));
}

/** A cause may be a text; under the other names only objects are errors. */
function isWorthReading(value: unknown, isCause: boolean): boolean {
  return typeof value === 'string' ? isCause && value !== '' : typeof value === 'object' && value !== null;
}

/** The first members of a list, one by one: a Proxy of one, or one with an iterator of its own, may be endless. */
function listed(list: unknown, path: string, level: number, walk: Walk): readonly Node[] {
  if (!isList(list)) return NONE;
  const nodes: Node[] = [];
  const length = Math.min(readNumber(list, 'length') ?? 0, MOST_TOGETHER);
  for (let i = 0; i < length; i++) {
    const member = read(list, i);
    if (isWorthReading(member, false)) add(nodes, member, `${path}${i}.`, level, walk);
  }
  return nodes;
}

/** The errors from the outermost to the innermost, level by level. */
export function* outermostFirst(root: Node): Generator<Node> {
  for (let level: readonly Node[] = [root]; level.length > 0; ) {
    yield* level;
    level = level.flatMap(({ causes, together }) =>
      causes.length + together.length === 0 ? NONE : [...causes, ...together],
    );
  }
}
