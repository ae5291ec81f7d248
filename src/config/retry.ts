import { formatDuration, type Milliseconds } from '../duration.ts';
import { type Backoff, type BackoffChange, custom, immediate, none } from '../failure/backoff.ts';
import { JITTER_WORDS, type Jitter, partOf } from '../failure/jitter.ts';
import { type Place, placeKey } from '../failure/layers.ts';
import { OTHERWISE_CALLED } from '../failure/otherwise-called.ts';
import {
  type Shape as OptionShape,
  POLICY_FIELDS,
  type Field as PolicyField,
  type ReadOptions,
  type ReadRule,
  RULE_FIELDS,
} from '../failure/policy-fields.ts';
import { PRESET_NAMES } from '../failure/presets.ts';
import type { Writable } from '../writable.ts';
import { meant } from './nearest-name.ts';
import { optionData } from './print.ts';
import { type Located, type Problems, quoted } from './problems.ts';
import {
  decimal,
  field,
  fields,
  flag,
  type JsonSchema,
  listOf,
  name,
  oneOf,
  orNone,
  record,
  type Shape,
  shown,
  span,
  whole,
} from './shapes.ts';
import type { Entry, MapNode, Node } from './source.ts';

/** Functions that a configuration may call by their names. */
export type Backoffs = Readonly<Record<string, (retry: number) => Milliseconds>>;

/** What one place in a file says of a policy. */
export interface RetryBlock {
  readonly node: Node;
  readonly options: ReadOptions;
  readonly extends?: { readonly name: string; readonly at: Located };
  readonly places: ReadonlyMap<string, Place>;
}

const HOUR = 3_600_000;

interface Growth {
  readonly base: Milliseconds;
  readonly factor: number;
  readonly cap: Milliseconds;
}

const CAP = field(span(), 'The longest delay, before jitter. At least as long as the first one.', { byDefault: '1h' });

const EXPONENTIAL = fields<Growth>(
  'exponential',
  {
    base: field(span(), 'The delay of the first retry.', { examples: ['5s', '2m'] }),
    factor: field(decimal(1), 'By how much each delay is longer than the one before.', { byDefault: 2 }),
    cap: CAP,
  },
  { instead: OTHERWISE_CALLED.backoff },
);

const LINEAR = fields<{ step: Milliseconds; cap: Milliseconds }>(
  'linear',
  {
    step: field(span(), 'What the first retry waits, and by how much each delay is longer than the one before.'),
    cap: CAP,
  },
  { instead: OTHERWISE_CALLED.backoff },
);

/** Only what changes of the backoff of the less specific level. */
const CHANGE = fields<Omit<BackoffChange, 'kind'>>('backoff', {
  base: field(span(), 'The delay of the first retry; factor and cap stay as they are.'),
  factor: field(decimal(1), 'By how much each delay is longer than the one before; base and cap stay as they are.'),
  step: field(span(), 'As `step` of linear; cap stays as it is.'),
  cap: field(span(), 'The longest delay; the other options stay as they are.'),
});
const CHANGE_OPTIONS = ['base', 'factor', 'step', 'cap'];

const BACKOFF_KINDS = ['exponential', 'linear', 'fixed', 'schedule', 'custom'] as const;
const BACKOFF_WORDS = { immediate, none } as const;

/** Such as `{ exponential: { base: 5s, cap: 1h } }`, `{ schedule: [5m, 15m] }` or `none`. */
function backoffShape(backoffs: Backoffs): Shape<Backoff | BackoffChange> {
  return {
    schema: reference('backoff'),
    read(node, problems) {
      if (node.kind === 'scalar' && Object.hasOwn(BACKOFF_WORDS, String(node.value))) {
        return BACKOFF_WORDS[node.value as keyof typeof BACKOFF_WORDS];
      }
      const entries = membersOf(node);
      if (entries.length > 0 && entries.every(({ name }) => CHANGE_OPTIONS.includes(name))) {
        return readChange(node, problems);
      }
      const [entry, second] = entries;
      if (entry?.name === 'delay' && !second) return readBackoff({ ...entry, name: 'fixed' }, backoffs, problems);
      if (!entry || second || !BACKOFF_KINDS.includes(entry.name as never)) {
        refuseBackoff(node, problems);
        return undefined;
      }
      return readBackoff(entry, backoffs, problems);
    },
  };
}

function backoffSchema(): JsonSchema {
  const one = (kind: string, schema: JsonSchema, description: string) => ({
    type: 'object',
    additionalProperties: false,
    required: [kind],
    properties: { [kind]: { ...schema, description } },
  });
  return {
    anyOf: [
      one(
        'exponential',
        { ...EXPONENTIAL.schema, required: ['base'] },
        'Retry k waits base × factor^(k−1), at most cap.',
      ),
      one('linear', { ...LINEAR.schema, required: ['step'] }, 'Retry k waits step × k, at most cap.'),
      { ...CHANGE.schema, minProperties: 1, description: 'Changes only these options of the less specific level.' },
      one('delay', span().schema, 'As `fixed`.'),
      one('fixed', span().schema, 'Every retry waits the same time.'),
      one('schedule', listOf(span(), 1).schema, 'Retry k waits the k-th delay; after the last one, the last repeats.'),
      one('custom', name().schema, 'A function that the program registered under this name.'),
      {
        enum: Object.keys(BACKOFF_WORDS),
        description: '`immediate` retries at once; `none` never retries.',
      },
    ],
  };
}

function readChange(node: Node, problems: Problems): BackoffChange | undefined {
  const { base, factor, step, cap } = CHANGE.read(node, problems) ?? {};
  const change: Writable<BackoffChange> = { kind: 'change' };
  if (step !== undefined && (base ?? factor) !== undefined) {
    problems.refuse(node, 'step is an option of linear, base and factor are options of exponential.', 'Remove one.');
    return undefined;
  }
  const first = base ?? step;
  if (first !== undefined && cap !== undefined) {
    const what = base === undefined ? 'step' : 'base';
    if (!bounded(node, node, what, first, cap, problems)) return undefined;
  }
  if (base !== undefined) change.base = base;
  if (factor !== undefined) change.factor = factor;
  if (step !== undefined) change.step = step;
  if (cap !== undefined) change.cap = cap;
  return change;
}

function readBackoff({ name: kind, at, value }: Entry, backoffs: Backoffs, problems: Problems): Backoff | undefined {
  switch (kind as (typeof BACKOFF_KINDS)[number]) {
    case 'exponential': {
      const { base, factor = 2, cap } = EXPONENTIAL.read(value, problems) ?? {};
      const bounds = bounded(value, at, 'base', base, cap, problems);
      return bounds && { kind: 'exponential', base: bounds.first, factor, cap: bounds.cap };
    }
    case 'linear': {
      const { step, cap } = LINEAR.read(value, problems) ?? {};
      const bounds = bounded(value, at, 'step', step, cap, problems);
      return bounds && { kind: 'linear', step: bounds.first, cap: bounds.cap };
    }
    case 'fixed': {
      const delay = span().read(value, problems);
      return delay === undefined ? undefined : { kind: 'fixed', delay };
    }
    case 'schedule': {
      const delays = listOf(span(), 1).read(value, problems);
      return delays && { kind: 'schedule', delays };
    }
    case 'custom': {
      const called = name().read(value, problems);
      if (called === undefined) return undefined;
      if (Object.hasOwn(backoffs, called)) return custom(called, backoffs[called] as Backoffs[string]);
      const known = Object.keys(backoffs);
      const hint =
        known.length > 0
          ? meant(called, known)
          : `Register it: loadConfig(path, { backoffs: { ${JSON.stringify(called)}: (retry) => … } }).`;
      problems.refuse(value, `No backoff is registered as ${quoted(called)}.`, hint);
      return undefined;
    }
  }
}

/** The first delay and the cap, or undefined if one is missing, was refused, or contradicts the other. */
function bounded(
  node: Node,
  at: Located,
  what: 'base' | 'step',
  first: Milliseconds | undefined,
  cap: Milliseconds | undefined,
  problems: Problems,
) {
  const said = (member: string) =>
    node.kind === 'map' ? node.entries.find((entry) => entry.name === member) : undefined;
  if (first === undefined) {
    if (!said(what) && (node.kind === 'map' || (node.kind === 'scalar' && node.value === null))) {
      problems.refuse(
        at,
        `${at.path.at(-1)} needs ${quoted(what)}, the delay of the first retry.`,
        `Write ${at.path.at(-1)}: { ${what}: 30s }.`,
      );
    }
    return undefined;
  }
  if (cap === undefined) return said('cap') ? undefined : { first, cap: Math.max(HOUR, first) };
  if (cap >= first) return { first, cap };
  problems.refuse(
    said('cap')?.value ?? node,
    `cap ${formatDuration(cap)} is below ${what} ${formatDuration(first)}: every delay would be ${formatDuration(cap)}.`,
    `Raise cap to at least ${formatDuration(first)}, or write fixed: ${formatDuration(cap)}.`,
  );
  return undefined;
}

function refuseBackoff(node: Node, problems: Problems): void {
  const words = [...BACKOFF_KINDS, ...Object.keys(BACKOFF_WORDS)];
  const example =
    'Write { exponential: { base: 5s, cap: 1h } }, { schedule: [5m, 15m] }, { fixed: 30s }, immediate or none.';
  if (node.kind === 'map') {
    const strange = node.entries.find((entry) => !BACKOFF_KINDS.includes(entry.name as never));
    if (strange)
      problems.refuse(
        strange.at,
        `There is no backoff ${quoted(strange.name)}.`,
        meant(strange.name, words, false) ?? example,
      );
    else problems.refuse(node, `A backoff is one of ${words.join(', ')}, got ${node.entries.length}.`, example);
    return;
  }
  const word = node.kind === 'scalar' && typeof node.value === 'string' ? node.value : undefined;
  const like = word === undefined || BACKOFF_KINDS.includes(word as never) ? undefined : meant(word, words, false);
  problems.refuse(node, `A backoff is one of ${words.join(', ')}, got ${shown(node)}.`, like ?? example);
}

/** Such as `full`, `0.2` or `20%`. */
const JITTER: Shape<Jitter> = {
  schema: {
    anyOf: [
      {
        enum: JITTER_WORDS,
        description: '`full`: between 0 and the delay. `equal`: between half of the delay and the delay.',
      },
      { type: 'number', minimum: 0, maximum: 1, description: '± this part of the delay: 0.2 is ±20 %.' },
      { type: 'string', pattern: '^(\\d{1,2}(\\.\\d+)?|100)%$', examples: ['20%'] },
    ],
  },
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : undefined;
    if (JITTER_WORDS.includes(value as never)) return { kind: value as (typeof JITTER_WORDS)[number] };
    const factor = typeof value === 'string' ? partOf(value) : value;
    if (typeof factor === 'number' && factor >= 0 && factor <= 1) return { kind: 'proportional', factor };
    const meantPercent = typeof value === 'number' && value > 1 && value <= 100 ? `Write ${value}%.` : undefined;
    const like = typeof value === 'string' ? meant(value, JITTER_WORDS, false) : undefined;
    problems.refuse(
      node,
      `Jitter is none, full, equal, a part from 0 to 1, or a percentage, got ${shown(node)}.`,
      like ?? meantPercent,
    );
    return undefined;
  },
};

const EXTENDS = field(
  name(),
  'A policy under `policies:`, or a preset such as imap_mailbox, that gives the values which this one leaves out. `none`: no rules of less specific levels are used.',
  { examples: ['imap_mailbox'] },
);

/** The options of a policy or rule, as they are written in a file. */
function optionFields(table: Readonly<Record<string, PolicyField<unknown>>>, backoffs: Backoffs, defaults: boolean) {
  return Object.fromEntries(
    Object.entries(table).map(([name, { shape, says, byDefault, examples }]) => [
      name,
      field(shapeOf(shape, backoffs), says, {
        ...(defaults && shape.kind !== 'rules' && { byDefault: optionData(shape, byDefault) }),
        ...(examples && { examples }),
      }),
    ]),
  );
}

function shapeOf(shape: OptionShape, backoffs: Backoffs): Shape<unknown> {
  switch (shape.kind) {
    case 'whole':
      return whole(shape.least);
    case 'span':
      return span();
    case 'limit':
      return orNone(span(shape.least));
    case 'choice':
      return oneOf(shape.of);
    case 'flag':
      return flag();
    case 'backoff':
      return backoffShape(backoffs);
    case 'jitter':
      return JITTER;
    case 'rules': {
      const instead = {
        ...OTHERWISE_CALLED.policy,
        timeout: 'A time limit applies to all failures: write it next to `rules`.',
      };
      return record(fields('A rule', optionFields(RULE_FIELDS, backoffs, false), { instead }), '`rules`');
    }
    case 'flags':
      return fields(
        '`source`',
        Object.fromEntries(Object.entries(shape.of).map(([flagName, says]) => [flagName, field(flag(), says)])),
      );
  }
}

type RetryOptions = Omit<ReadOptions, 'rules'> & {
  readonly extends?: string;
  readonly rules?: ReadonlyMap<string, ReadRule>;
};

/** The possible values of `retry:`. */
export const RETRY_KEYS: readonly string[] = ['extends', ...Object.keys(POLICY_FIELDS)];

function optionsShape(backoffs: Backoffs): Shape<RetryOptions> {
  const known = { extends: EXTENDS, ...optionFields(POLICY_FIELDS, backoffs, true) };
  return fields('A policy', known, { instead: OTHERWISE_CALLED.policy }) as Shape<RetryOptions>;
}

/** `retry:` or a named policy: options, or only the name of another policy. */
export function retryShape(backoffs: Backoffs = {}): Shape<RetryBlock> {
  const options = optionsShape(backoffs);
  return {
    schema: reference('retry'),
    read(node, problems) {
      if (node.kind === 'scalar' && node.value === 'none') {
        problems.refuse(
          node,
          'It could mean no retry, or a policy without rules.',
          'For one attempt and no more, write { maxAttempts: 1 }.',
        );
        return undefined;
      }
      if (node.kind === 'scalar' && typeof node.value === 'string') {
        return { node, options: {}, extends: { name: node.value, at: node }, places: new Map() };
      }
      const read = options.read(node, problems);
      if (!read) return undefined;
      const { extends: parent, rules, ...plain } = read;
      const at = node.kind === 'map' ? node.entries.find((entry) => entry.name === 'extends')?.value : undefined;
      return {
        node,
        options: { ...plain, ...(rules && { rules: Object.fromEntries(rules) }) },
        ...(parent !== undefined && at && { extends: { name: parent, at } }),
        places: placesIn(node),
      };
    },
  };
}

/** The named parts of the JSON Schema. */
export function definitions(): JsonSchema {
  const byName = { type: 'string', description: 'The name of a policy or preset.', examples: PRESET_NAMES };
  return { retry: { anyOf: [optionsShape({}).schema, byName] }, backoff: backoffSchema() };
}

function reference(name: 'retry' | 'backoff'): JsonSchema {
  // Beside a bare $ref, draft 7 ignores everything else.
  return { allOf: [{ $ref: `#/definitions/${name}` }] };
}

/** The place of each value of a policy: its members, its rules, and their members. */
function placesIn(node: Node): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  for (const entry of membersOf(node)) {
    places.set(placeKey([entry.name]), entry.at);
    if (entry.name !== 'rules') continue;
    for (const rule of membersOf(entry.value)) {
      places.set(placeKey(['rules', rule.name]), rule.at);
      for (const member of membersOf(rule.value)) places.set(placeKey(['rules', rule.name, member.name]), member.at);
    }
  }
  return places;
}

export function membersOf(node: Node): MapNode['entries'] {
  return node.kind === 'map' ? node.entries : [];
}
