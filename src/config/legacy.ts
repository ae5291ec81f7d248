import type { Milliseconds } from '../duration.ts';
import { type Backoff, immediate, none } from '../failure/backoff.ts';
import { type Place, placeKey } from '../failure/layers.ts';
import type { ReadOptions, ReadRule } from '../failure/policy-fields.ts';
import { type Problems, quoted } from './problems.ts';
import { membersOf, type RetryBlock } from './retry.ts';
import { decimal, entriesOf, type Fields, field, fields, flag, name, oneOf, type Shape, whole } from './shapes.ts';
import type { Node } from './source.ts';

/*
 * The `retry_policies:` document of connectors, as other programs write it. docs/policies.md lists how its meaning differs here.
 */

const STRATEGIES = ['exponential_backoff', 'linear_backoff', 'fixed_delay', 'immediate', 'no_retry'] as const;

interface Document {
  readonly connector_type: string;
  readonly strategy: (typeof STRATEGIES)[number];
  readonly max_attempts: number;
  readonly base_delay_seconds: number;
  readonly max_delay_seconds: number;
  readonly jitter_factor: number;
  readonly backoff_multiplier: number;
  readonly transient_max_attempts: number | null;
  readonly rate_limit_delay_seconds: number | null;
  readonly permanent_failures_no_retry: boolean;
}

const DEFAULTS = {
  strategy: 'exponential_backoff',
  max_attempts: 3,
  base_delay_seconds: 60,
  max_delay_seconds: 3_600,
  jitter_factor: 0.2,
  backoff_multiplier: 2,
  permanent_failures_no_retry: true,
} as const;

const FIELDS: Fields<Document> = {
  connector_type: field(name(), 'The type again.'),
  strategy: field(oneOf(STRATEGIES), 'How delays grow.', { byDefault: DEFAULTS.strategy }),
  max_attempts: field(whole(1, 10), 'Charged executions, the first included.', { byDefault: DEFAULTS.max_attempts }),
  base_delay_seconds: field(whole(1, 3_600), 'The delay of the first retry.', {
    byDefault: DEFAULTS.base_delay_seconds,
  }),
  max_delay_seconds: field(whole(1, 86_400), 'The longest delay, before jitter.', {
    byDefault: DEFAULTS.max_delay_seconds,
  }),
  jitter_factor: field(decimal(0, 1), '± this part of the delay.', { byDefault: DEFAULTS.jitter_factor }),
  backoff_multiplier: field(decimal(1, 10), 'The factor from one delay to the next.', {
    byDefault: DEFAULTS.backoff_multiplier,
  }),
  transient_max_attempts: field(orNull(whole(1)), 'A separate limit for transient failures.'),
  rate_limit_delay_seconds: field(orNull(whole(1, 86_400)), 'The delay of the first retry after a rate limit.'),
  permanent_failures_no_retry: field(flag(), 'Whether permanent failures end at once.', {
    byDefault: DEFAULTS.permanent_failures_no_retry,
  }),
};

/** One policy of a `retry_policies:` document. Missing values are the defaults of that document. */
export const LEGACY_POLICY: Shape<RetryBlock> = {
  schema: fields('A policy', FIELDS).schema,
  read(node, problems) {
    if (!entriesOf(node, 'A policy', problems)) return undefined;
    const read = fields('A policy of `retry_policies`', FIELDS).read(node, problems);
    if (!read) return undefined;
    const said = { ...DEFAULTS, ...read };
    const type = node.path.at(-1) as string;
    if (said.connector_type !== undefined && said.connector_type !== type) {
      problems.refuse(
        saidAt(node, 'connector_type'),
        `connector_type is ${quoted(said.connector_type)} in the policy of ${quoted(type)}.`,
      );
    }
    if (!fits(node, said, problems)) return undefined;
    return { node, options: optionsFrom(said), extends: { name: 'none', at: node }, places: placesOf(node) };
  },
};

function orNull<T>(shape: Shape<T>): Shape<T | null> {
  return {
    schema: { anyOf: [shape.schema, { type: 'null' }] },
    read: (node, problems) => (node.kind === 'scalar' && node.value === null ? null : shape.read(node, problems)),
  };
}

type Settled = Omit<Document, 'connector_type' | 'transient_max_attempts' | 'rate_limit_delay_seconds'> &
  Partial<Document>;

/** A base delay above the longest delay would make every delay equal, which is a mistake. */
function fits(node: Node, said: Settled, problems: Problems): boolean {
  if (said.strategy === 'immediate' || said.strategy === 'no_retry') return true;
  const most = said.max_delay_seconds;
  const over = (['base_delay_seconds', 'rate_limit_delay_seconds'] as const).filter((each) => (said[each] ?? 0) > most);
  for (const each of over) {
    problems.refuse(
      saidAt(node, each),
      `max_delay_seconds ${most} is below ${each} ${said[each]}: every delay would be ${most} s.`,
      `Raise max_delay_seconds to at least ${said[each]}.`,
    );
  }
  return over.length === 0;
}

function optionsFrom(said: Settled): ReadOptions {
  const { transient_max_attempts: transient, rate_limit_delay_seconds: limited } = said;
  const rules: Record<string, ReadRule> = {};
  if (typeof transient === 'number') rules.transient = { maxAttempts: transient };
  if (typeof limited === 'number') rules.rate_limited = { backoff: backoffFrom(said, limited) };
  return {
    maxAttempts: said.max_attempts,
    backoff: backoffFrom(said, said.base_delay_seconds),
    jitter: said.jitter_factor === 0 ? { kind: 'none' } : { kind: 'proportional', factor: said.jitter_factor },
    permanent: said.permanent_failures_no_retry ? 'stop' : 'retry',
    onExhausted: 'dead',
    rules,
  };
}

function backoffFrom(
  { strategy, max_delay_seconds: most, backoff_multiplier: factor }: Settled,
  seconds: number,
): Backoff {
  const [first, cap]: [Milliseconds, Milliseconds] = [seconds * 1_000, most * 1_000];
  switch (strategy) {
    case 'exponential_backoff':
      return { kind: 'exponential', base: first, factor, cap };
    case 'linear_backoff':
      return { kind: 'linear', step: first, cap };
    case 'fixed_delay':
      return { kind: 'fixed', delay: first };
    case 'immediate':
      return immediate;
    case 'no_retry':
      return none;
  }
}

const SAID_BY: readonly (readonly [path: readonly string[], key: keyof Document])[] = [
  [['maxAttempts'], 'max_attempts'],
  [['backoff'], 'base_delay_seconds'],
  [['jitter'], 'jitter_factor'],
  [['permanent'], 'permanent_failures_no_retry'],
  [['rules', 'transient'], 'transient_max_attempts'],
  [['rules', 'rate_limited'], 'rate_limit_delay_seconds'],
];

function placesOf(node: Node): ReadonlyMap<string, Place> {
  return new Map(
    SAID_BY.flatMap(([path, key]) => {
      const entry = membersOf(node).find((each) => each.name === key);
      return entry ? [[placeKey(path), entry.at] as const] : [];
    }),
  );
}

function saidAt(node: Node, key: keyof Document): Node {
  return membersOf(node).find((each) => each.name === key)?.value ?? node;
}
