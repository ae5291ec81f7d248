import { InvalidConfigError } from '../errors.ts';
import { Problems } from './problems.ts';
import { membersOf } from './retry.ts';
import type { Shape } from './shapes.ts';
import { type Node, readSource } from './source.ts';
import { objectionTo } from './store-name.ts';

/** Where the store is. A refused text is not repeated, because it may contain a password. */
export const STORE: Shape<string> = {
  schema: { type: 'string', minLength: 1 },
  read(node, problems) {
    const at = { ...node, source: '' };
    const text = node.kind === 'scalar' && typeof node.value === 'string' ? node.value : undefined;
    if (text === undefined) {
      problems.refuse(at, 'It must be a text: a path, or postgres://user@host/database.');
      return undefined;
    }
    const objection = objectionTo(text);
    if (!objection) return text;
    problems.refuse(
      at,
      `A store ${objection.what}.`,
      `${objection.instead}.`.replace(/^./, (first) => first.toUpperCase()),
    );
    return undefined;
  },
};

/** A line that may name a store, in a file that cannot be read. */
const MAY_NAME_ONE = /(?:^|[{,])\s*["']?store["']?\s*:/m;

/**
 * The store that a configuration names, if any. Mistakes elsewhere in the file do not matter: they must not lead to another store.
 * @throws InvalidConfigError if the file names a store, but it is not clear which.
 */
export function storeNamedIn(text: string, file: string): string | undefined {
  const problems = new Problems();
  const root = readSource(text, problems);
  if (!root && !MAY_NAME_ONE.test(text)) return undefined;
  const named: Node | undefined = root && membersOf(root).find(({ name }) => name === 'store')?.value;
  const store = named && STORE.read(named, problems);
  if (problems.refused) throw new InvalidConfigError(file, problems.all);
  return store;
}
