import type { Milliseconds } from '../duration.ts';
import { InvalidConfigError } from '../errors.ts';
import { outcomeOf } from '../failure/classify/classify.ts';
import { type Facts, STEPS } from '../failure/decide.ts';
import { type Foreseen, failureOf, foresee } from '../failure/foresee.ts';
import { FAILURE_KINDS, FAULTS, type FailureKind, type Fault, type Outcome } from '../failure/outcome.ts';
import { UNTRIED } from '../failure/untried.ts';
import type { Json } from '../task.ts';
import { REASON } from './classify-rules.ts';
import { Problems, quoted } from './problems.ts';
import type { Registry } from './registry.ts';
import { field, fields, flag, listOf, name, oneOf, record, type Shape, span, whole } from './shapes.ts';
import { type Node, readSource } from './source.ts';

/*
 * Examples of a policy: an error, the counts before it, and the expected answer. They test a policy whenever it is changed.
 * docs/guides/policies.md has the format.
 */

interface Section {
  readonly name: string;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly error: Json;
  readonly failure: Partial<FailureSection>;
  readonly outcome: (typeof OUTCOMES)[number];
  readonly given: Partial<Given>;
  readonly expect: Partial<Expected>;
}

interface FailureSection {
  readonly reason: string;
  readonly kind: FailureKind;
  readonly fault: Fault;
  readonly ambiguous: boolean;
  readonly retryAfter: Milliseconds;
}

interface Given {
  readonly charged: ReadonlyMap<string, number>;
  readonly executions: number;
  readonly deferrals: number;
  readonly deferredFor: Milliseconds;
  readonly recoveries: number;
  readonly suspect: boolean;
  readonly idempotent: boolean;
  readonly cancelRequested: boolean;
  readonly sinceFirstStart: Milliseconds;
  readonly untilDeadline: Milliseconds;
}

interface Expected {
  readonly next: (typeof NEXT)[number];
  readonly after: Milliseconds;
  readonly between: readonly Milliseconds[];
  readonly kind: FailureKind;
  readonly reason: string;
  readonly fault: Fault;
  readonly rule: string;
  readonly charge: (typeof CHARGES)[number];
  readonly count: number;
  readonly limit: number;
  readonly step: string;
}

const OUTCOMES = ['lost', 'interrupted', 'deadline'] as const;
const NEXT = ['scheduled', 'dead', 'needs_manual', 'cancelled'] as const;
const CHARGES = ['task', 'deferrals', 'recoveries', 'source', 'nobody'] as const;

/** One example, and the line that it begins in. */
export interface Example extends Partial<Section> {
  readonly name: string;
  readonly type: string;
  readonly expect: Partial<Expected>;
  readonly line: number;
}

/** The expected and the actual value, if they differ. */
export interface Difference {
  readonly what: keyof Expected;
  readonly expected: unknown;
  readonly got: unknown;
}

/** The result of an example. It holds if nothing differs. */
export interface ExampleResult {
  readonly example: Example;
  readonly foreseen: Foreseen;
  readonly wrong: readonly Difference[];
}

/**
 * Reads a file of examples, YAML or JSON.
 * @throws InvalidConfigError with everything that is wrong with it.
 */
export function parseExamples(text: string, file: string): readonly Example[] {
  const problems = new Problems();
  const root = readSource(text, problems);
  const examples = (root && EXAMPLES.read(root, problems)?.tests) ?? [];
  if (root && examples.length === 0) problems.refuse(root, 'The file has no examples.', 'Write them under `tests:`.');
  if (problems.refused) throw new InvalidConfigError(file, problems.all);
  return examples;
}

/** Answers an example with the policies of a registry. `thrown` makes an error from the value of `error:`. */
export function runExample(
  registry: Registry,
  example: Example,
  thrown: (error: Json) => unknown,
  now: number,
): ExampleResult {
  const { type, queue, source } = example;
  const asked = { type, ...(queue !== undefined && { queue }), ...(source !== undefined && { source }) };
  const outcome = outcomeFor(registry, example, thrown, now);
  const foreseen = foresee(factsFor(example.given ?? {}, outcome), outcome, registry.policyFor(asked).policy);
  const got = answerOf(foreseen, outcome);
  const expected = Object.entries(example.expect) as [keyof Expected, unknown][];
  const wrong = expected.flatMap(([what, value]) =>
    agrees(what, value, got) ? [] : [{ what, expected: value, got: got[what] }],
  );
  return { example, foreseen, wrong };
}

function outcomeFor(
  registry: Registry,
  { error, failure, outcome, type }: Example,
  thrown: (error: Json) => unknown,
  now: number,
): Outcome {
  if (error !== undefined) return (registry.classifier?.outcomeOf ?? outcomeOf)(thrown(error), { now, type });
  if (failure) {
    const { reason = 'unknown', retryAfter, ...said } = failure;
    return {
      kind: 'failure',
      failure: failureOf(reason, { ...said, ...(retryAfter !== undefined && { retryAfterMs: retryAfter }) }),
    };
  }
  switch (outcome as (typeof OUTCOMES)[number]) {
    case 'lost':
      return { kind: 'loss', worker: 'w1', how: 'alone' };
    case 'interrupted':
      return { kind: 'interruption', started: true, message: 'The worker shut down.' };
    case 'deadline':
      return { kind: 'expiry' };
  }
}

function factsFor(given: Partial<Given>, outcome: Outcome): Facts {
  const { deferrals = 0, recoveries = 0, charged: counts = new Map<string, number>() } = given;
  const own = outcome.kind === 'failure' ? outcome.failure : undefined;
  const charged = [...counts].map(([reason, count]) => {
    const kind = reason === own?.reason ? own.kind : failureOf(reason).kind;
    return { reason, kind, count };
  });
  const before = charged.reduce((sum, { count }) => sum + count, deferrals + recoveries);
  return {
    ...UNTRIED,
    executions: given.executions ?? before + 1,
    charged,
    deferralsInARow: deferrals,
    deferredForMs: given.deferredFor ?? 0,
    recoveriesAgoMs: Array.from({ length: recoveries }, () => 0),
    lostInARow: (given.suspect ?? recoveries > 0) ? 1 : 0,
    idempotent: given.idempotent ?? true,
    cancelRequested: given.cancelRequested ?? false,
    sinceFirstStartMs: given.sinceFirstStart ?? 0,
    ...(given.untilDeadline !== undefined && { untilDeadlineMs: given.untilDeadline }),
  };
}

type Answered = Readonly<Record<keyof Expected, unknown>>;

function answerOf({ decision, delay }: Foreseen, outcome: Outcome): Answered {
  const failure = outcome.kind === 'failure' ? outcome.failure : undefined;
  const { rule, step, count, limit } = decision.because;
  return {
    next: decision.next,
    after: delay?.nominal,
    between: delay && [delay.low, delay.high],
    kind: failure?.kind,
    reason: failure?.reason ?? ('reason' in decision ? decision.reason : undefined),
    fault: failure?.fault,
    rule,
    charge: 'charge' in decision ? decision.charge.to : 'nobody',
    count,
    limit,
    step,
  };
}

/** Bounds match every delay between them. */
function agrees(what: keyof Expected, expected: unknown, got: Answered): boolean {
  if (what !== 'between') return got[what] === expected;
  const [least = 0, most = 0] = expected as readonly Milliseconds[];
  const [low, high] = (got.between ?? []) as readonly Milliseconds[];
  return low !== undefined && high !== undefined && low >= least && high <= most;
}

// ── The format ──

const ANYTHING: Shape<Json> = {
  schema: {},
  read: (node) => jsonOf(node),
};

function jsonOf(node: Node): Json {
  switch (node.kind) {
    case 'scalar':
      return node.value;
    case 'list':
      return node.items.map(jsonOf);
    case 'map':
      return Object.fromEntries(node.entries.map(({ name: each, value }) => [each, jsonOf(value)]));
  }
}

const GIVEN = fields<Given>('`given`', {
  charged: field(record(whole(0, 100_000), '`charged`'), 'Failures charged before, by reason.'),
  executions: field(whole(1), 'Executions of this round, this one included.'),
  deferrals: field(whole(0), 'Deferrals in a row before.'),
  deferredFor: field(span(), 'How long ago the first of them was.'),
  recoveries: field(whole(0, 1_000), 'Recoveries charged before.'),
  suspect: field(flag(), 'Whether it was lost with a worker before, and has reported nothing since.'),
  idempotent: field(flag(), 'Whether it may run twice.', { byDefault: true }),
  cancelRequested: field(flag(), 'Whether a cancel was requested.'),
  sinceFirstStart: field(span(), 'How long ago its first execution started.'),
  untilDeadline: field(span(), 'How much time is left until its deadline.'),
});

const EXPECT = fields<Expected>('`expect`', {
  next: field(oneOf(NEXT), 'Where the task goes.'),
  after: field(span(), 'The delay before jitter.'),
  between: field(listOf(span(), 2), 'Bounds between which the delay is always drawn.'),
  kind: field(oneOf(FAILURE_KINDS), 'The kind of the failure.'),
  reason: field(REASON, 'The reason of the failure.'),
  fault: field(oneOf(FAULTS), 'Who is at fault.'),
  rule: field(name(), 'The rule that answers, or policy.'),
  charge: field(oneOf(CHARGES), 'Who is charged.'),
  count: field(whole(0), 'The count after this failure.'),
  limit: field(whole(0), 'The limit that the count is compared with.'),
  step: field(oneOf(STEPS), 'Which step of the decision applied.'),
});

const FAILURE = fields<FailureSection>('`failure`', {
  reason: field(REASON, 'Its reason.'),
  kind: field(oneOf(FAILURE_KINDS), 'Default: the usual kind of the reason.'),
  fault: field(oneOf(FAULTS), 'Default: the usual fault of the reason.'),
  ambiguous: field(flag(), 'Default: as usual for the reason.'),
  retryAfter: field(span(), 'The wait that the other side asked for.'),
});

const SECTION = fields<Section>(
  'An example',
  {
    name: field(name(), 'A sentence that says what is expected.'),
    type: field(name(), 'The type of the task.'),
    queue: field(name(), 'Its queue.', { byDefault: 'default' }),
    source: field(name(), 'Its source. Default: its type.'),
    error: field(ANYTHING, 'The thrown error: a message, or members of an error, as for `holdfast classify`.'),
    failure: field(FAILURE, 'Instead of an error: the failure.'),
    outcome: field(oneOf(OUTCOMES), 'Instead of a failure: what else ended the execution.'),
    given: field(GIVEN, 'The earlier history of the task.'),
    expect: field(EXPECT, 'The expected answer. Members that are left out are not checked.'),
  },
  { instead: { reason: 'Write it under `failure:`, or under `expect:`.', next: 'Write it under `expect:`.' } },
);

const EXAMPLE: Shape<Example> = {
  schema: SECTION.schema,
  read(node, problems) {
    const before = problems.all.length;
    const read = SECTION.read(node, problems);
    // A missing member may be missing because its value was refused.
    if (!read || problems.all.length > before) return undefined;
    const ends = [read.error, read.failure, read.outcome].filter((each) => each !== undefined).length;
    const { type, expect = {} } = read;
    if (type === undefined) problems.refuse(node, 'An example needs the `type` of its task.');
    if (ends !== 1)
      problems.refuse(node, `An example needs one of error, failure and outcome, and has ${ends} of them.`);
    if (read.failure && read.failure.reason === undefined) problems.refuse(node, 'Its `failure` needs a `reason`.');
    if (Object.keys(expect).length === 0) problems.refuse(node, 'An example needs something under `expect`.');
    if (expect.between && expect.between.length !== 2)
      problems.refuse(node, `\`between\` takes two bounds, got ${expect.between.length}.`, 'Write between: [8m, 12m].');
    const title = read.name ?? `the example in line ${node.line}`;
    return type === undefined ? undefined : { ...read, name: title, type, expect, line: node.line };
  },
};

const EXAMPLES = fields<{ readonly version: number; readonly tests: readonly Example[] }>(
  'A file of examples',
  {
    version: field(whole(1, 1), 'The version of this format.', { byDefault: 1 }),
    tests: field(listOf(EXAMPLE), 'The examples.'),
  },
  {
    instead: Object.fromEntries(
      ['types', 'policies', 'defaults', 'sources', 'queues', 'retry_policies'].map((each) => [
        each,
        `This is a configuration. Test it with --config, and write examples under ${quoted('tests')}.`,
      ]),
    ),
  },
);
