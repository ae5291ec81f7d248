import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Holdfast } from 'holdfast';
import { drawCover } from './cover.ts';
import { openTasks, Shop } from './shop.ts';
import { importPrices, indexBook, reportSales, sendInvoice } from './tasks.ts';

const holdfast = await openTasks();
const shop = new Shop(holdfast);
await holdfast.schedules.set('sales', { task: reportSales, input: {}, cron: '0 6 * * *', timeZone: 'Europe/Berlin' });
const worker = fork(fileURLToPath(new URL('worker.js', import.meta.url)));
try {
  await sellABook();
  await importOnce(holdfast);
  await indexBooks();
  await drawACover();
} finally {
  worker.kill('SIGTERM');
  await once(worker, 'exit');
  shop.close();
  await holdfast.close();
}

async function sellABook() {
  const id = shop.order(' Ada@Example.org', 'Notes', '12.50');
  const { cents } = await holdfast.result(id, { task: sendInvoice });
  console.log(`the invoice of ${cents} cents is sent`);

  // The address is refused, so the transaction is rolled back.
  const before = shop.orders();
  assert.throws(() => shop.order('nobody', 'Notes', '12.50'));
  assert.equal(shop.orders(), before);
}

/** Only one import of a supplier at a time. */
async function importOnce(holdfast: Holdfast) {
  const prices = { supplier: 'north', rows: 100_000 };
  const first = await holdfast.enqueue(importPrices, prices, { unique: { key: prices.supplier } });
  const second = await holdfast.enqueue(importPrices, prices, { unique: { key: prices.supplier } });
  assert.deepEqual([second.id, second.created], [first.id, false]);

  let progress = (await holdfast.get(first.id)).progress;
  while (progress === undefined) {
    await wait(50);
    progress = (await holdfast.get(first.id)).progress;
  }
  console.log('the import has begun');
  await holdfast.cancel(first.id, { note: 'The supplier sends a new file.' });
  await assert.rejects(holdfast.result(first.id), { name: 'TaskFailedError' });
  console.log(`the import is ${(await holdfast.get(first.id)).state}`);
}

async function indexBooks() {
  const titles = Array.from({ length: 40 }, (_, n) => ({ title: `Volume ${n}` }));
  const receipts = await holdfast.enqueueAll(indexBook, titles);
  const books = await Promise.all(receipts.map(({ id }) => holdfast.result(id, { task: indexBook })));
  const most = Math.max(...books.map(({ indexedWith }) => indexedWith));
  console.log(most > 1 ? `${books.length} books are indexed, many at once` : 'each book was indexed alone');
}

async function drawACover() {
  const { id } = await holdfast.enqueue(drawCover, { title: 'Notes' });
  const cover = await holdfast.result(id, { task: drawCover });
  assert.notEqual(cover.process, worker.pid);
  console.log(`the cover of ${cover.title} is drawn by a child process`);
}
