import { setTimeout as wait } from 'node:timers/promises';
import { defineTask, schedule } from 'holdfast';
import { z } from 'zod';
import { drawCover } from './cover.ts';

export interface Mail {
  readonly to: string;
  readonly text: string;
  /** The mail server sends only the first mail with a key. */
  readonly key: string;
}

/** The type of the invoices. How a mail is sent is an argument, so that a test can say when it fails. */
export function invoiceTask(send: (mail: Mail) => Promise<void>) {
  return defineTask('send_invoice', {
    retry: { maxAttempts: 4, backoff: schedule(['1h', '1d', '2d']), jitter: { kind: 'none' }, timeout: '30s' },
    // The callers of `enqueue` give text. `run` gets a clean address and a number of cents. What is stored is the text.
    input: z.object({
      order: z.number().int(),
      to: z.string().trim().toLowerCase().pipe(z.email()),
      price: z
        .string()
        .regex(/^\d+\.\d\d$/)
        .transform((price) => Number(price.replace('.', ''))),
    }),
    async run({ order, to, price }, task) {
      await send({ to, text: `Order ${order}: ${price} cents`, key: task.idempotencyKey });
      return { order, cents: price };
    },
  });
}

export const sendInvoice = invoiceTask(async ({ to, text }) => console.log(`mail to ${to}: ${text}`));

/** Reads the prices of a supplier, a row at a time. It tells how far it is, and stops when it is cancelled. */
export const importPrices = defineTask('import_prices', {
  input: z.object({ supplier: z.string(), rows: z.number().int().positive() }),
  async run({ rows }, task) {
    for (let done = 0; done < rows; done++) {
      await wait(10, undefined, { signal: task.signal });
      task.progress({ done: done + 1, rows });
    }
    return { rows };
  },
});

/** Books that have changed go to the search server together. */
export const indexBook = defineTask('index_book', {
  batch: { size: 50, wait: '100ms' },
  input: z.object({ title: z.string() }),
  runBatch(tasks) {
    return tasks.map(({ input }) => ({ title: input.title, indexedWith: tasks.length }));
  },
});

export const reportSales = defineTask('report_sales', {
  input: z.object({ days: z.number().int().default(1) }),
  run: ({ days }) => console.log(`the sales of ${days} day(s)`),
});

export const tasks = [sendInvoice, importPrices, indexBook, reportSales, drawCover];
