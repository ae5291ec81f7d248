import { InvalidInputError, UniqueConflictError } from '../../errors.ts';
import { show } from '../../show.ts';
import type { Enqueuer, Receipt } from '../store.ts';
import type { Database } from './database.ts';
import { enqueued } from './encoding.ts';
import { codeOf, storeError } from './failures.ts';
import { type ReceiptRow, receipt } from './tasks.ts';

/** Runs a statement with one parameter on somebody's handle. */
type Run = (text: string, parameter: string) => Promise<unknown>;

/** How each library runs a statement, by what its handles have. `$1` stands for the parameter. */
const LIBRARIES: readonly { readonly has: string; readonly run: (handle: Handle) => Run }[] = [
  // Prisma
  { has: '$queryRawUnsafe', run: (handle) => (text, parameter) => call(handle, '$queryRawUnsafe', text, parameter) },
  // Kysely
  {
    has: 'executeQuery',
    run: (handle) => (sql, parameter) =>
      call(handle, 'executeQuery', {
        sql,
        parameters: [parameter],
        query: { kind: 'RawNode' },
        queryId: { queryId: 'holdfast' },
      }),
  },
  // Knex, whose parameters are question marks
  { has: 'raw', run: (handle) => (text, parameter) => call(handle, 'raw', text.replace('$1', '?'), [parameter]) },
  // Drizzle, which takes a statement without parameters as it is
  {
    has: 'execute',
    run: (handle) => (text, parameter) =>
      call(
        handle,
        'execute',
        text.replace('$1', () => literal(parameter)),
      ),
  },
  // postgres.js
  { has: 'unsafe', run: (handle) => (text, parameter) => call(handle, 'unsafe', text, [parameter]) },
  // pg
  { has: 'query', run: (handle) => (text, parameter) => call(handle, 'query', { text, values: [parameter] }) },
];

type Handle = Readonly<Record<string, unknown>>;

function call(handle: Handle, method: string, ...values: readonly unknown[]): Promise<unknown> {
  return Reflect.apply(handle[method] as (...args: unknown[]) => Promise<unknown>, handle, values);
}

interface WithinAnswer {
  /** The handle is connected to another database. */
  readonly elsewhere?: true;
  readonly conflict?: { readonly occupant: number; readonly type: string; readonly key: string };
  readonly receipts?: readonly ReceiptRow[];
}

/** More kinds of tasks than anybody has; beyond that they are made known anew. */
const MOST_KNOWN = 10_000;

/** Enqueues on handles of the caller's own, inside its transactions. */
export class Within {
  readonly #database: Database;
  /** The kinds of tasks that the database knows: once it does, it does for good. */
  readonly #known = new Set<string>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** @throws InvalidInputError for what is no such handle. */
  of(handle: unknown): Enqueuer {
    this.#database.refuseClosed();
    const run = runOn(handle);
    return {
      waits: true,
      enqueue: async (tasks) => {
        this.#database.refuseClosed();
        if (tasks.length === 0) return [];
        const { groups, tasks: rows, keyed, followUps } = enqueued(tasks);
        await this.#makeKnown(groups);
        return this.#record(run, { groups: JSON.parse(groups), tasks: JSON.parse(rows), keyed, followUps });
      },
    };
  }

  /**
   * What is new of queues and types is made known outside of the transaction: inside of it, others would wait for its end. But
   * where that transaction holds the pool's last connection, there is no other way.
   */
  async #makeKnown(groups: string): Promise<void> {
    if (this.#known.has(groups) || !this.#database.canSpareConnection) return;
    await this.#database.call('make_places', [groups]);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.add(groups);
  }

  async #record(run: Run, call: object): Promise<readonly Receipt[]> {
    const { schema, where, epoch } = this.#database;
    const { elsewhere, conflict, receipts = [] } = await ask(this.#database, run, JSON.stringify({ epoch, ...call }));
    if (elsewhere) {
      throw new InvalidInputError(
        `This handle is connected to another database than ${where}, or one with other tables in its schema ${schema}. Nothing was enqueued.`,
      );
    }
    if (conflict) throw new UniqueConflictError(conflict.occupant, conflict.type, conflict.key);
    return receipts.map(receipt);
  }
}

function runOn(handle: unknown): Run {
  const has = (name: string) => typeof (Object(handle) as Record<string, unknown>)[name] === 'function';
  const library = LIBRARIES.find(({ has: name }) => has(name));
  if (library) return library.run(handle as Handle);
  throw new InvalidInputError(
    `within takes a client of pg in a transaction, or a transaction of Drizzle, Kysely, Knex, Prisma or postgres.js, got ${show(handle)}.`,
  );
}

async function ask(database: Database, run: Run, call: string): Promise<WithinAnswer> {
  try {
    const answer = await run(`SELECT ${database.functions}.enqueue_within($1::json)::text AS answer`, call);
    const [row] = (Array.isArray(answer) ? answer : Object(answer).rows) as readonly { answer: string }[];
    return JSON.parse((row as { answer: string }).answer) as WithinAnswer;
  } catch (error) {
    if (/^(?:3F000|42883|42P01)$/.test(codeOf(error))) {
      throw new InvalidInputError(
        `This handle is connected to a database in which Holdfast has no tables (${database.schema}). Nothing was enqueued, and the transaction has to be rolled back.`,
        'invalid_input',
        { cause: error },
      );
    }
    throw storeError(error, database.where);
  }
}

/** A text as PostgreSQL reads it, whatever its setting for backslashes. */
function literal(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
  return text.includes('\\') ? ` E${quoted}` : quoted;
}
