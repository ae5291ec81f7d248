import { mayStillSucceed } from '../late-success.ts';
import type { Lease } from '../store.ts';
import type { Sql } from './driver.ts';
import type { Found, Places } from './places.ts';

interface LostRow {
  readonly execution: number;
  readonly token: string;
  readonly worker: string;
}

/** A task whose lost lease may still be settled as succeeded. */
interface StillOpen {
  readonly found: Found;
  /** The worker that lost the lease. */
  readonly worker: string;
}

/** Finds tasks whose success counts although their lease was lost. */
export class LateSuccesses {
  readonly #sql: Sql;
  readonly #places: Places;

  constructor(sql: Sql, places: Places) {
    this.#sql = sql;
    this.#places = places;
  }

  /** Undefined if the lease was never lost, or the success does not count. */
  find({ task, execution, token }: Lease): StillOpen | undefined {
    const lost = this.#sql.get<LostRow>('SELECT execution, token, worker FROM hf_lost WHERE task = ?', task);
    if (lost?.execution !== execution || lost.token !== token) return undefined;
    const found = this.#places.find(task);
    if (!found) return undefined;
    const { row, facts, state } = found;
    const running = this.#sql.get<{ execution: number; why: string | null }>(
      'SELECT execution, why FROM hf_running WHERE id = ?',
      task,
    );
    const open = mayStillSucceed({
      state,
      lost: execution,
      latest: running?.execution ?? Math.max(facts.executions, row.executions),
      roundBase: facts.round_base,
      why: running?.why ?? null,
      lastOutcome: this.#lastOutcomeOf(task),
    });
    return open ? { found, worker: lost.worker } : undefined;
  }

  forget(task: number): void {
    this.#sql.run('DELETE FROM hf_lost WHERE task = ?', task);
  }

  #lastOutcomeOf(task: number): string | null {
    const [outcome = null] = this.#sql.column<string>(
      'SELECT outcome FROM hf_executions WHERE task = ? AND late = 0 ORDER BY id DESC LIMIT 1',
      task,
    );
    return outcome;
  }
}
