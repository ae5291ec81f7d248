// Fills a store for the tests of the dashboard, and works it: node program.mjs STORE [OPTIONS as JSON], on the built package.
// STORE is the path of a SQLite file or the URL of a PostgreSQL database. Options: `only`, the types of which it enqueues tasks (default
// all, with schedules and with what people did); `hostile`: also tasks whose texts attack the page, and
// one whose error has the secret in PLANTED_SECRET; `fixed`, the path of a file: when it
// exists, what failed before succeeds. It prints "filled" when each task has done what it does at once, and works until SIGTERM.
import { existsSync } from 'node:fs';
import { argv, stdout } from 'node:process';

const [where, json = '{}'] = argv.slice(2);
const { only, fixed = '/nonexistent', hostile = false } = JSON.parse(json);
const dist = new URL('../../dist/', import.meta.url);
const load = (path) => import(new URL(path, dist).href);
const { defineTask, openHoldfast, Failed, NeedsManual, PermanentFailure, RateLimited } = await load('index.js');
const store = where.startsWith('postgres')
  ? (await load('store/postgres/index.js')).postgres(where)
  : (await load('store/sqlite/index.js')).sqlite(where);

const isFixed = () => existsSync(fixed);

/** An error as fetch and Node's sockets throw it. */
function systemError(message, code) {
  return Object.assign(new Error(message), { code });
}

function httpError(status, message) {
  return Object.assign(new Error(message), { status });
}

const orderPush = defineTask('order.push', {
  source: 'http:api.acme.example',
  retry: { maxAttempts: 12, backoff: { kind: 'exponential', base: '1s', factor: 2, cap: '4s' } },
  async run({ order }) {
    if (isFixed()) return { pushed: order };
    throw httpError(503, 'Service Unavailable: the upstream of api.acme.example does not answer');
  },
});

const invoiceSend = defineTask('invoice.send', {
  retry: { maxAttempts: 3 },
  async run({ iban }) {
    if (isFixed()) return { sent: true };
    throw new Failed(`invalid IBAN "${iban}"`, { kind: 'permanent', reason: 'invoice.invalid_iban' });
  },
});

const mailboxSync = defineTask('mailbox.sync', {
  source: ({ mailbox }) => `imap:${mailbox}`,
  retry: { maxAttempts: 6, backoff: { kind: 'exponential', base: '5m', factor: 2, cap: '1h' } },
  async run() {
    throw systemError('read ECONNRESET', 'ECONNRESET');
  },
});

const refundCreate = defineTask('refund.create', {
  idempotent: false,
  async run({ order }) {
    throw systemError(`The connection broke after the refund of ${order} was sent`, 'ECONNRESET');
  },
});

const reviewText = defineTask('review.text', {
  async run({ text }) {
    throw new NeedsManual(`Is this a spam? "${text}"`);
  },
});

const reportRender = defineTask('report.render', {
  retry: { backoff: { kind: 'immediate' }, jitter: { kind: 'none' } },
  async run({ page }, task) {
    if (task.attempt < 2) throw systemError('The font server did not answer', 'ETIMEDOUT');
    return { pages: page };
  },
});

const feedFetch = defineTask('feed.fetch', {
  source: 'http:feeds.example',
  async run() {
    throw new RateLimited('20m', 'Too Many Requests: try again in 20 minutes');
  },
});

const backupCopy = defineTask('backup.copy', {
  retry: { timeout: 'none' },
  async run({ files }, task) {
    task.progress({ done: Math.floor(files / 3), total: files });
    await new Promise((resolve) => task.signal.addEventListener('abort', resolve));
    throw task.signal.reason;
  },
});

const hello = defineTask('hello', { run: async ({ name }) => ({ greeting: `Hello ${name}` }) });

const SCRIPT = '<script>globalThis.attacked = 1</script><img src=x onerror="globalThis.attacked = 1">';

/** What a hostile sender puts into every text that it controls. The right-to-left mark would turn the rest of a line around. */
const hostileTask = defineTask('hostile.input', {
  source: ({ source }) => source ?? 'hostile',
  async run({ ends, leaks, size }, task) {
    task.progress({ at: SCRIPT });
    if (ends === 'well') return { result: SCRIPT };
    const secret = process.env.PLANTED_SECRET;
    if (leaks) throw new PermanentFailure(`login with password=${secret} failed, Authorization: Bearer ${secret}`);
    throw new PermanentFailure(`${SCRIPT} \u202e reversed ${'x'.repeat(size ?? 0)}`);
  },
});

const tasks = [
  orderPush,
  invoiceSend,
  mailboxSync,
  refundCreate,
  reviewText,
  reportRender,
  feedFetch,
  backupCopy,
  hello,
  hostileTask,
];
const holdfast = await openHoldfast({ store, tasks });

const enqueueAll = (task, inputs, options) =>
  Promise.all(inputs.map((input, n) => holdfast.enqueue(task, input, options?.(n))));
const numbers = (count) => Array.from({ length: count }, (_, n) => n + 1);

/** What each type gets to do. */
const INPUTS = {
  hello: ['Ada', 'Grace', 'Edsger', 'Barbara'].map((name) => ({ name })),
  'invoice.send': numbers(7).map((n) => ({ customer: 880 + n, iban: `DE00 1234 ${n}` })),
  // The others follow when it has failed: then the source is down.
  'order.push': [{ order: 'A-1000' }],
  'mailbox.sync': ['INBOX', 'Archive', 'Sent'].map((mailbox) => ({ mailbox })),
  'refund.create': numbers(2).map((n) => ({ order: `A-${1000 + n}`, amount: '42.10' })),
  'review.text': [{ text: 'Cheap watches' }],
  'report.render': [{ page: 3 }, { page: 5 }],
  'feed.fetch': [{ feed: 'news' }],
  'backup.copy': [{ files: 90 }],
};

/** Returns the ids of the tasks that may run now. */
async function enqueue() {
  const types = Object.entries(INPUTS).filter(([type]) => only === undefined || only.includes(type));
  const receipts = await Promise.all([
    ...types.map(([type, inputs]) =>
      enqueueAll(type, inputs, () => (type === 'review.text' ? { key: 'review-1', queue: 'people' } : {})),
    ),
    ...(hostile ? [enqueueHostile()] : []),
  ]);
  if (only === undefined) await actAsPeople();
  return receipts.flat().map(({ id }) => id);
}

async function actAsPeople() {
  await Promise.all([
    // For the forecast: they are due in the next hour, and have not failed.
    enqueueAll(
      hello,
      numbers(9).map((n) => ({ name: `later ${n}` })),
      (n) => ({ delay: `${6 * (n + 1)}m` }),
    ),
    enqueueAll(hello, [{ name: 'nobody' }], () => ({ needs: { gpu: true }, queue: 'gpu' })),
    holdfast.schedules.set('nightly-report', {
      task: hello,
      input: { name: 'night' },
      cron: '0 3 * * *',
      timeZone: 'Europe/Berlin',
    }),
    holdfast.schedules.set('every-quarter', { task: hello, input: { name: 'quarter' }, cron: '*/15 * * * *' }),
  ]);
  await holdfast.schedules.pause('nightly-report', { actor: 'eva', note: 'the printer is away' });
  await holdfast.sources.hold('imap:Sent', { actor: 'eva', note: 'the mailbox moves', for: '2h' });
  await holdfast.sources.limit('http:hooks.example', {
    pace: '10/s',
    concurrency: 4,
    actor: 'eva',
    note: 'asked by the hoster',
  });
  await holdfast.pauseQueue('people', { actor: 'eva', note: 'holidays' });
}

function enqueueHostile() {
  return Promise.all([
    holdfast.enqueue(
      hostileTask,
      { ends: 'badly', [SCRIPT]: SCRIPT, source: SCRIPT },
      { key: SCRIPT, category: SCRIPT },
    ),
    holdfast.enqueue(hostileTask, { ends: 'well', text: `${SCRIPT}\u202e` }),
    holdfast.enqueue(hostileTask, { ends: 'badly', size: 10_000_000 }),
    holdfast.enqueue(hostileTask, { ends: 'badly', leaks: true }),
  ]);
}

/** Whether a task has done what it does at once: only tasks that are held, wait, run on or have ended are left. */
const settled = new Set();
const running = new Set();
let heard = () => {};
const worker = () =>
  holdfast.work({
    name: 'mill-1',
    concurrency: 10,
    pollInterval: '100ms',
    onEvent(event) {
      const task = event.task?.lease?.task;
      if (event.kind === 'started') running.add(task);
      if (event.kind === 'settled') settled.add(task);
      heard();
    },
  });

async function until(isTrue) {
  while (!isTrue()) {
    await new Promise((resolve) => {
      heard = resolve;
    });
  }
}

const ids = await enqueue();
const working = worker();
process.once('SIGTERM', () => working.stop({ grace: '1s' }));
const enqueued = await Promise.all(ids.map((id) => holdfast.get(id)));
const endless = enqueued.filter(({ type }) => type === 'backup.copy').map(({ id }) => id);
// Of the source that is down, of the one that is held and of the paused queue, some never start.
const sure = enqueued.filter(
  ({ type, source, queue }) =>
    type !== 'backup.copy' && type !== 'order.push' && source !== 'imap:Sent' && queue !== 'people',
);
const [firstOrder] = enqueued.filter(({ type }) => type === 'order.push').map(({ id }) => id);
if (firstOrder !== undefined) {
  await until(() => settled.has(firstOrder));
  const orders = await enqueueAll(
    orderPush,
    numbers(11).map((n) => ({ order: `A-${1000 + n}` })),
  );
  await until(() => orders.some(({ id }) => settled.has(id)));
}
await until(() => sure.every(({ id }) => settled.has(id)) && endless.every((id) => running.has(id)));
stdout.write('"filled"\n');
await working.finished;
await holdfast.close();
