import type { Database } from './database.ts';

interface Class {
  readonly type: string;
  readonly queue: string;
  readonly category: string;
}

/** The classes by their numbers. What one means never changes. */
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
    const rows = await this.#database.rows<Class & { id: number }>(
      `SELECT c.id, c.type, q.name AS queue, c.category FROM ${schema}.classes c JOIN ${schema}.queues q ON q.id = c.queue`,
    );
    this.#known = new Map(rows.map(({ id, type, queue, category }) => [id, { type, queue, category }]));
  }
}
