import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openTestHoldfast } from 'holdfast/testing';
import { invoiceTask, type Mail, reportSales } from '../tasks.ts';

const INVOICE = { order: 1, to: 'ada@example.org', price: '12.50' };

test('an invoice is tried again after an hour, a day and two days', async () => {
  const hours: number[] = [];
  const keys = new Set<string>();
  const sendInvoice = invoiceTask(async ({ key }: Mail) => {
    hours.push((kit.clock.now() - start.getTime()) / 3_600_000);
    keys.add(key);
    if (hours.length < 4) throw new Error('451 The mailbox is busy.');
  });
  const start = new Date('2026-03-01T00:00:00Z');
  const kit = await openTestHoldfast({ tasks: [sendInvoice], start });
  const { id } = await kit.holdfast.enqueue(sendInvoice, INVOICE);

  await kit.advance('72h');
  assert.deepEqual(hours, [0, 1, 25]);
  assert.equal((await kit.holdfast.get(id)).state, 'scheduled');

  await kit.advance('1h');
  assert.deepEqual(hours, [0, 1, 25, 73]);
  const task = await kit.holdfast.get(id, sendInvoice);
  assert.equal(task.state, 'succeeded');
  assert.equal(task.result?.cents, 1250);
  assert.equal(keys.size, 1);
  await kit.close();
});

test('an invoice whose four attempts have failed is dead', async () => {
  const sendInvoice = invoiceTask(async () => {
    throw new Error('451 The mailbox is busy.');
  });
  const kit = await openTestHoldfast({ tasks: [sendInvoice] });
  const { id } = await kit.holdfast.enqueue(sendInvoice, INVOICE);
  await kit.advance('4d');
  const { state, executions } = await kit.holdfast.get(id);
  assert.deepEqual({ state, executions }, { state: 'dead', executions: 4 });
  await kit.close();
});

test('the sales are reported each morning', async () => {
  const kit = await openTestHoldfast({ tasks: [reportSales], start: new Date('2026-03-01T12:00:00Z') });
  await kit.holdfast.schedules.set('sales', { task: reportSales, input: {}, cron: '0 6 * * *' });
  await kit.advance('3d');
  assert.equal((await kit.holdfast.list({ states: ['succeeded'] })).length, 3);
  await kit.close();
});
