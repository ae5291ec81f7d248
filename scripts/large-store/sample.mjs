// Tasks as an application has them, worked off by the engine, each in one of all states at the end.
import { defineTask, Failed, openHoldfast } from '../../dist/index.js';
import { postgres } from '../../dist/store/postgres/index.js';
import { sqlite } from '../../dist/store/sqlite/index.js';

const TYPES = [
  'mail.send',
  'invoice.render',
  'webhook.deliver',
  'mailbox.sync',
  'file.import',
  'report.build',
  'card.charge',
  'index.update',
];
const PARTS = ['orders', 'invoices', 'customers', 'payments', 'stock', 'returns', 'contracts', 'messages'];
const SOURCES = 500;

/** How a task fails: its reason, and what is thrown. Each has groups of failures of its own. */
const FAILURES = [
  ['http.5xx', (part, n) => `503 Service Unavailable: the service of ${part} answered after ${n} ms`],
  ['net.timeout', (part, n) => `headers of ${part} timed out after ${n} ms`],
  ['net.reset', (part, n) => `read ECONNRESET while sending ${part} ${n}`],
  ['app.validation', (part, n) => `invalid IBAN of ${part} ${n}: the check digits do not fit`],
  ['app.conflict', (part, n) => `version ${n} of ${part} was changed meanwhile`],
  ['fs.locked', (part, n) => `EBUSY: resource busy or locked, open '/srv/${part}/${n}.csv'`],
  ['db.deadlock', (part, n) => `deadlock detected while writing ${part}: process ${n} waits`],
  ['app.missing', (part, n) => `nothing found: ${part}/${n}`],
];

/** After so many executions a task succeeds; without a number it never does. By the last two digits of its number. */
function succeedsAt(place) {
  if (place < 41) return 1;
  return place < 83 ? 5 : Number.POSITIVE_INFINITY;
}

const LATER = '12h';
const retry = {
  maxAttempts: 6,
  backoff: 'immediate',
  rules: {
    'app.waits': { backoff: { fixed: LATER } },
    'app.asks': { maxAttempts: 3, onExhausted: 'needs_manual' },
  },
};

const tasks = TYPES.map((type) =>
  defineTask(type, { retry, source: ({ n }) => `http:api-${n % SOURCES}.example`, run }),
);
/** No worker of the sample takes these. */
const waiting = TYPES.slice(0, 3).map((type) =>
  defineTask(`${type}.later`, { retry, source: ({ n }) => `http:api-${n % SOURCES}.example`, run() {} }),
);

function run({ n, part }, { execution }) {
  const place = n % 100;
  if (execution >= succeedsAt(place)) return { sent: n };
  const [reason, said] = FAILURES[Math.floor(n / 100) % FAILURES.length];
  if (place === 96) throw new Failed(`a person must look at ${part} ${n}`, { reason: 'app.asks' });
  if (place === 97 && execution === 4) throw new Failed(`${part} ${n} is not there yet`, { reason: 'app.waits' });
  throw new Failed(said(part, n), { reason });
}

function storeAt(address) {
  return address.startsWith('postgres') ? postgres(address) : sqlite(address, { durability: 'process' });
}

async function withStore(address, use) {
  const holdfast = await openHoldfast({ store: storeAt(address), tasks: [...tasks, ...waiting] });
  try {
    return await use(holdfast);
  } finally {
    await holdfast.close();
  }
}

/** Works off the sample, and says when. */
export function drainSample(address, count) {
  return withStore(address, async (holdfast) => {
    if ((await holdfast.list({ limit: 1 })).length > 0) throw new Error(`${address} has tasks already.`);
    const began = holdfast.now();
    const inputs = Array.from({ length: count }, (_, n) => ({
      n,
      part: PARTS[n % PARTS.length],
      note: 'x'.repeat(n % 200),
    }));
    for (let from = 0; from < count; from += 500) {
      const all = inputs.slice(from, from + 500).map(async (input) => {
        const type = input.n % TYPES.length;
        const key = input.n % 10 === 0 ? { key: `order-${input.n}` } : {};
        switch (input.n % 100) {
          case 98:
            return holdfast.enqueue(waiting[type % waiting.length], input, key);
          case 99:
            return aside(holdfast, await holdfast.enqueue(tasks[type], input, { delay: LATER }), input.n);
          default:
            return holdfast.enqueue(tasks[type], input, key);
        }
      });
      await Promise.all(all);
    }
    await holdfast.worker({ concurrency: 50, types: TYPES, name: 'sample' }).drain();
    while ((await holdfast.store.upkeep.tidy()) > 0);
    await holdfast.failures.list();
    return { began, ended: holdfast.now() };
  });
}

/** A task that waits stays, is held or is cancelled. */
async function aside(holdfast, { id }, n) {
  if (n % 300 === 99) await holdfast.hold(id, { actor: 'operator', note: 'wait for the new price list' });
  if (n % 300 === 199) await holdfast.cancel(id, { actor: 'operator', note: 'the customer called' });
}

/** A ready task of each of so many sources. */
export function enqueueOfSources(address, count) {
  return withStore(address, async (holdfast) => {
    for (let from = 0; from < count; from += 2_000) {
      const inputs = Array.from({ length: Math.min(2_000, count - from) }, (_, i) => ({ n: from + i, part: 'orders' }));
      await holdfast.enqueueAll(waiting[0], inputs, ({ n }) => ({ source: `tenant:${n}` }));
    }
  });
}
