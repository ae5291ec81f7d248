import { FULL, PER_SUCCESS, REFILL_EVERY } from '../../budget.ts';

/** The numbers of `src/budget.ts` as functions in SQL. */
export function budgetFunctions(): string {
  return Object.entries({ budget_full: FULL, budget_refill_every: REFILL_EVERY, budget_per_success: PER_SUCCESS })
    .map(
      ([name, value]) =>
        `CREATE FUNCTION ${name}() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT ${value}::double precision $$;`,
    )
    .join('\n');
}
