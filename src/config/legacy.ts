import type { Milliseconds } from '../duration.ts';
import { type Backoff, immediate, none } from '../failure/backoff.ts';
import { type Place, placeKey } from '../failure/layers.ts';
import type { ReadOptions, ReadRule } from '../failure/policy-fields.ts';
import { PRESET_NAMES } from '../failure/presets.ts';
import { likeName } from '../nearest.ts';
import { type MaxAttemptsCounts, recounted } from './max-attempts-counts.ts';
import { type Problems, quoted } from './problems.ts';
import { membersOf, type RetryBlock } from './retry.ts';
import { decimal, entriesOf, type Fields, field, fields, flag, name, oneOf, type Shape, whole } from './shapes.ts';
import type { MapNode, Node } from './source.ts';

/*
 * The `retry_policies:` document of connectors, as other programs write it. docs/guides/policies.md lists how its meaning differs here.
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
  max_attempts: field(
    whole(1, 10),
    'What `max_attempts_counts` says: charged executions, the first included, or the retries after it.',
    {
      byDefault: DEFAULTS.max_attempts,
    },
  ),
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

/** The document of a file. */
export interface Connectors {
  readonly counts: MaxAttemptsCounts;
  /** By connector. */
  readonly listed: ReadonlyMap<string, RetryBlock>;
  /** For connectors that are not listed. */
  readonly others?: RetryBlock;
}

/** The names under which a document has a policy for connectors that it does not list. */
const OTHERS = ['default', 'fallback'];

/** Reads the document as `max_attempts_counts` says, and warns of what it may have meant otherwise. */
export function connectorsOf(
  root: MapNode,
  policies: ReadonlyMap<string, RetryBlock> | undefined,
  said: MaxAttemptsCounts | undefined,
  problems: Problems,
): Connectors | undefined {
  const at = (name: string) => membersOf(root).find((each) => each.name === name)?.at ?? root;
  if (!policies) {
    const what = 'max_attempts_counts has no effect: it is about `retry_policies`, and this file has none.';
    if (said) problems.warn(at('max_attempts_counts'), what);
    return undefined;
  }
  const retried = [...policies.values()].find(({ options }) => options.backoff !== none);
  const example = retried?.options.maxAttempts;
  if (said === undefined && example !== undefined && !problems.refused) {
    const what = `max_attempts is read as executions: ${example} is one attempt and ${example - 1} retries. The programs that this format comes from count retries: ${example + 1} executions.`;
    problems.warn(at('retry_policies'), what, 'Say which: max_attempts_counts: retries, or executions.');
  }
  const [others, second] = OTHERS.filter((name) => policies.has(name));
  if (others !== undefined && second !== undefined) {
    const twice = policies.get(second)?.node ?? root;
    problems.refuse(twice, `${quoted(others)} and ${quoted(second)} mean the same here.`, 'Remove one of them.');
  }
  const by = said === 'retries' ? 1 : 0;
  const read = new Map([...policies].map(([name, block]) => [name, counting(block, by)] as const));
  const generic = others === undefined ? undefined : read.get(others);
  for (const name of OTHERS) read.delete(name);
  for (const [name, { node }] of read) warnOfMisspelling(name, node, policies, problems);
  return { counts: said ?? 'executions', listed: read, ...(generic && { others: generic }) };
}

function counting(block: RetryBlock, by: number): RetryBlock {
  return { ...block, options: recounted(block.options, by) };
}

function warnOfMisspelling(name: string, node: Node, listed: ReadonlyMap<string, unknown>, problems: Problems): void {
  if (PRESET_NAMES.includes(name)) return;
  const like = likeName(
    name,
    PRESET_NAMES.filter((each) => !listed.has(each)),
  );
  if (like !== undefined) {
    problems.warn(
      node,
      `Tasks of the type '${like}' do not get the policy of ${quoted(name)}.`,
      `Did you mean '${like}'?`,
    );
  }
}

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
    source: { gate: false, breaker: false, budget: false },
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
