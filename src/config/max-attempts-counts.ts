import type { ReadOptions } from '../failure/policy-fields.ts';

/** What `max_attempts` of a `retry_policies:` document counts. The programs that this format comes from count the retries. */
export const MAX_ATTEMPTS_COUNTS = ['executions', 'retries'] as const;
export type MaxAttemptsCounts = (typeof MAX_ATTEMPTS_COUNTS)[number];

/** The same options with so many attempts more, as if `max_attempts` counted something else. */
export function recounted<T extends ReadOptions>(options: T, by: number): T {
  const { maxAttempts, rules } = options;
  const transient = rules?.transient?.maxAttempts;
  return {
    ...options,
    ...(maxAttempts !== undefined && { maxAttempts: maxAttempts + by }),
    ...(transient !== undefined && {
      rules: { ...rules, transient: { ...rules?.transient, maxAttempts: transient + by } },
    }),
  };
}
