import { readStored } from '../../stored-json.ts';
import type { Needs } from '../../task.ts';
import type { Database } from './database.ts';

interface Class {
  readonly type: string;
  readonly queue: string;
  readonly category: string;
  /** What cannot be read in a damaged row: `needs`. */
  readonly unreadable: readonly string[];
}

interface ClassRow extends Omit<Class, 'unreadable'> {
  readonly id: number;
  readonly needs: string;
}

/** The classes by their numbers. The meaning of a number never changes. */
export class Classes {
  readonly #database: Database;
  #known: ReadonlyMap<number, Class> = new Map();

  constructor(database: Database) {
    this.#database = database;
  }

  knows(id: number): boolean {
    return this.#known.has(id);
  }

  of(id: number): Class {
    return this.#known.get(id) as Class;
  }

  async learn(): Promise<void> {
    const { schema } = this.#database;
    const rows = await this.#database.rows<ClassRow>(
      `SELECT c.id, c.type, q.name AS queue, c.category, c.needs FROM ${schema}.classes c JOIN ${schema}.queues q ON q.id = c.queue`,
    );
    this.#known = new Map(rows.map((row) => [row.id, classOf(row)]));
  }
}

function classOf({ type, queue, category, needs }: ClassRow): Class {
  const unreadable: string[] = [];
  readStored<Needs>(needs, 'needs', unreadable, {});
  return { type, queue, category, unreadable };
}
