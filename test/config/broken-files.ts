/*
 * Files that must be refused, or warned of, each with the place and the help that a person would want.
 */

export interface BrokenFile {
  readonly text: string;
  /** `line:column severity`, then parts of the message and of the suggestion. */
  readonly problems: readonly (readonly [place: string, message: string, suggestion?: string])[];
}

/** A policy of the type `a`, whose members begin in line 4, column 7. */
function retry(...lines: string[]): string {
  return ['types:', '  a:', '    retry:', ...lines.map((line) => `      ${line}`)].join('\n');
}

const one = (text: string, place: string, message: string, suggestion?: string): BrokenFile => ({
  text,
  problems: [[place, message, ...(suggestion === undefined ? [] : [suggestion])] as [string, string, string?]],
});

export const BROKEN_FILES: Readonly<Record<string, BrokenFile>> = {
  // What is no YAML, or no configuration
  'nothing at all': one('', '1:1 error', 'is empty', 'version: 1'),
  'comments alone': one('# soon\n\n', '1:1 error', 'is empty'),
  'a list': one('- types', '1:1 error', 'a map of names', undefined),
  'a single word': one('types', '1:1 error', 'not a single value'),
  'a bracket without its end': one('types: {a: {retry: {maxAttempts: 3}', '1:36 error', 'end with a }'),
  'a quote without its end': one('types:\n  "a: 1', '2:8 error', 'quote'),
  'a tab for an indent': one('types:\n\ta: 1', '2:1 error', 'indented with a tab', 'spaces'),
  'two documents': one('version: 1\n---\nversion: 1', '2:1 error', 'one document', 'Remove'),
  'a tag': one('types: !!js/function x', '1:8 error', 'without tags', 'Remove the tag'),
  'a key said twice': one('types:\n  a: {}\n  a: {}', '3:3 error', "'a' is already set in line 2", 'Keep one'),
  'a key that is a list': one('? [a]\n: 1', '1:3 error', 'must be a plain text'),
  __proto__: one('types:\n  __proto__: {}', '2:3 error', "'__proto__' is no name"),
  '__proto__ in a rule': one(retry('rules: { __proto__: { maxAttempts: 3 } }'), '4:16 error', '__proto__'),
  'a merge key': one('types:\n  <<: {}', '2:3 error', 'Merge keys', 'extends: NAME'),
  'an alias of nothing': one('types: *a', '1:8 error', 'Nothing above is named &a'),
  'an alias inside of what it names': one('types: &a { b: *a }', '1:16 error', 'would never end'),
  'an alias bomb': one(
    [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefgh'.split('').map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[i]}`)}]`),
    ].join('\n'),
    '1:22 error',
    'more than 20000 values',
    'fewer',
  ),
  'brackets without end': one('['.repeat(5_000), '1:1 error', 'nested too deeply'),
  'dashes without end': one('- '.repeat(500), '1:1 error', 'nested too deeply'),
  'a file that is too long': one(`# ${'x'.repeat(300_000)}`, '1:1 error', 'at most 262144 are allowed'),

  // Names
  'a variable in the name of a source': one(
    `sources:\n  "\${HOST}": { pace: 1/s }`,
    '2:3 error',
    'not replaced in a file',
    'itself',
  ),
  'a variable as a queue': one(
    `worker: { queues: ["\${QUEUE:-mail}"] }`,
    '1:20 error',
    'not replaced in a file',
    'itself',
  ),
  'a variable as a store': one(`store: \${DATABASE_URL}`, '1:8 error', 'only a shell replaces', 'HOLDFAST_STORE'),
  'a variable in a store': one(
    `store: postgres://\${PGHOST}/app`,
    '1:8 error',
    'only a shell replaces',
    'HOLDFAST_STORE',
  ),
  'a home as a store': one('store: ~/tasks.db', '1:8 error', 'only a shell replaces', 'HOLDFAST_STORE'),
  'an unknown section': one('tpyes: {}', '1:1 error', "no 'tpyes'", "'types'"),
  'a policy at the top': one('retry: {}', '1:1 error', "no 'retry'", 'under `defaults:`'),
  'a retention of a queue': one(
    'queues:\n  mail: { retention: 7d }',
    '2:11 error',
    "cannot have 'retention' yet",
    'until then',
  ),
  'a retention that is one time': one('retention: 30d', '1:12 error', 'must be a map'),
  'a retention of a state that is called otherwise': one(
    'retention: { failed: 30d }',
    '1:14 error',
    "no 'failed'",
    "'dead'",
  ),
  'a retention of what has not ended': one('retention: { held: 1d }', '1:14 error', "no 'held'", 'Cancel them first'),
  'a retention without a unit': one('retention: { dead: 30 }', '1:20 error', 'no unit', '30s'),
  'a retention that means for ever': one('retention: { dead: none }', '1:20 error', 'or never', 'Write never'),
  'a retention of successes by reason': one(
    'retention: { succeeded: { fs.locked: 1d } }',
    '1:25 error',
    'have no reason',
    'succeeded: 7d',
  ),
  'a retention of a reason with a slip': one(
    'retention: { dead: { fs.lokced: 90d } }',
    '1:22 error',
    "Unknown reason 'fs.lokced'",
    "'fs.locked'",
  ),
  'a retention of a name that is no reason': one(
    'retention: { dead: { EACCES: 90d } }',
    '1:22 error',
    "a family (fs.*) or default, got 'EACCES'",
  ),
  'a pace without a unit': one(
    'queues:\n  bulk:\n    pace: 3',
    '3:11 error',
    "a rate such as 10/s, 100/m, 5000/h or 3/10s, got '3'",
    'Write 3/s',
  ),
  'a pace in words': one(
    'sources:\n  api.example:\n    pace: 10 per minute',
    '3:11 error',
    "got '10 per minute'",
    'Write 10/m.',
  ),
  'a pace that never lets anything start': one('sources: { a: { pace: 0/s } }', '1:23 error', "got '0/s'"),
  'a pace with an empty map': one('sources: { a: { pace: {} } }', '1:23 error', "needs a 'rate'", 'rate: 10/s'),
  'a burst of nothing': one(
    'sources: { a: { pace: { rate: 10/s, burst: 0 } } }',
    '1:44 error',
    "from 1 to 1000000, got '0'",
  ),
  'a concurrency of nothing': one('queues: { bulk: { concurrency: 0 } }', '1:32 error', "from 1 to 100000, got '0'"),
  'a limit by another name': one('sources: { a: { rate: 10/s } }', '1:17 error', "no 'rate'", "'pace'"),
  'a limit of many sources': one(
    'sources: { "imap:*": { concurrency: 1 } }',
    '1:24 error',
    "'concurrency' is a limit of one source, and 'imap:*' stands for many",
    'Name each source',
  ),
  'a breaker of a source': one(
    'sources:\n  imap:INBOX:\n    breaker: {}',
    '3:5 error',
    "A source has no 'breaker'",
    'retry: { source: … }',
  ),
  'a version of tomorrow': one('version: 2', '1:10 error', "only version of this format is 1, got '2'", 'version: 1'),
  'a policy without retry': one('types:\n  a: { maxAttempts: 3 }', '2:8 error', "no 'maxAttempts'", 'under `retry:`'),
  'an option in another spelling': one(retry('max_attempts: 3'), '4:7 error', "no 'max_attempts'", "'maxAttempts'"),
  'a count of retries': one(retry('maxRetries: 3'), '4:7 error', "no 'maxRetries'", '3 retries are maxAttempts: 4'),
  'a slip in an option': one(retry('maxAtempts: 3'), '4:7 error', "no 'maxAtempts'", "'maxAttempts'"),
  'the other format in this one': one(retry('strategy: fixed_delay'), '4:7 error', "no 'strategy'", 'retry_policies'),
  'a name with a control character': one('types: { "a\\u0007b": {} }', '1:10 error', 'no control characters'),

  // Values
  'a text for a number': one(retry("maxAttempts: '3'"), '4:20 error', "got '3'", 'without quotes'),
  'no attempt at all': one(retry('maxAttempts: 0'), '4:20 error', "at least 1, got '0'"),
  'half an attempt': one(retry('maxAttempts: 2.5'), '4:20 error', 'whole number'),
  'a value that is missing': one(retry('maxAttempts:'), '4:19 error', 'got nothing'),
  'a list for a number': one(retry('maxAttempts: [3]'), '4:20 error', 'got a list'),
  'a duration without a unit': one(retry('timeout: 90'), '4:16 error', '90 has no unit', '90s'),
  'a duration in words': one(retry('timeout: 5 minutes'), '4:16 error', "got '5 minutes'", 'Write 5m.'),
  'a negative duration': one(retry('timeout: -5m'), '4:16 error', "got '-5m'"),
  'a duration of nothing': one(retry('timeout: 0'), '4:16 error', 'at least 1ms'),
  'a duration of a lifetime': one(retry('maxDeferredFor: 999999d'), '4:23 error', 'ten years'),
  'a word for yes': one(retry('retryAmbiguous: yes'), '4:23 error', "got 'yes'", 'Write true.'),
  'an end that there is not': one(retry('onExhausted: failed'), '4:20 error', 'dead, needs_manual'),
  'a slip in a word': one(retry('onExhausted: need_manual'), '4:20 error', "got 'need_manual'", "'needs_manual'"),
  'a limit that is not there': one(retry('giveUpAfter:'), '4:19 error', 'missing', 'Write none'),
  'a policy that is a number': one('types:\n  a:\n    retry: 3', '3:12 error', "map of names and values, got '3'"),
  'a map that is a list': one('types:\n  - a', '2:3 error', 'got a list'),

  // Backoff and jitter
  'a type that is only the name of a policy': one(
    'types:\n  order: imap_mailbox\n',
    '2:10 error',
    "got 'imap_mailbox'",
    '{ retry: imap_mailbox }',
  ),
  'a backoff in one word': one(
    retry('backoff: exponential'),
    '4:16 error',
    "got 'exponential'",
    '{ exponential: { base: 5s, cap: 1h } }',
  ),
  'a backoff of another kind': one(
    retry('backoff: { fibonacci: 1s }'),
    '4:18 error',
    "no backoff 'fibonacci'",
    'Write {',
  ),
  'two backoffs': one(retry('backoff: { fixed: 1s, schedule: [1s] }'), '4:16 error', 'got 2'),
  'a backoff as code has it': one(
    retry('backoff: { kind: fixed, delay: 1s }'),
    '4:18 error',
    "no backoff 'kind'",
    'fixed',
  ),
  'a change of two backoffs': one(
    retry('backoff: { base: 1s, step: 1s }'),
    '4:16 error',
    'options of exponential',
    'Remove',
  ),
  'a change whose cap is below its base': one(
    retry('backoff: { base: 1h, cap: 1m }'),
    '4:33 error',
    'cap 1m is below base 1h',
    'Raise',
  ),
  'a cap called max': one(retry('backoff: { exponential: { base: 1s, max: 1h } }'), '4:43 error', "no 'max'", "'cap'"),
  'a step called delay': {
    text: retry('backoff: { linear: { delay: 1s } }'),
    problems: [
      ['4:18 error', "linear needs 'step'", 'step: 30s'],
      ['4:28 error', "no 'delay'", "'step' of linear"],
    ],
  },
  'no base': one(retry('backoff: { exponential: { cap: 1h } }'), '4:18 error', "needs 'base'", 'base: 30s'),
  'a cap below the base': one(
    retry('backoff:', '  exponential: { base: 1h, cap: 30m }'),
    '5:39 error',
    'cap 30m is below base 1h: every delay would be 30m',
    'at least 1h',
  ),
  'a cap below the step': one(retry('backoff: { linear: { step: 2m, cap: 1m } }'), '4:43 error', 'below step 2m'),
  'a factor that shrinks': one(
    retry('backoff: { exponential: { base: 1s, factor: 0.5 } }'),
    '4:51 error',
    'at least 1',
  ),
  'a schedule without delays': one(retry('backoff: { schedule: [] }'), '4:28 error', 'at least 1'),
  'a schedule that is one delay': one(retry('backoff: { schedule: 5m }'), '4:28 error', "got '5m'", 'Write [5m].'),
  'a backoff that nobody registered': one(
    retry('backoff: { custom: squares }'),
    '4:26 error',
    "registered as 'squares'",
    'loadConfig',
  ),
  'a jitter in percent without the sign': one(retry('jitter: 20'), '4:15 error', "got '20'", 'Write 20%.'),
  'a jitter beyond all': one(retry('jitter: 120%'), '4:15 error', "got '120%'"),
  'a slip in a jitter': one(retry('jitter: ful'), '4:15 error', "got 'ful'", "'full'"),

  // Rules
  'a slip in a reason': one(
    retry('rules:', '  fs.lokced: { maxAttempts: 3 }'),
    '5:9 error',
    "Unknown reason 'fs.lokced'",
    "'fs.locked'",
  ),
  'a reason of one of our families that is not there': one(
    retry('rules: { fs.sunk: {} }'),
    '4:16 error',
    "Unknown reason 'fs.sunk'",
    'fs.locked',
  ),
  'a status as a reason': one(retry('rules: { http.503: {} }'), '4:16 error', "no reason 'http.503'", "'http.5xx'"),
  'a reason that the list leaves out': one(
    `reasons: [order.closed]\n${retry('rules: { stock.empty: {} }')}`,
    '5:16 error',
    "Unknown reason 'stock.empty'",
    '`reasons:`',
  ),
  'a slip in a family': one(retry('rules: { "ftps.*": {} }'), '4:16 error', "family 'ftps.*'", "'ftp.*'"),
  'a family of two words': one(retry('rules: { "fs.smb.*": {} }'), '4:16 error', 'first word', "'fs.*'"),
  'a slip in a kind': one(retry('rules: { transiant: {} }'), '4:16 error', "Unknown reason 'transiant'", "'transient'"),
  'a rule with capitals': one(retry('rules: { ECONNRESET: {} }'), '4:16 error', 'named by a reason', '`classify:`'),
  'an option of policies in a rule': one(
    retry('rules: { transient: { timeout: 1m } }'),
    '4:29 error',
    "no 'timeout'",
    'next to `rules`',
  ),

  // What can be read and not be meant
  'three delays, three attempts': one(
    retry('maxAttempts: 3', 'backoff: { schedule: [5m, 15m, 60m] }'),
    '4:20 error',
    'The delay 1h is never used: maxAttempts 3 is the first attempt and 2 retries',
    'maxAttempts: 4',
  ),
  'delays of a preset that a lower limit leaves unused': one(
    retry('extends: analysis', 'maxAttempts: 2'),
    '5:20 warning',
    'The delays 15m, 1h are never used',
    'maxAttempts: 4',
  ),
  'a delay for a single attempt': one(
    retry('maxAttempts: 1', 'backoff: { fixed: 5m }'),
    '5:7 warning',
    'No delay is ever used',
  ),
  'a cap that is never reached': one(
    retry('maxAttempts: 3', 'backoff: { exponential: { base: 1s, cap: 1d } }'),
    '5:48 warning',
    'cap 1d is never reached: the last of 2 retries waits 2s',
  ),
  'attempts without a second execution': one(retry('maxAttempts: 3', 'backoff: none'), '4:20 warning', 'has no effect'),
  'no retry before it is given up': one(
    retry('giveUpAfter: 1m', 'backoff: { fixed: 5m }'),
    '4:20 error',
    'No retry fits into giveUpAfter 1m',
    'Raise giveUpAfter',
  ),
  'adaptive delays that are all the same': one(
    retry('adaptive: true', 'backoff: { fixed: 5m }'),
    '4:17 warning',
    'adaptive has no effect',
    'Write an exponential',
  ),
  'no retry within the sum of delays': one(
    retry('maxTotalDelay: 1m', 'backoff: { fixed: 5m }'),
    '4:22 error',
    'No retry fits into maxTotalDelay 1m',
    'Raise maxTotalDelay',
  ),
  'more attempts than fit before it is given up': one(
    retry('maxAttempts: 9', 'backoff: { fixed: 5m }', 'jitter: none', 'giveUpAfter: 12m'),
    '7:20 warning',
    'Only 2 of 8 retries fit',
    'maxAttempts: 3',
  ),
  'fewer executions than attempts': one(
    retry('maxAttempts: 4', 'maxExecutions: 3'),
    '5:22 warning',
    'before its 4 attempts',
  ),
  'numbers for failures that stop at once': one(
    retry('rules: { permanent: { maxAttempts: 3 } }'),
    '4:27 warning',
    'have no effect',
    'permanent: retry',
  ),
  'a charge for what is no rate limit': one(
    retry('rules: { transient: { charge: false } }'),
    '4:29 warning',
    'only to rate limits',
    'rate_limited',
  ),

  // Named policies
  'a policy that is not there': one(
    retry('extends: imap_mailbx'),
    '4:16 error',
    "no policy 'imap_mailbx'",
    "'imap_mailbox'",
  ),
  'a policy of no retry, or of no rules': one(
    'types:\n  a: { retry: none }',
    '2:15 error',
    'no retry',
    'maxAttempts: 1',
  ),
  'a long row of policies': one(
    `policies:\n${Array.from({ length: 12 }, (_, i) => `  p${i}: ${i === 0 ? '{}' : `p${i - 1}`}`).join('\n')}\ntypes: { a: { retry: p3 } }`,
    '3:7 error',
    'extend one another',
    'fewer',
  ),
  'a policy that extends itself': one('policies:\n  a: { extends: a }', '2:17 error', 'this is a circle'),
  'policies in a circle': {
    text: 'policies:\n  a: { extends: b }\n  b: { extends: a }',
    problems: [
      ['2:17 error', 'this is a circle'],
      ['3:17 error', 'this is a circle'],
    ],
  },
  'a policy that hides a preset': one(
    'policies:\n  analysis: {}',
    '2:13 error',
    'the name of a preset',
    'extends: analysis',
  ),

  // Sources, queues, workers
  'a star in the middle': one("sources:\n  'imap:*:in': {}", '2:3 error', 'before its end', 'imap:*'),
  'an order that there is not': one('queues:\n  bulk: { order: prio }', '2:18 error', 'fifo', "'priority'"),
  'a lease that is too short': one('worker:\n  leaseFor: 10ms', '2:13 error', 'at least 1s'),
  'no slot at all': one('worker: { concurrency: 0 }', '1:24 error', 'from 1 to 10000'),
  'a name for all workers': one('worker: { name: w1 }', '1:11 error', "no 'name'", '--name'),

  // Rules about errors
  'a rule about everything': one('classify:\n  - when: {}\n    reason: a.b', '2:5 error', 'would match everything'),
  'a rule without a reason': one('classify:\n  - when: { code: E1 }', '2:5 error', "needs 'reason'"),
  'a rule without when': one('classify:\n  - reason: a.b', '2:5 error', "needs 'when'"),
  'a reason in capitals': one(
    'classify:\n  - when: { code: E1 }\n    reason: Order Closed',
    '3:13 error',
    'lower-case slug',
    'order_closed',
  ),
  'a status that is none': one(
    'classify:\n  - when: { status: 5** }\n    reason: a.b',
    '2:21 error',
    "got '5**'",
    "'5xx'",
  ),
  'an expression that may never end': one(
    "classify:\n  - when: { message: '(?=x)' }\n    reason: a.b",
    '2:22 error',
    'linear time',
  ),
  'an expression that is none': one(
    "classify:\n  - when: { message: '(' }\n    reason: a.b",
    '2:22 error',
    'expression',
  ),
  'a rule after one that says it all': one(
    'classify:\n  - when: { status: 5xx }\n    reason: a.b\n  - when: { status: 503, code: [E1] }\n    reason: a.c',
    '4:5 error',
    'never applies: the rule in line 2 comes first',
    'above line 2',
  ),

  // The document of connectors
  'a connector with a key of the other format': one(
    'retry_policies:\n  a: { maxAttempts: 3 }',
    '2:8 error',
    "no 'maxAttempts'",
    "'max_attempts'",
  ),
  'a connector with too many attempts': one('retry_policies:\n  a: { max_attempts: 11 }', '2:22 error', 'from 1 to 10'),
  'a connector with a strategy of its own': one(
    'retry_policies:\n  a: { strategy: exponential }',
    '2:18 error',
    'exponential_backoff',
    "'exponential_backoff'",
  ),
  'a connector whose longest delay is shorter than its first': one(
    'retry_policies:\n  a: { base_delay_seconds: 600, max_delay_seconds: 60 }',
    '2:28 error',
    'max_delay_seconds 60 is below base_delay_seconds 600',
    'at least 600',
  ),
  'two policies for connectors that are not listed': one(
    'max_attempts_counts: retries\nretry_policies:\n  default: {}\n  fallback: {}',
    '4:13 error',
    "'default' and 'fallback' mean the same",
  ),
  'a document that counts something else': one(
    'max_attempts_counts: retrys\nretry_policies: {}',
    '1:22 error',
    'executions, retries',
    "'retries'",
  ),
  'a connector of another type': one(
    'retry_policies:\n  a: { connector_type: b }',
    '2:24 error',
    "is 'b' in the policy of 'a'",
  ),

  // Together
  'many things at once': {
    text: 'tpyes: {}\ntypes:\n  a:\n    retry: { maxAttempts: 0, jitter: 20 }\nqueues: { q: { order: x } }\nlimits: {}',
    problems: [
      ['1:1 error', "no 'tpyes'"],
      ['4:27 error', 'at least 1'],
      ['4:38 error', 'Jitter', '20%'],
      ['5:23 error', 'must be one of'],
      ['6:1 error', "no 'limits'", 'under a source or queue'],
    ],
  },
};
