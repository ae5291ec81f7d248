import { ACTIONS, TRANSITIONS } from '../../task.ts';

/**
 * The tables of `src/task.ts` as functions in SQL. `is_legal` says whether a task may go from one state to another; `must_be_legal`
 * refuses where it may not. `action_leads` says where an operator's action leads, and is null where it cannot be taken.
 */
export function transitionFunctions(): string {
  return `
CREATE FUNCTION is_legal(p_from text, p_to text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(p_to = ANY(${caseOf('p_from', TRANSITIONS, textArray)}), false)
$$;

CREATE FUNCTION must_be_legal(p_from text, p_to text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT is_legal(p_from, p_to) THEN RAISE EXCEPTION 'A task cannot go from % to %.', p_from, p_to; END IF;
END $$;

CREATE FUNCTION action_leads(p_verb text, p_from text, p_is_due boolean, p_as text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT ${caseOf('p_verb', ACTIONS, ({ from, to }) => `CASE WHEN p_from = ANY(${textArray(from)}) THEN ${destination(to)} END`)}
$$;
`;
}

function destination(to: (typeof ACTIONS)[keyof typeof ACTIONS]['to']): string {
  if (to === 'when due') return "CASE WHEN p_is_due THEN 'ready' ELSE 'scheduled' END";
  if (to === 'as answered') return "CASE p_as WHEN 'retry' THEN 'ready' ELSE p_as END";
  return `'${to}'`;
}

function caseOf<Value>(of: string, table: Readonly<Record<string, Value>>, then: (value: Value) => string): string {
  const cases = Object.entries(table).map(([name, value]) => `WHEN '${name}' THEN ${then(value)}`);
  return `CASE ${of} ${cases.join(' ')} END`;
}

function textArray(texts: readonly string[]): string {
  return `'{${texts.join(',')}}'::text[]`;
}
