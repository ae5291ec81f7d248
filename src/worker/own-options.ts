import type { ReadOptions } from '../failure/policy.ts';

/** What a task has of its own: options of a policy, and the version of its input if that is not 1. */
export interface OwnOptions {
  readonly retry?: ReadOptions;
  readonly inputVersion?: number;
}

/** As text for the store, in its column `policy`. Undefined if there is nothing to store. */
export function ownText({ retry, inputVersion }: OwnOptions): string | undefined {
  if (retry === undefined && inputVersion === undefined) return undefined;
  return JSON.stringify({ ...retry, ...(inputVersion !== undefined && { inputVersion }) });
}

/** The stored text as it was given. */
export function readOwn(stored: object): OwnOptions {
  const { inputVersion, ...retry } = stored as ReadOptions & { readonly inputVersion?: number };
  return {
    ...(Object.keys(retry).length > 0 && { retry }),
    ...(typeof inputVersion === 'number' && { inputVersion }),
  };
}

/** The version of a task's input, from its stored text. A text that cannot be read says nothing of it. */
export function inputVersionOf(text: string | undefined): number {
  if (text === undefined) return 1;
  try {
    return readOwn(JSON.parse(text) as object).inputVersion ?? 1;
  } catch {
    return 1;
  }
}
