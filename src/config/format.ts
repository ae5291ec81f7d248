import type { DurationInput } from '../duration.ts';
import { type FileSchedule, LONGEST_SCHEDULE_NAME } from '../schedule/definition.ts';
import type { QueueSettings } from '../store/store.ts';
import { type Needs, QUEUE_ORDERS } from '../task.ts';
import { UNHANDLED_REJECTIONS, type UnhandledRejections } from '../worker/worker-options.ts';
import { CLASSIFY_RULE, REASON, type RuleBlock } from './classify-rules.ts';
import { LEGACY_POLICY } from './legacy.ts';
import { LIMITS, LIMITS_INSTEAD, type LimitsBlock } from './limits.ts';
import { MAX_ATTEMPTS_COUNTS, type MaxAttemptsCounts } from './max-attempts-counts.ts';
import { type Problems, quoted } from './problems.ts';
import { RETENTION, type RetentionBlock } from './retention.ts';
import { type Backoffs, RETRY_KEYS, type RetryBlock, retryShape } from './retry.ts';
import { SCHEDULE } from './schedules.ts';
import { field, fields, flag, listOf, name, oneOf, record, type Shape, shown, spanOption, whole } from './shapes.ts';
import type { Entry } from './source.ts';
import { STORE } from './store.ts';

/** A whole file that was read and not yet checked. */
export interface Sections {
  readonly $schema: string;
  readonly version: '1';
  readonly store: string;
  readonly defaults: { readonly retry?: RetryBlock };
  readonly policies: ReadonlyMap<string, RetryBlock>;
  readonly types: ReadonlyMap<string, { readonly retry?: RetryBlock }>;
  readonly sources: ReadonlyMap<string, Partial<SourceSection>>;
  readonly queues: ReadonlyMap<string, Partial<QueueSection>>;
  readonly classify: readonly RuleBlock[];
  readonly reasons: readonly string[];
  readonly worker: Partial<WorkerSection>;
  readonly retention: RetentionBlock;
  readonly schedules: ReadonlyMap<string, FileSchedule>;
  readonly retry_policies: ReadonlyMap<string, RetryBlock>;
  readonly max_attempts_counts: MaxAttemptsCounts;
  readonly messageRules: boolean;
}

interface SourceSection extends LimitsBlock {
  readonly retry: RetryBlock;
}

interface QueueSection extends SourceSection, Pick<QueueSettings, 'order' | 'fair'> {}

/** The defaults for workers. */
export interface WorkerSection {
  readonly concurrency: number;
  readonly queues: readonly string[];
  readonly types: readonly string[];
  readonly categories: readonly string[];
  readonly capabilities: Needs;
  readonly leaseFor: DurationInput;
  readonly pollInterval: DurationInput;
  readonly grace: DurationInput;
  readonly claimAhead: boolean;
  readonly unhandledRejections: UnhandledRejections;
}

const UNDER_RETRY = Object.fromEntries(RETRY_KEYS.map((each) => [each, 'Write it under `retry:`.']));
const OF_POLICY = "It is a policy's option: write retry: { source: … }.";

/** The format of `holdfast.yaml`. */
export function formatOf(backoffs: Backoffs = {}): Shape<Partial<Sections>> {
  const retry = field(retryShape(backoffs), 'How failures are answered: options, or the name of a policy.');
  const own = (what: string) => fields<{ retry: RetryBlock }>(what, { retry }, { instead: UNDER_RETRY });
  return fields<Sections>(
    'A configuration',
    {
      $schema: field(name(), 'Where editors find this schema. Only editors read it.'),
      version: field(VERSION, 'The version of this format.', { byDefault: 1 }),
      store: field(
        STORE,
        'The store of the command line: a path, relative to the folder of this file, or postgres://user@host/database. Programs name their own store. --store and HOLDFAST_STORE win over it.',
        { examples: ['./tasks.db', 'postgres://app@db.example/app'] },
      ),
      defaults: field(own('`defaults`'), 'Values that are used if nothing more specific is set.', {
        examples: [{ retry: { timeout: '30m' } }],
      }),
      policies: field(record(retryShape(backoffs), '`policies`'), 'Named policies, for `retry:` and `extends:`.', {
        examples: [{ patient: { extends: 'imap_mailbox', giveUpAfter: '48h' } }],
      }),
      types: field(
        record(own('A type'), '`types`'),
        'By type of task. Values here win over values in the code of the type.',
        {
          examples: [{ imap_mailbox: { retry: { maxAttempts: 9 } } }],
        },
      ),
      sources: field(
        record(
          fields<SourceSection>(
            'A source',
            { ...LIMITS, retry },
            {
              instead: { ...UNDER_RETRY, ...LIMITS_INSTEAD, gate: OF_POLICY, breaker: OF_POLICY, budget: OF_POLICY },
              notYet: { maxHeld: 'after 7 days a source that is still held back needs a person.' },
            },
          ),
          '`sources`',
          checkSource,
        ),
        'By source. imap:* matches every source whose name begins with imap:. An exact name wins over it, and a longer beginning over a shorter one.',
        {
          examples: [{ 'imap:*': { retry: { maxAttempts: 9 } }, 'api.example.com': { pace: '10/s', concurrency: 4 } }],
        },
      ),
      queues: field(
        record(
          fields<QueueSection>(
            'A queue',
            {
              order: field(oneOf(QUEUE_ORDERS), 'Which ready task is next.', { byDefault: 'fifo' }),
              fair: field(flag(), 'Whether its sources take turns. The order then holds within each source.', {
                byDefault: false,
              }),
              ...LIMITS,
              retry,
            },
            {
              instead: { ...UNDER_RETRY, ...LIMITS_INSTEAD },
              notYet: {
                retention: 'tasks are removed by state and reason, under `retention:`, and alike in all queues.',
              },
            },
          ),
          '`queues`',
        ),
        'By queue.',
        { examples: [{ reports: { order: 'priority' } }] },
      ),
      classify: field(
        listOf(CLASSIFY_RULE),
        'Rules that classify errors, checked in this order and before the knowledge of Holdfast. The first rule that matches wins.',
        {
          examples: [[{ when: { status: 409, message: '(?i)closed' }, reason: 'order.closed', kind: 'permanent' }]],
        },
      ),
      messageRules: field(
        flag(),
        'Whether errors that nothing else recognises are classified by common phrases in their English text.',
        { byDefault: false },
      ),
      reasons: field(
        listOf(REASON),
        'The reasons that your handlers give. With this list, a rule for any other unknown reason is refused.',
        {
          examples: [['order.closed', 'stock.empty']],
        },
      ),
      worker: field(WORKER, 'Defaults for workers.', { examples: [{ concurrency: 20 }] }),
      retention: field(
        RETENTION,
        'How long ended tasks are kept. Once an hour a worker removes older ones, with everything that belongs to them.',
        { examples: [{ succeeded: '7d', dead: { default: '30d', 'fs.locked': '90d' }, needs_manual: 'never' }] },
      ),
      schedules: field(
        record(SCHEDULE, '`schedules`', checkScheduleName),
        'Tasks that workers enqueue by the clock, by name. A schedule that leaves the file is paused.',
        { examples: [{ nightly: { type: 'sync_mailbox', cron: '0 3 * * *', timeZone: 'Europe/Berlin' } }] },
      ),
      retry_policies: field(
        record(LEGACY_POLICY, '`retry_policies`'),
        'A document of connectors, unchanged. Values that a policy leaves out have the defaults of that document. `default` or `fallback` is for connectors that are not listed.',
      ),
      max_attempts_counts: field(
        oneOf(MAX_ATTEMPTS_COUNTS),
        'What `max_attempts` in `retry_policies` counts: executions, the first included, or the retries after it.',
        { byDefault: 'executions' },
      ),
    },
    {
      notYet: {
        alerts: 'no alerts are sent.',
      },
      instead: {
        retry: 'Write it under `defaults:`, or under a type, source or queue.',
        rules: 'Rules for errors are under `classify:`, those of a policy under its `retry:`.',
        limits: 'Write pace and concurrency under a source or queue.',
        templates: "Did you mean 'policies'?",
      },
    },
  );
}

function checkScheduleName({ name: given, at }: Entry, problems: Problems): boolean {
  if (given.length <= LONGEST_SCHEDULE_NAME) return true;
  problems.refuse(at, `The name of a schedule has at most ${LONGEST_SCHEDULE_NAME} characters.`);
  return false;
}

/** A * may stand only at the end of a name, and a limit belongs to one source, because the store counts what starts of each. */
function checkSource({ name: given, at, value }: Entry, problems: Problems): boolean {
  if (given.slice(0, -1).includes('*')) {
    problems.refuse(
      at,
      `${quoted(given)} has a * before its end. A source can be matched only by the beginning of its name.`,
      'Write, for example, imap:*.',
    );
    return false;
  }
  const limit =
    given.endsWith('*') && value.kind === 'map' && value.entries.find(({ name }) => Object.hasOwn(LIMITS, name));
  if (!limit) return true;
  problems.refuse(
    limit.at,
    `${quoted(limit.name)} is a limit of one source, and ${quoted(given)} stands for many.`,
    'Name each source, or set the limit on their queue.',
  );
  return false;
}

const VERSION: Shape<'1'> = {
  schema: { const: 1 },
  read(node, problems) {
    if (node.kind === 'scalar' && node.value === 1) return '1';
    problems.refuse(node, `The only version of this format is 1, got ${shown(node)}.`, 'Write version: 1.');
    return undefined;
  },
};

const CAPABILITY: Shape<string | number | boolean> = {
  schema: { type: ['string', 'number', 'boolean'] },
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : null;
    if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return value;
    return typeof value === 'string'
      ? name().read(node, problems)
      : void problems.refuse(node, `A capability must be a number, a text, true or false, got ${shown(node)}.`);
  },
};

const CAPABILITIES: Shape<Needs> = {
  ...record(CAPABILITY, '`capabilities`'),
  read(node, problems) {
    const read = record(CAPABILITY, '`capabilities`').read(node, problems);
    if (!read) return undefined;
    if (read.size <= 64) return Object.fromEntries(read);
    problems.refuse(node, `A worker may have at most 64 capabilities, got ${read.size}.`);
    return undefined;
  },
};

const WORKER = fields<WorkerSection>(
  '`worker`',
  {
    concurrency: field(whole(1, 10_000), 'How many executions at a time.', { byDefault: 10 }),
    queues: field(listOf(name()), 'Only tasks of these queues. Default: all.'),
    types: field(listOf(name()), 'Only tasks of these types. Default: the types that it has a definition for.'),
    categories: field(listOf(name()), 'Only tasks of these categories. Default: all.'),
    capabilities: field(CAPABILITIES, 'What it offers for tasks with needs.', {
      examples: [{ cpu: 8, gpu: 'RTX5090' }],
    }),
    leaseFor: field(spanOption(1_000), 'How long a worker that does not renew its lease keeps its tasks.', {
      byDefault: '30s',
    }),
    pollInterval: field(
      spanOption(1),
      'How often it polls for work. Without it, an idle worker on PostgreSQL polls less often.',
      { byDefault: '1s' },
    ),
    grace: field(spanOption(), 'How much time a handler gets to end when its execution or the worker is stopped.', {
      byDefault: '30s',
    }),
    claimAhead: field(flag(), 'Whether tasks that were measured to be short are claimed before a slot is free.', {
      byDefault: true,
    }),
    unhandledRejections: field(
      oneOf(UNHANDLED_REJECTIONS),
      'What happens if a handler leaves a promise behind that is rejected: the process continues, or Node ends it.',
      { byDefault: 'continue' },
    ),
  },
  {
    instead: {
      name: "A worker's name is its process's own: --name, or `workerName` in code.",
      maxTasks: 'Set it where the worker is started.',
      lease: "Did you mean 'leaseFor'?",
      poll: "Did you mean 'pollInterval'?",
    },
  },
);
