import { InvalidConfigError, InvalidInputError } from '../errors.ts';
import type { Classifier } from '../failure/classify/rules.ts';
import {
  type Code,
  type ExplainedPolicy,
  explainPolicy,
  type Layer,
  layersOf,
  ownLayer,
  type Said,
} from '../failure/layers.ts';
import { type Policy, type PolicyOptions, type ReadOptions, readPolicy, type WholePolicy } from '../failure/policy.ts';
import { namedBy } from '../failure/presets.ts';
import { name, refuseNoRecord, refuseUnknown } from '../options.ts';
import type { Limits } from '../pace.ts';
import type { FileSchedules } from '../schedule/definition.ts';
import type { QueueSettings } from '../store/store.ts';
import type { Configuration, TaskNames } from '../worker/configuration.ts';
import type { WorkerOptions } from '../worker/worker-options.ts';
import { type Config, parseConfig } from './config.ts';
import type { Backoffs } from './retry.ts';

/** What a policy is set for: everything, or one queue, type or source. */
export type Target = 'default' | { readonly queue: string } | { readonly type: string } | { readonly source: string };

export interface RegistryOptions {
  /** Functions that a configuration may name: `backoff: { custom: fibonacci }`. They get the number of the retry, from 1. */
  readonly backoffs?: Backoffs;
}

/** For which task a policy is asked: by its type, queue and source. */
export interface Asked extends Partial<TaskNames> {
  readonly type: string;
  /** The task's own layer. */
  readonly retry?: ReadOptions | PolicyOptions;
}

/**
 * The current policies: those of a file, and those that are `set` while the program runs. Workers ask it at every failure, so a
 * change applies to the next failure of waiting tasks too. Pass it to `openHoldfast` as `config`.
 */
export class Registry implements Configuration {
  readonly backoffs: Backoffs;
  #config: Config | undefined;
  #rejected: InvalidConfigError | undefined;
  readonly #set = new Map<string, Layer>();
  readonly #known = new Map<string, Said>();
  /** The source prefixes of the file, the longest first. */
  #beginnings: readonly string[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(options: RegistryOptions = {}) {
    refuseUnknown(options, ['backoffs'], 'A registry');
    const { backoffs = {} } = options;
    refuseNoRecord(backoffs, 'backoffs');
    for (const [called, delay] of Object.entries(backoffs)) {
      if (typeof delay !== 'function')
        throw new InvalidInputError(`The backoff '${called}' must be a function from retry to milliseconds.`);
    }
    this.backoffs = { ...backoffs };
  }

  /** The configuration in use, if one was loaded. */
  get config(): Config | undefined {
    return this.#config;
  }

  /** Why the newest configuration is not in use; undefined if it is in use. */
  get rejected(): InvalidConfigError | undefined {
    return this.#rejected;
  }

  /**
   * Reads a configuration and replaces the last one. Values that were `set` stay.
   * @throws InvalidConfigError if it is invalid. Then the last one stays in use.
   */
  load(text: string, file = 'holdfast.yaml'): Config {
    try {
      const config = parseConfig(text, { file, backoffs: this.backoffs });
      this.#config = config;
      this.#rejected = undefined;
      this.#beginnings = [...config.sources.keys()]
        .filter((each) => each.endsWith('*'))
        .sort((a, b) => b.length - a.length);
      this.#changed();
      return config;
    } catch (error) {
      if (error instanceof InvalidConfigError) this.#rejected = error;
      throw error;
    }
  }

  /** @internal Notes a configuration that could not be read. */
  reject(error: InvalidConfigError): void {
    this.#rejected = error;
  }

  /**
   * Sets values that win over the file for the same queue, type, source or default, until `unset` or the end of the program. A
   * whole policy, such as a preset, uses only its own rules.
   * @throws InvalidInputError naming the option and the value that is refused.
   */
  set(target: Target, policy: PolicyOptions | WholePolicy): void {
    const { level, key } = parseTarget(target);
    const { version: _, ...options } = namedBy(policy as Policy) ?? readPolicy(policy);
    this.#set.set(key, { options, bare: 'version' in policy, origin: { level, by: 'set' } });
    this.#changed();
  }

  /** Removes what was `set`. */
  unset(target: Target): void {
    if (this.#set.delete(parseTarget(target).key)) this.#changed();
  }

  /**
   * The policy of such a task, each of its values, and where it comes from. `code` is the policy in the definition of its type, if
   * this process has one; without it, the preset of the type is used. `holdfast.policyFor` knows the definitions by itself.
   */
  policyFor(task: Asked, code?: Code): ExplainedPolicy {
    const { type, queue = 'default', source = type, retry } = task;
    const layers = layersOf(type, this.said({ type, queue, source }), code);
    return explainPolicy(retry === undefined ? layers : [...layers, ownLayer(retry)]);
  }

  said({ type, queue, source }: TaskNames): Said {
    const sourceName = this.#nameOfSource(source);
    const setSource = this.#set.has(`source ${source}`) ? source : '';
    const key = JSON.stringify([
      this.#speaksOf('type', type, this.#config?.types) ? type : 0,
      this.#speaksOf('queue', queue, this.#config?.queues) ? queue : 0,
      sourceName ?? 0,
      setSource,
    ]);
    let said = this.#known.get(key);
    if (!said) {
      said = {
        default: this.#layers(this.#config?.default, 'default'),
        queue: this.#layers(this.#config?.queues.get(queue), `queue ${queue}`),
        type: this.#layers(this.#config?.types.get(type), `type ${type}`),
        source: this.#layers(sourceName === undefined ? [] : this.#config?.sources.get(sourceName), `source ${source}`),
      };
      this.#known.set(key, said);
    }
    return said;
  }

  get types(): readonly string[] {
    return [...(this.#config?.types.keys() ?? [])];
  }

  get classifier(): Classifier | undefined {
    return this.#config?.classifier;
  }

  get queues(): ReadonlyMap<string, Partial<QueueSettings> & Limits> {
    return this.#config?.setUps ?? NONE;
  }

  get limits(): ReadonlyMap<string, Limits> {
    return this.#config?.limits ?? NONE;
  }

  get schedules(): FileSchedules | undefined {
    return this.#config && { file: this.#config.file, all: this.#config.schedules };
  }

  get worker(): WorkerOptions {
    return this.#config?.worker ?? {};
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #speaksOf(level: 'type' | 'queue', called: string, inFile: ReadonlyMap<string, unknown> | undefined): boolean {
    return inFile?.has(called) === true || this.#set.has(`${level} ${called}`);
  }

  /** The name of the file's entry for a source: its own name, otherwise the longest prefix. */
  #nameOfSource(source: string): string | undefined {
    if (this.#config?.sources.has(source)) return source;
    return this.#beginnings.find((each) => source.startsWith(each.slice(0, -1)));
  }

  #layers(inFile: readonly Layer[] | undefined, key: string): readonly Layer[] {
    const set = this.#set.get(key);
    return [...(inFile ?? []), ...(set ? [set] : [])];
  }

  #changed(): void {
    this.#known.clear();
    for (const listener of [...this.#listeners]) listener();
  }
}

const NONE: ReadonlyMap<string, Limits> = new Map();

function parseTarget(target: Target): {
  readonly level: 'default' | 'queue' | 'type' | 'source';
  readonly key: string;
} {
  if (target === 'default') return { level: 'default', key: 'default' };
  refuseUnknown(target, ['queue', 'type', 'source'], 'What a policy is set for');
  const [[level, called] = [], second] = Object.entries(target);
  if (level === undefined || second) {
    throw new InvalidInputError("A policy is set for one of 'default', { queue }, { type } or { source }.");
  }
  return { level: level as 'queue' | 'type' | 'source', key: `${level} ${name(called, level)}` };
}
