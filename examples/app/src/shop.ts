import Database from 'better-sqlite3';
import { type Holdfast, openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { sendInvoice, tasks } from './tasks.ts';

/** The orders and the tasks are in one file, so that one transaction can write both. */
export const FILE = process.env.SHOP_FILE ?? 'shop.db';

export function openTasks(): Promise<Holdfast> {
  return openHoldfast({ store: sqlite(FILE), tasks });
}

export class Shop {
  readonly #db = new Database(FILE, { timeout: 5_000 });
  readonly #holdfast: Holdfast;

  constructor(holdfast: Holdfast) {
    this.#holdfast = holdfast;
    this.#db.pragma('synchronous = FULL');
    this.#db.exec(
      'CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, book TEXT NOT NULL)',
    );
  }

  /** Stores the order and the task of its invoice, or neither. Answers the id of the task. */
  order(customer: string, book: string, price: string): number {
    const store = this.#db.transaction(() => {
      const { lastInsertRowid } = this.#db
        .prepare('INSERT INTO orders (customer, book) VALUES (?, ?)')
        .run(customer, book);
      const order = Number(lastInsertRowid);
      const invoice = { order, to: customer, price };
      return this.#holdfast.within(this.#db).enqueue(sendInvoice, invoice, { key: `invoice:${order}` }).id;
    });
    return store.immediate();
  }

  orders(): number {
    return this.#db.prepare('SELECT count(*) FROM orders').pluck().get() as number;
  }

  close(): void {
    this.#db.close();
  }
}
