import { MOST_TEXTS, type SplitText } from '../history-text.ts';
import type { Sql } from './driver.ts';

/** How many texts a process caches. Beyond that it starts again with none. */
const MOST_KNOWN = 1_000;

/**
 * Texts of history that many executions have in common, each stored once under a number. A text is stored at its second use, so
 * that those that are used only once take no place.
 */
export class SharedTexts {
  readonly #sql: Sql;
  readonly #numbers = new Map<string, number | undefined>();
  readonly #usedOnce = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** What is stored with an execution: all of `value` as JSON, or what is its own and the number of the rest. */
  columnsOf(value: object, { shared, own }: SplitText): readonly [text: string, number: number | null] {
    const number = this.#numberOf(shared);
    return number === undefined ? [JSON.stringify(value), null] : [own, number];
  }

  /** The number of a text; undefined if it is to be stored with its execution. */
  #numberOf(text: string): number | undefined {
    if (this.#numbers.has(text)) return this.#numbers.get(text);
    if (!this.#usedOnce.delete(text)) {
      if (this.#usedOnce.size >= MOST_KNOWN) this.#usedOnce.clear();
      this.#usedOnce.add(text);
      return undefined;
    }
    if (this.#numbers.size >= MOST_KNOWN) this.#numbers.clear();
    const number = this.#stored(text);
    this.#numbers.set(text, number);
    return number;
  }

  /** Forgets the numbers, because a transaction that may have given them was rolled back. */
  forget(): void {
    this.#numbers.clear();
  }

  #stored(text: string): number | undefined {
    this.#sql.run(
      `INSERT INTO hf_texts (text) SELECT ? WHERE (SELECT coalesce(max(id), 0) FROM hf_texts) < ${MOST_TEXTS} ON CONFLICT DO NOTHING`,
      text,
    );
    return this.#sql.column<number>('SELECT id FROM hf_texts WHERE text = ?', text)[0];
  }
}

/** The JSON of the failure of an execution, without its message if it shares the rest with others. */
export function failureOf(execution: string): string {
  return `iif(${execution}.failure_text IS NULL, ${execution}.failure, (SELECT text FROM hf_texts WHERE id = ${execution}.failure_text))`;
}

/** A member of an execution's failure; null if there is none, or the row is damaged. */
export function failureMember(execution: string, name: string): string {
  const failure = failureOf(execution);
  return `iif(json_valid(${failure}), ${failure} ->> '${name}', NULL)`;
}

/** The fingerprint of the last failure of a task. */
export function lastFingerprint(task: string): string {
  return `(SELECT ${failureMember('x', 'fingerprint')} FROM hf_executions x
    WHERE x.task = ${task} AND x.late = 0 AND x.failure IS NOT NULL ORDER BY x.id DESC LIMIT 1)`;
}
