import { exponential, schedule } from './backoff.ts';
import { proportional } from './jitter.ts';
import { type Policy, type PolicyOptions, policyOver, type ReadOptions, readPolicy, standard } from './policy.ts';

/** The values that each preset sets. Its other values are those of `standard`, and any other level wins over them. */
const NAMED = new WeakMap<Policy, ReadOptions>();

const OFF = { gate: false, breaker: false, budget: false };
const ON = { gate: true, breaker: true, budget: true };

/**
 * A preset follows its published schedule exactly: unless it says otherwise it has no jitter, the memory of the source changes
 * nothing, and it has none of the rules of `standard`.
 */
function preset(options: PolicyOptions): Policy {
  const named = readPolicy({ jitter: 'none', source: OFF, rules: {}, ...options });
  const policy = policyOver(named, { ...standard, rules: {} });
  NAMED.set(policy, named);
  return policy;
}

/** A command says on stderr that it met a rate limit, as a server does by its status. Neither is the fault of the task, so it pays for none. */
const commandLike: PolicyOptions = {
  maxAttempts: 8,
  backoff: exponential({ base: '5s', cap: '1h' }),
  jitter: { kind: 'full' },
  rules: { rate_limited: { charge: false } },
};

/** Policies for common work. A type with the name of one of them (`imap_mailbox`) uses it by default. */
export const presets = {
  standard,
  shellCommand: preset(commandLike),
  httpDelivery: preset({ ...commandLike, source: ON }),
  fileMove: preset({
    maxAttempts: 5,
    backoff: exponential({ base: '10m', cap: '2h' }),
    permanent: 'retry',
    onExhausted: 'needs_manual',
    rules: {
      'fs.locked': { maxAttempts: 10, backoff: exponential({ base: '5m', cap: '24h' }), onExhausted: 'dead' },
      'fs.permission': { maxAttempts: 3, backoff: exponential({ base: '1m', cap: '5m' }), onExhausted: 'needs_manual' },
      'fs.dest_exists': { maxAttempts: 1, onExhausted: 'needs_manual' },
    },
  }),
  /** What `fileMove` is with `smart: false`: one plain policy for every failure. */
  fileMovePlain: preset({
    maxAttempts: 10,
    backoff: exponential({ base: '5m', cap: '24h' }),
    permanent: 'retry',
    onExhausted: 'dead',
  }),
  replay: preset({ maxAttempts: 8, backoff: exponential({ base: '60s', cap: '1h' }), onExhausted: 'dead' }),
  worker: preset({
    maxAttempts: 5,
    backoff: exponential({ base: '1s', cap: '5m' }),
    jitter: proportional(0.1),
    permanent: 'retry',
  }),
  localFiles: preset({
    maxAttempts: 3,
    backoff: exponential({ base: '30s', cap: '5m' }),
    jitter: proportional(0.2),
  }),
  imapMailbox: preset({
    maxAttempts: 5,
    backoff: exponential({ base: '120s', cap: '30m' }),
    jitter: proportional(0.3),
    rules: {
      transient: { maxAttempts: 7 },
      rate_limited: { backoff: exponential({ base: '600s', cap: '30m' }) },
    },
  }),
  githubRepository: preset({
    maxAttempts: 5,
    backoff: exponential({ base: '300s', cap: '1h' }),
    jitter: proportional(0.25),
    rules: { rate_limited: { backoff: exponential({ base: '900s', cap: '1h' }) } },
  }),
  analysis: preset({
    maxAttempts: 4,
    backoff: schedule(['5m', '15m', '60m']),
    permanent: 'retry',
    onExhausted: 'dead',
  }),
} as const satisfies Readonly<Record<string, Policy>>;

const BY_TYPE: Readonly<Record<string, Policy>> = {
  standard: presets.standard,
  shell_command: presets.shellCommand,
  http_delivery: presets.httpDelivery,
  file_move: presets.fileMove,
  replay: presets.replay,
  worker: presets.worker,
  local_files: presets.localFiles,
  obsidian_vault: presets.localFiles,
  imap_mailbox: presets.imapMailbox,
  github_repository: presets.githubRepository,
  analysis: presets.analysis,
};

/** The policy of a type without a policy: the preset of its name, otherwise `standard`. */
export function presetFor(type: string): Policy {
  return Object.hasOwn(BY_TYPE, type) ? (BY_TYPE[type] as Policy) : standard;
}

const BY_NAME: Readonly<Record<string, Policy>> = { ...BY_TYPE, file_move_plain: presets.fileMovePlain };

/** The names of presets in files: those of the types that use them. */
export const PRESET_NAMES: readonly string[] = Object.keys(BY_NAME);

/** The preset with this name, if there is one. */
export function presetNamed(name: string): Policy | undefined {
  return Object.hasOwn(BY_NAME, name) ? BY_NAME[name] : undefined;
}

/** The values that a preset sets itself; undefined for any other policy. */
export function namedBy(policy: Policy): ReadOptions | undefined {
  if (policy !== standard) return NAMED.get(policy);
  const { maxAttempts, backoff, jitter, permanent, rules, source } = standard;
  return { maxAttempts, backoff, jitter, permanent, rules, source };
}

/** The name of a preset in files; the first one if several types share it. */
export function nameOf(policy: Policy): string | undefined {
  return PRESET_NAMES.find((name) => BY_NAME[name] === policy);
}
