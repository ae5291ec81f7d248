import { FULL, PER_SUCCESS, REFILL_EVERY } from '../../budget.ts';
import { PROBE_HOLDS_FOR } from '../../starts.ts';

const NUMBERS = {
  budget_full: FULL,
  budget_refill_every: REFILL_EVERY,
  budget_per_success: PER_SUCCESS,
  probe_holds_for: PROBE_HOLDS_FOR,
};

/** The numbers of `src/budget.ts` and `src/starts.ts` as functions in SQL. */
export function budgetFunctions(): string {
  return Object.entries(NUMBERS)
    .map(
      ([name, value]) =>
        `CREATE FUNCTION ${name}() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT ${value}::double precision $$;`,
    )
    .join('\n');
}
