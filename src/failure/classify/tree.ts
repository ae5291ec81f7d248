import { ErrorFields } from './error-fields.ts';
import { isList, read, readNumber } from './inspect.ts';

/** The thrown value or an error inside it, and what it wraps. */
export interface Node {
  readonly fields: ErrorFields;
  /** Its path, such as `cause.` or `errors.0.`. Empty for the thrown value itself. */
  readonly path: string;
  /** Its causes, from `cause` and the other fields in which libraries keep one. */
  readonly causes: readonly Node[];
  /** Errors that happened together. */
  readonly together: readonly Node[];
}

const DEEPEST = 10;
const MOST_ERRORS = 100;
const MOST_TOGETHER = 32;

/** Fields in which libraries keep the wrapped error. */
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
 * The thrown value and everything that it wraps: `cause`, the `errors` of an AggregateError, and the fields that libraries use
 * instead. Each object appears once. There are at most ten levels and a hundred errors, even if getters make new ones.
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
  const fields = new ErrorFields(value);
  if (typeof value !== 'object' || value === null || level >= DEEPEST)
    return { fields, path, causes: NONE, together: NONE };
  const causes: Node[] = [];
  const cause = fields.get('cause');
  if (isWorthReading(cause, true)) add(causes, cause, `${path}cause.`, level, walk);
  for (const name of WRAPPED) {
    const inner = fields.get(name);
    if (inner !== undefined && isWorthReading(inner, false)) add(causes, inner, `${path}${name}.`, level, walk);
  }
  // A thrown array contains errors that happened together, like the `errors` of an AggregateError.
  const errors = isList(value) ? value : fields.get('errors');
  return {
    fields,
    path,
    causes,
    together: errors === undefined ? NONE : listed(errors, `${path}errors.`, level, walk),
  };
}

function add(to: Node[], value: unknown, path: string, level: number, walk: Walk): void {
  if (walk.left <= 0 || walk.met.has(value)) return;
  walk.met.add(value);
  walk.left -= 1;
  to.push(grow(value, path, level + 1, walk));
}

/** `cause` may be a string. In other fields, only objects count as errors. */
function isWorthReading(value: unknown, isCause: boolean): boolean {
  return typeof value === 'string' ? isCause && value !== '' : typeof value === 'object' && value !== null;
}

/** The first elements of an array, read by index, because a Proxy or an own iterator may be endless. */
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

/** All errors, level by level, the outermost first. */
export function* outermostFirst(root: Node): Generator<Node> {
  for (let level: readonly Node[] = [root]; level.length > 0; ) {
    yield* level;
    level = level.flatMap(({ causes, together }) =>
      causes.length + together.length === 0 ? NONE : [...causes, ...together],
    );
  }
}
