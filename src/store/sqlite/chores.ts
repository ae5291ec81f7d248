import type { Milliseconds } from '../../duration.ts';
import { LISTED_FOR_MS } from '../redrive-row.ts';
import type { ActionTaken } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import { forgetChanges } from './changes.ts';
import type { Counting } from './counters.ts';
import type { Sql } from './driver.ts';
import type { Read } from './records.ts';
import type { Restricted } from './restricted.ts';
import { shrink } from './space.ts';
import type { Writer } from './writer.ts';

/** How many unused lanes and turns are kept, because making them anew costs more. */
const MOST_IDLE = 10_000;

/** How many of them one transaction removes. */
const AT_ONCE = 1_000;

/** Older actions are not logged. */
const NEWS_FOR_MS = 24 * 3_600_000;

type ActionRow = Omit<ActionTaken, 'note'> & { readonly act: number; readonly note: string | null };

export interface ChoreParts {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly catalogue: Catalogue;
  readonly restricted: Restricted;
  readonly read: Read;
  readonly now: () => number;
  readonly counting: Counting;
}

/** The chores that one process does for all. */
export class Chores {
  readonly #sql: Sql;
  readonly #writer: Writer;
  readonly #catalogue: Catalogue;
  readonly #read: Read;
  readonly #now: () => number;
  readonly #restricted: Restricted;
  readonly #counting: Counting;

  constructor({ sql, writer, catalogue, restricted, read, now, counting }: ChoreParts) {
    this.#sql = sql;
    this.#writer = writer;
    this.#catalogue = catalogue;
    this.#restricted = restricted;
    this.#counting = counting;
    this.#read = read;
    this.#now = now;
  }

  /** Most callers come too early. They find this out without a lock. */
  async takeTurn(chore: string, every: Milliseconds): Promise<boolean> {
    const due = await this.#read((sql) => {
      const [at] = sql.column<number>('SELECT at FROM hf_chores WHERE name = ?', chore);
      return at === undefined || this.#now() - at >= every;
    });
    if (!due) return false;
    const taken = await this.#writer.write((now) =>
      this.#sql.run(
        `INSERT INTO hf_chores (name, at) VALUES (:chore, :now)
         ON CONFLICT (name) DO UPDATE SET at = :now WHERE at <= :now - :every`,
        { chore, now, every },
      ),
    );
    return taken.changes > 0;
  }

  async takeActions(limit: number): Promise<readonly ActionTaken[]> {
    const { steps, logged, last } = await this.#read((sql) => this.#notLogged(sql, limit));
    if (last === logged) return [];
    const taken = await this.#writer.write(() =>
      this.#sql.run('UPDATE hf_clock SET acts_told = ? WHERE id = 1 AND acts_told = ?', last, logged),
    );
    // If another process was faster, it gets them.
    return taken.changes > 0 ? steps : [];
  }

  /** The actions after the last logged one, and the new last one. Reading them takes no lock. */
  #notLogged(
    sql: Sql,
    limit: number,
  ): { readonly steps: readonly ActionTaken[]; readonly logged: number; readonly last: number } {
    const [logged = 0] = sql.column<number>('SELECT acts_told FROM hf_clock WHERE id = 1');
    const [newest = logged] = sql.column<number>('SELECT coalesce(max(id), 0) FROM hf_acts');
    const rows = sql.all<ActionRow>(
      `SELECT a.id AS act, a.task, c.type, q.name AS queue, t.source, a.at, a.actor, a.verb, a.note,
         a.from_state AS "from", a.to_state AS "to"
       FROM hf_acts a JOIN hf_tasks t ON t.id = a.task JOIN hf_classes c ON c.id = t.class JOIN hf_queues q ON q.id = c.queue
       WHERE a.id > ? AND a.id <= ? AND a.at >= ? AND a.from_state <> 'elsewhere' AND (a.from_state <> 'running' OR a.to_state = 'running')
       ORDER BY a.id LIMIT ?`,
      logged,
      newest,
      this.#now() - NEWS_FOR_MS,
      limit,
    );
    const steps = rows.map(({ act: _, note, ...step }) => ({ ...step, ...(note !== null && { note }) }));
    const last = rows.length < limit ? newest : (rows.at(-1) as ActionRow).act;
    return { steps, logged, last: Math.max(logged, last) };
  }

  tidy(): Promise<number> {
    return this.#writer.write((now) => {
      const names = this.#forgetLanes() || this.#forgetTurns();
      const others = names || this.#forgetRedrives(now) || this.#restricted.forgetFullBudgets(AT_ONCE, now);
      return others || forgetChanges(this.#sql, now, AT_ONCE) || this.#counting.tidy(now) || shrink(this.#sql);
    });
  }

  #forgetLanes(): number {
    const [lanes = 0] = this.#sql.column<number>('SELECT count(*) FROM hf_lanes');
    if (lanes <= MOST_IDLE) return 0;
    const { changes } = this.#sql.run(
      `DELETE FROM hf_lanes WHERE id IN (
         SELECT id FROM hf_lanes l WHERE NOT EXISTS (SELECT 1 FROM hf_ready r WHERE r.lane = l.id) LIMIT ?)`,
      Math.min(AT_ONCE, lanes - MOST_IDLE),
    );
    // Other processes cache the numbers of lanes, which may be reused from now on.
    if (changes > 0) this.#catalogue.changed();
    return changes;
  }

  /** A source without a lane had no task to claim for long. When it comes back, it gets the last turn. */
  #forgetTurns(): number {
    const [turns = 0] = this.#sql.column<number>('SELECT count(*) FROM hf_turns');
    if (turns <= MOST_IDLE) return 0;
    return this.#sql.run(
      `DELETE FROM hf_turns WHERE (queue, source) IN (
         SELECT queue, source FROM hf_turns t WHERE NOT EXISTS (
           SELECT 1 FROM hf_lanes l JOIN hf_classes c ON c.id = l.class WHERE l.source = t.source AND c.queue = t.queue) LIMIT ?)`,
      Math.min(AT_ONCE, turns - MOST_IDLE),
    ).changes;
  }

  /** First their tasks, some at a time. */
  #forgetRedrives(now: number): number {
    const [old] = this.#sql.column<number>(
      `SELECT id FROM hf_redrives WHERE state IN ('stopped', 'done', 'cancelled') AND since < ? ORDER BY id LIMIT 1`,
      now - LISTED_FOR_MS,
    );
    if (old === undefined) return 0;
    const { changes } = this.#sql.run(
      `DELETE FROM hf_redrive_tasks WHERE redrive = :old AND task IN (
         SELECT task FROM hf_redrive_tasks WHERE redrive = :old ORDER BY task LIMIT :most)`,
      { old, most: AT_ONCE },
    );
    return changes > 0 ? changes : this.#sql.run('DELETE FROM hf_redrives WHERE id = ?', old).changes;
  }
}
