import { createHash } from 'node:crypto';
import { type ConfigProblem, InvalidConfigError, InvalidInputError } from '../errors.ts';
import { withMessageRules } from '../failure/classify/message-rules.ts';
import { type Classifier, classifierFrom } from '../failure/classify/rules.ts';
import { type Layer, type Level, layersOf, policyFrom, presetLayer, UNSAID } from '../failure/layers.ts';
import { PRESET_NAMES, presetNamed } from '../failure/presets.ts';
import type { Limits } from '../pace.ts';
import type { FileSchedule } from '../schedule/definition.ts';
import type { QueueSettings } from '../store/store.ts';
import type { RetentionOptions } from '../worker/retention-options.ts';
import { checkBlock } from './checks.ts';
import { refuseShadowed } from './classify-rules.ts';
import { formatOf, type Sections, type WorkerSection } from './format.ts';
import { connectorsOf } from './legacy.ts';
import { limitsOf } from './limits.ts';
import type { MaxAttemptsCounts } from './max-attempts-counts.ts';
import { meant } from './nearest-name.ts';
import { type Located, Problems, quoted } from './problems.ts';
import { ReasonsOfFile } from './reasons.ts';
import { type RetentionBlock, retentionOptions } from './retention.ts';
import { type Backoffs, membersOf, type RetryBlock } from './retry.ts';
import { type MapNode, readSource } from './source.ts';

/** A configuration that was read and is valid. Plain data, except the classifier and registered backoffs. */
export interface Config {
  /** The name under which it was read. */
  readonly file: string;
  /** A hash of the text. */
  readonly version: string;
  readonly warnings: readonly ConfigProblem[];
  /** Its policies. In each list, the last one wins. */
  readonly default: readonly Layer[];
  readonly queues: ReadonlyMap<string, readonly Layer[]>;
  readonly types: ReadonlyMap<string, readonly Layer[]>;
  /** Names, and prefixes that end in `*`. */
  readonly sources: ReadonlyMap<string, readonly Layer[]>;
  readonly policies: ReadonlyMap<string, readonly Layer[]>;
  /** Queue settings of the file, by name. */
  readonly setUps: ReadonlyMap<string, Partial<QueueSettings> & Limits>;
  /** Limits of sources, by name. */
  readonly limits: ReadonlyMap<string, Limits>;
  readonly schedules: ReadonlyMap<string, FileSchedule>;
  /** Its settings for workers and retention. */
  readonly worker: Partial<WorkerSection> & { readonly retention?: RetentionOptions };
  readonly classifier?: Classifier;
  /** What `max_attempts` counts in its `retry_policies`, and the types whose limits are said only there. */
  readonly connectors?: { readonly counts: MaxAttemptsCounts; readonly names: ReadonlySet<string> };
}

export interface ParseOptions {
  /** The name of the text in errors and origins. Default `holdfast.yaml`. */
  readonly file?: string;
  /** Functions that the text may name: `backoff: { custom: NAME }`. */
  readonly backoffs?: Backoffs;
}

/**
 * Reads a configuration in YAML or JSON. All of it is checked before any of it is used.
 * @throws InvalidConfigError with everything that is wrong.
 */
export function parseConfig(text: string, options: ParseOptions = {}): Config {
  const { file = 'holdfast.yaml', backoffs = {} } = options;
  const problems = new Problems();
  const root = readSource(text, problems);
  const sections = root && formatOf(backoffs).read(root, problems);
  const reader = sections && new Reader(root, sections, file, problems);
  const config = reader?.read();
  if (problems.refused || !config) throw new InvalidConfigError(file, problems.all);
  const version = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return { ...config, file, version, warnings: problems.all };
}

/** The errors and warnings of a text, without throwing. */
export function problemsOf(text: string, options: ParseOptions = {}): readonly ConfigProblem[] {
  try {
    return parseConfig(text, options).warnings;
  } catch (error) {
    if (error instanceof InvalidConfigError) return error.problems;
    throw error;
  }
}

/** Deeper chains are refused. */
const DEEPEST_EXTENDS = 8;

/** From sections to layers. */
class Reader {
  readonly #root: MapNode;
  readonly #sections: Partial<Sections>;
  readonly #file: string;
  readonly #problems: Problems;
  readonly #reasons: ReasonsOfFile;
  /** Every name under `policies:`, also of those that were refused. */
  readonly #named: readonly string[];
  readonly #circles = new Set<Located>();
  #tooDeep = false;

  constructor(root: MapNode, sections: Partial<Sections>, file: string, problems: Problems) {
    const policies = membersOf(root).find(({ name }) => name === 'policies')?.value;
    this.#named = policies ? membersOf(policies).map(({ name }) => name) : [];
    this.#root = root;
    this.#sections = sections;
    this.#file = file;
    this.#problems = problems;
    this.#reasons = new ReasonsOfFile(
      (sections.classify ?? []).map(({ rule }) => rule.reason),
      sections.reasons,
    );
  }

  read(): Omit<Config, 'file' | 'version' | 'warnings'> {
    const {
      defaults,
      policies,
      types,
      sources,
      queues,
      classify = [],
      messageRules: byMessage = false,
      worker = {},
      retention,
      schedules = new Map(),
      retry_policies,
      max_attempts_counts,
    } = this.#sections;
    const connectors = connectorsOf(this.#root, retry_policies, max_attempts_counts, this.#problems);
    for (const [name, { node }] of policies ?? []) this.#refuseHiding(name, node);
    refuseShadowed(classify, this.#problems);
    const ofDefault = [...this.#layers('default', connectors?.others), ...this.#layers('default', defaults?.retry)];
    const read = {
      default: ofDefault,
      policies: this.#all('type', policies, (block) => block),
      queues: this.#all('queue', queues, ({ retry }) => retry),
      types: joined(
        this.#all('type', connectors?.listed, (block) => block),
        this.#all('type', types, ({ retry }) => retry),
      ),
      sources: this.#all('source', sources, ({ retry }) => retry),
      setUps: setUpsOf(queues),
      limits: limitsIn(sources),
      schedules,
      worker: { ...worker, ...(retention && { retention: this.#retention(retention) }) },
      ...((classify.length > 0 || byMessage) && !this.#problems.refused && { classifier: this.#classifier() }),
      ...(connectors && {
        connectors: {
          counts: connectors.counts,
          names: new Set([...connectors.listed.keys()].filter((name) => !types?.has(name))),
        },
      }),
    };
    this.#check(defaults?.retry, read.default);
    for (const [name, block] of policies ?? []) this.#check(block, [...ofDefault, ...(read.policies.get(name) ?? [])]);
    for (const [name, { retry }] of queues ?? []) this.#check(retry, [...ofDefault, ...(read.queues.get(name) ?? [])]);
    for (const [name, { retry }] of sources ?? [])
      this.#check(retry, [...ofDefault, ...(read.sources.get(name) ?? [])]);
    for (const [name, { retry }] of types ?? []) {
      this.#check(retry, layersOf(name, { ...UNSAID, default: ofDefault, type: read.types.get(name) ?? [] }));
    }
    return read;
  }

  #classifier(): Classifier {
    const classifier = classifierFrom((this.#sections.classify ?? []).map(({ rule }) => rule));
    return this.#sections.messageRules ? withMessageRules(classifier) : classifier;
  }

  #retention(block: RetentionBlock): RetentionOptions {
    for (const { reasons } of Object.values(block)) {
      for (const { name, at } of reasons) this.#reasons.checkName(name, at, this.#problems);
    }
    return retentionOptions(block);
  }

  #all<T>(level: Level, section: ReadonlyMap<string, T> | undefined, blockOf: (value: T) => RetryBlock | undefined) {
    const layers = [...(section ?? [])].map(([name, value]) => [name, this.#layers(level, blockOf(value))] as const);
    return new Map(layers.filter(([, each]) => each.length > 0));
  }

  /** A block's own layer over those that it extends. */
  #layers(level: Level, block: RetryBlock | undefined, within: readonly string[] = []): readonly Layer[] {
    if (!block) return [];
    if (within.length === 0) this.#reasons.check(block, this.#problems);
    const { options, places, node, extends: parent } = block;
    const origin = { level, by: 'file', file: this.#file, line: node.line, column: node.column } as const;
    const own: Layer = { options, bare: parent?.name === 'none', origin, places };
    return [...(parent ? this.#extended(level, parent.name, parent.at, within) : []), own];
  }

  #extended(level: Level, name: string, at: Located, within: readonly string[]): readonly Layer[] {
    if (name === 'none' || this.#problems.full) return [];
    if (within.includes(name)) {
      this.#refuseCircle([...within.slice(within.indexOf(name)), name], at);
      return [];
    }
    if (within.length === DEEPEST_EXTENDS) {
      this.#refuseDepth(at);
      return [];
    }
    const block = this.#sections.policies?.get(name);
    if (block) return this.#layers(level, block, [...within, name]);
    const preset = presetNamed(name);
    if (preset) return [presetLayer(preset, level, { file: this.#file, line: at.line, column: at.column })];
    // A policy that exists but was refused is not reported as unknown too. Each problem is reported once, at its place.
    if (within.length === 0 && !this.#named.includes(name)) {
      this.#problems.refuse(at, `There is no policy ${quoted(name)}.`, meant(name, [...this.#named, ...PRESET_NAMES]));
    }
    return [];
  }

  /** Reported once for each policy in the circle. */
  #refuseCircle(names: readonly string[], at: Located): void {
    if (this.#circles.has(at)) return;
    this.#circles.add(at);
    const what = `${names.map(quoted).join(' extends ')}: this is a circle.`;
    this.#problems.refuse(at, what, 'Let one of them extend a preset, or nothing.');
  }

  /** Reported once: every policy that extends them is too deep as well. */
  #refuseDepth(at: Located): void {
    if (this.#tooDeep) return;
    this.#tooDeep = true;
    this.#problems.refuse(at, `More than ${DEEPEST_EXTENDS} policies extend one another here.`, 'Use fewer levels.');
  }

  #refuseHiding(name: string, at: Located): void {
    if (name === 'none')
      this.#problems.refuse(at, "A policy cannot be called 'none': `extends: none` means that there is none.");
    else if (presetNamed(name))
      this.#problems.refuse(
        at,
        `${quoted(name)} is the name of a preset.`,
        `Choose another name, and write extends: ${name}.`,
      );
  }

  #check(block: RetryBlock | undefined, layers: readonly Layer[]): void {
    if (!block) return;
    try {
      checkBlock(block, policyFrom(layers), this.#problems);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      // If a part of it was refused, that is the reason why it is not a valid policy.
      if (!this.#problems.refused) this.#problems.refuse(block.node, error.message);
    }
  }
}

function joined(under: ReadonlyMap<string, readonly Layer[]>, over: ReadonlyMap<string, readonly Layer[]>) {
  const names = new Set([...under.keys(), ...over.keys()]);
  return new Map([...names].map((name) => [name, [...(under.get(name) ?? []), ...(over.get(name) ?? [])]] as const));
}

function setUpsOf(queues: Sections['queues'] = new Map()): Config['setUps'] {
  const named = [...queues].map(([name, { retry: _, pace: __, concurrency: ___, ...settings }]) => {
    return [name, { ...settings, ...limitsOf(queues.get(name) ?? {}) }] as const;
  });
  return new Map(named.filter(([, settings]) => Object.keys(settings).length > 0));
}

function limitsIn(sources: Sections['sources'] = new Map()): Config['limits'] {
  const named = [...sources].map(([name, source]) => [name, limitsOf(source)] as const);
  return new Map(named.filter(([, limits]) => Object.keys(limits).length > 0));
}
