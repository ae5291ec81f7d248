import type { Failure } from '../../failure/outcome.ts';
import { readStored } from '../../stored-json.ts';
import type { ExecutionOfTask, Restriction, SourceChange, SourceState } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import { recordChange } from './changes.ts';
import type { Sql } from './driver.ts';
import { type FactsRow, type FactsTable, withoutCharge } from './facts.ts';
import type { Places } from './places.ts';
import type { Restricted } from './restricted.ts';
import { failureOf } from './shared-texts.ts';

interface StateRow {
  readonly revision: number;
  readonly memory: string;
  readonly written_at: number;
}

/** A task with a refunded charge. */
export interface Refunded {
  readonly task: number;
  readonly facts: FactsRow;
}

/** The states of sources that are not in their normal state. */
export class SourceStates {
  readonly #sql: Sql;
  readonly #restricted: Restricted;
  readonly #facts: FactsTable;
  readonly #places: Places;
  readonly #catalogue: Catalogue;

  constructor(sql: Sql, restricted: Restricted, facts: FactsTable, places: Places, catalogue: Catalogue) {
    this.#catalogue = catalogue;
    this.#sql = sql;
    this.#restricted = restricted;
    this.#facts = facts;
    this.#places = places;
  }

  /** Whether any source has a state. */
  get any(): boolean {
    return this.#catalogue.restrictions && this.#sql.get('SELECT 1 FROM hf_source_states LIMIT 1') !== undefined;
  }

  of(source: string, now: number): SourceState | undefined {
    const row = this.#sql.get<StateRow>(
      'SELECT revision, memory, written_at FROM hf_source_states WHERE source = ?',
      source,
    );
    return row && { revision: row.revision, memory: row.memory, age: Math.max(0, now - row.written_at) };
  }

  /** 0 if it has none. */
  revisionOf(source: string): number {
    return this.#sql.column<number>('SELECT revision FROM hf_source_states WHERE source = ?', source)[0] ?? 0;
  }

  /** The tasks of a JSON list of ids whose source has a state. */
  tasksWith(ids: string): readonly number[] {
    return this.#sql.column<number>(
      `SELECT t.id FROM json_each(?) j CROSS JOIN hf_tasks t ON t.id = j.value
       CROSS JOIN hf_source_states s ON s.source = t.source`,
      ids,
    );
  }

  /** Writes a change that was made from the present revision, and returns the tasks that it refunds. */
  write(
    source: string,
    { memory, restriction, tokens, refunds, facts }: NonNullable<SourceChange['change']>,
    now: number,
  ): readonly Refunded[] {
    const revision = this.revisionOf(source);
    if (memory !== undefined) this.#store(source, revision, memory, restriction, now);
    else if (revision > 0) this.#remove(source, revision);
    if (facts !== undefined) recordChange(this.#sql, 'source', source, facts, now);
    if (tokens !== 0) this.#restricted.addTokens(source, tokens, now);
    const refunded = refunds.flatMap((one) => this.#refund(one) ?? []);
    this.#restricted.refresh(source, now);
    return refunded;
  }

  #store(source: string, before: number, memory: string, restriction: Restriction | undefined, now: number): void {
    const shutFor = restriction?.shutFor;
    this.#sql.run(
      `INSERT OR REPLACE INTO hf_source_states
         (source, revision, memory, written_at, cause, shut_until, until_released, probing, per_second, burst, ramping)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      source,
      before > 0 ? before + 1 : this.#newRevision(),
      memory,
      now,
      restriction?.cause ?? null,
      typeof shutFor === 'number' ? Math.min(Math.ceil(now + shutFor), Number.MAX_SAFE_INTEGER) : null,
      shutFor === 'released' ? 1 : 0,
      restriction?.probing ? 1 : 0,
      restriction?.pace?.perSecond ?? null,
      restriction?.pace?.burst ?? null,
      restriction?.ramping ? 1 : 0,
    );
    if (before === 0) this.#catalogue.restrict();
  }

  /** A later state has a higher revision than all that were removed, so that they cannot be confused. */
  #newRevision(): number {
    this.#sql.run('UPDATE hf_clock SET source_revision = source_revision + 1 WHERE id = 1');
    return this.#sql.column<number>('SELECT source_revision FROM hf_clock WHERE id = 1')[0] as number;
  }

  #remove(source: string, revision: number): void {
    this.#sql.run('DELETE FROM hf_source_states WHERE source = ?', source);
    this.#sql.run('UPDATE hf_clock SET source_revision = max(source_revision, ?) WHERE id = 1', revision);
    this.#catalogue.unrestrict();
  }

  #refund({ task, execution }: ExecutionOfTask): Refunded | undefined {
    const row = this.#sql.get<{ id: number; failure: string | null; delay: number | null }>(
      `SELECT e.id, ${failureOf('e')} AS failure, e.after_ms AS delay FROM hf_executions e
       WHERE e.task = ? AND e.execution = ? AND e.late = 0 AND e.charge = 'task'
         AND NOT EXISTS (SELECT 1 FROM hf_resting r WHERE r.id = e.task AND r.state IN ('succeeded', 'dead', 'cancelled'))`,
      task,
      execution,
    );
    const facts = this.#facts.of(task);
    if (!row || execution <= facts.round_base) return undefined;
    const failure = readStored<Failure | null>(row.failure ?? 'null', 'failure', [], null);
    if (!failure) return undefined;
    const charged = withoutCharge(facts.charged, failure.reason, failure.kind, row.delay ?? 0);
    const after = { ...facts, charged, verdict: null, needs_token: 0 };
    this.#sql.run("UPDATE hf_executions SET charge = 'refunded' WHERE id = ?", row.id);
    this.#sql.run('UPDATE hf_running SET revision = revision + 1 WHERE id = ?', task);
    if (facts.needs_token === 1) this.#places.remember(task, after);
    else this.#facts.write(task, after);
    return { task, facts: after };
  }
}
