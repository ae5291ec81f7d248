import { isFamily, isReason } from '../failure/outcome.ts';
import { REMOVABLE_STATES } from '../retention.ts';
import { isOver, TASK_STATES } from '../task.ts';
import type { KeepForInput, RetentionOptions } from '../worker/retention-options.ts';
import { type Located, type Problems, quoted } from './problems.ts';
import { entriesOf, field, fields, type Shape, spanOption } from './shapes.ts';
import type { Node } from './source.ts';

/** The retention of one state in a file, and the places of its reasons. */
interface StateBlock {
  readonly keep: Readonly<Record<string, KeepForInput>>;
  readonly reasons: readonly { readonly name: string; readonly at: Located }[];
}

export type RetentionBlock = Partial<Record<(typeof REMOVABLE_STATES)[number], StateBlock>>;

const time = spanOption();

/** How long tasks are kept, or `never`. */
const KEEP: Shape<KeepForInput> = {
  schema: { anyOf: [{ const: 'never' }, time.schema] },
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : undefined;
    if (value === 'never') return 'never';
    const forever = value === null || value === false || ['none', 'forever', 'always', 'off'].includes(String(value));
    if (!forever) return time.read(node, problems);
    problems.refuse(node, 'It must be a time such as 30d, or never.', 'Write never to keep the tasks.');
    return undefined;
  },
};

const ONE_TIME: Shape<StateBlock> = {
  schema: KEEP.schema,
  read(node, problems) {
    if (node.kind === 'map') {
      problems.refuse(
        node,
        'Succeeded tasks have no reason, so they have one time.',
        'Write, for example, succeeded: 7d.',
      );
      return undefined;
    }
    return plain(node, problems);
  },
};

const BY_REASON: Shape<StateBlock> = {
  schema: {
    anyOf: [
      KEEP.schema,
      {
        type: 'object',
        additionalProperties: KEEP.schema,
        propertyNames: { type: 'string', minLength: 1, maxLength: 255 },
      },
    ],
  },
  read(node, problems) {
    if (node.kind !== 'map') return plain(node, problems);
    const keep: Record<string, KeepForInput> = {};
    const reasons: { name: string; at: Located }[] = [];
    for (const { name, at, value } of entriesOf(node, 'A state', problems) ?? []) {
      const read = KEEP.read(value, problems);
      if (!isReason(name) && !isFamily(name)) {
        problems.refuse(at, `A time is for a reason (fs.locked), a family (fs.*) or default, got ${quoted(name)}.`);
      } else if (read !== undefined) {
        keep[name] = read;
        if (name !== 'default') reasons.push({ name, at });
      }
    }
    return { keep, reasons };
  },
};

function plain(node: Node, problems: Problems): StateBlock | undefined {
  const read = KEEP.read(node, problems);
  return read === undefined ? undefined : { keep: { default: read }, reasons: [] };
}

const OTHERWISE_CALLED = Object.fromEntries([
  ...['completed', 'complete', 'done', 'success'].map((name) => [name, "Did you mean 'succeeded'?"]),
  ...['failed', 'abandoned', 'discarded', 'quarantined'].map((name) => [name, "Did you mean 'dead'?"]),
  ['default', `Each state has its own time: ${REMOVABLE_STATES.join(', ')}.`],
  ...TASK_STATES.filter((state) => !isOver(state)).map((state) => [
    state,
    'Tasks that have not ended are never removed. Cancel them first.',
  ]),
]);

/** When ended tasks are removed. */
export const RETENTION: Shape<RetentionBlock> = fields<Required<RetentionBlock>>(
  '`retention`',
  {
    succeeded: field(ONE_TIME, 'Succeeded tasks.', { byDefault: '30d' }),
    dead: field(BY_REASON, 'Tasks that their policy ended: one time, or times by reason, family and default.', {
      byDefault: '30d',
    }),
    cancelled: field(BY_REASON, 'Tasks that were cancelled, or superseded by another task with the same unique key.', {
      byDefault: '30d',
    }),
    needs_manual: field(
      BY_REASON,
      'Tasks that wait for a person. They have not ended; set a time only if nobody will answer.',
      {
        byDefault: 'never',
      },
    ),
  },
  { instead: OTHERWISE_CALLED },
);

/** The same in the form of code. */
export function retentionOptions(block: RetentionBlock): RetentionOptions {
  const { succeeded, ...others } = block;
  return {
    ...(succeeded?.keep.default !== undefined && { succeeded: succeeded.keep.default }),
    ...Object.fromEntries(Object.entries(others).map(([state, { keep }]) => [state, keep])),
  };
}
