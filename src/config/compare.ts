import { isDeepStrictEqual } from 'node:util';
import { describeOrigin, type ExplainedPolicy, type Origin } from '../failure/layers.ts';
import { PRESET_NAMES } from '../failure/presets.ts';
import type { Config } from './config.ts';
import type { Asked, Registry } from './registry.ts';

/** A value that two configurations say differently. */
export interface Change {
  readonly path: readonly string[];
  /** Undefined where there is none. */
  readonly before: unknown;
  readonly after: unknown;
  readonly beforeFrom?: Origin;
  readonly afterFrom?: Origin;
}

/** What changes for some kind of task: a type, a source, a queue, or every other. */
export interface Comparison {
  readonly what: 'type' | 'source' | 'queue' | 'other' | 'worker' | 'queue settings' | 'source limits' | 'schedule';
  readonly name: string;
  readonly changes: readonly Change[];
}

/** The differences between two registries as tasks see them: effective policies, not lines of files. */
export function compareConfigs(before: Registry, after: Registry): readonly Comparison[] {
  const [a, b] = [before.config, after.config];
  const questions: readonly (Pick<Comparison, 'what' | 'name'> & { readonly asked: Asked })[] = [
    { what: 'other', name: 'every other type', asked: { type: OTHER } },
    ...[...new Set([...namesIn(a?.types, b?.types), ...PRESET_NAMES])].map((name) => ({
      what: 'type' as const,
      name,
      asked: { type: name },
    })),
    ...namesIn(a?.sources, b?.sources).map((name) => ({
      what: 'source' as const,
      name,
      asked: { type: OTHER, source: name.replace(/\*$/, '') },
    })),
    ...namesIn(a?.queues, b?.queues).map((name) => ({
      what: 'queue' as const,
      name,
      asked: { type: OTHER, queue: name },
    })),
  ];
  const policies = questions.map(({ what, name, asked }) => ({
    what,
    name,
    changes: changesOf(before.policyFor(asked), after.policyFor(asked)),
  }));
  return [...policies, ...settings(a, b)].filter(({ changes }) => changes.length > 0);
}

/** A name that no file can contain, because names have no control characters. */
const OTHER = '\u0000';

function namesIn(...all: readonly (ReadonlyMap<string, unknown> | undefined)[]): readonly string[] {
  return [...new Set(all.flatMap((each) => [...(each?.keys() ?? [])]))].sort();
}

function changesOf(before: ExplainedPolicy, after: ExplainedPolicy): readonly Change[] {
  const [a, b] = [valuesOf(before), valuesOf(after)];
  return [...new Set([...a.keys(), ...b.keys()])].flatMap((key) => {
    const [was, is] = [a.get(key), b.get(key)];
    if (isDeepStrictEqual(plain(was?.value), plain(is?.value))) return [];
    const path = (was ?? is)?.path ?? [];
    const from = { ...(was && { beforeFrom: was.from }), ...(is && { afterFrom: is.from }) };
    return [{ path, before: was?.value, after: is?.value, ...from }];
  });
}

function valuesOf({ values }: ExplainedPolicy) {
  return new Map(values.map((value) => [JSON.stringify(value.path), value]));
}

/** Functions of two files are equal if their names are equal, as in the version of a policy. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function settings(a: Config | undefined, b: Config | undefined): readonly Comparison[] {
  const queues = namesIn(a?.setUps, b?.setUps).map((name) => ({
    what: 'queue settings' as const,
    name,
    changes: plainChanges(a?.setUps.get(name), b?.setUps.get(name)),
  }));
  const sources = namesIn(a?.limits, b?.limits).map((name) => ({
    what: 'source limits' as const,
    name,
    changes: plainChanges(a?.limits.get(name), b?.limits.get(name)),
  }));
  const schedules = namesIn(a?.schedules, b?.schedules).map((name) => ({
    what: 'schedule' as const,
    name,
    changes: plainChanges(a?.schedules.get(name), b?.schedules.get(name)),
  }));
  return [
    { what: 'worker', name: 'worker', changes: plainChanges(a?.worker, b?.worker) },
    ...queues,
    ...sources,
    ...schedules,
  ];
}

function plainChanges(before: object = {}, after: object = {}): readonly Change[] {
  const [a, b] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((key) => !isDeepStrictEqual(a.get(key), b.get(key)))
    .map((key) => ({ path: [key], before: a.get(key), after: b.get(key) }));
}

/** A comparison of `holdfast policies diff --json`. */
export function comparisonJson({ what, name, changes }: Comparison): object {
  return {
    what: what.replace(' ', '_'),
    name: what === 'other' ? null : name,
    changes: changes.map(({ path, before, after, beforeFrom, afterFrom }) => ({
      path,
      before: before ?? null,
      after: after ?? null,
      before_from: beforeFrom ? describeOrigin(beforeFrom) : null,
      after_from: afterFrom ? describeOrigin(afterFrom) : null,
    })),
  };
}
