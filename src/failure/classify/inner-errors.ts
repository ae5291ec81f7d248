import type { InnerError } from '../outcome.ts';
import { clean, describe } from './describe.ts';
import { withoutSecrets } from './secrets.ts';
import { framesOf } from './stack.ts';
import { type Node, outermostFirst } from './tree.ts';

const MOST = 10;
const LONGEST_MESSAGE = 1_024;
const LONGEST_FRAMES = 1_024;

/** How many characters of all inner errors are kept. Those after it are left out. */
const LONGEST = 6_144;

/** What a thrown value wraps: its causes and the members of an AggregateError, the outermost first. Undefined if it wraps none. */
export function innerErrors(tree: Node): readonly InnerError[] | undefined {
  if (tree.causes.length + tree.together.length === 0) return undefined;
  const found: InnerError[] = [];
  let length = 0;
  for (const { fields, path } of outermostFirst(tree)) {
    if (found.length >= MOST || length > LONGEST) break;
    // Objects in fields such as `detail` need not be errors.
    if (path === '' || (fields.message === '' && fields.text('stack') === undefined)) continue;
    const { name, message } = describe(fields.value);
    const { code } = fields;
    const stack = framesOf(fields.value, LONGEST_FRAMES);
    const inner = {
      path: path.slice(0, -1),
      name: withoutSecrets(name),
      message: withoutSecrets(clean(message, LONGEST_MESSAGE)),
      ...((typeof code === 'string' || typeof code === 'number') && { code: withoutSecrets(clean(`${code}`, 128)) }),
      ...(stack !== undefined && { stack }),
    };
    found.push(inner);
    length += inner.message.length + (stack?.length ?? 0);
  }
  return found.length === 0 ? undefined : found;
}
