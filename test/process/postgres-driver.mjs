// Opens a store on PostgreSQL, says so, and closes it when it is told to. Says what went wrong, if anything did.
import { once } from 'node:events';
import { systemClock } from '../../dist/clock.js';
import { postgres } from '../../dist/store/postgres/index.js';

const [url, options] = process.argv.slice(2);
const { listens, enqueues, ...rest } = JSON.parse(options);
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

const told = once(process.stdin, 'data');
const store = await postgres(url, rest).open({ clock: systemClock, random: Math.random });
if (listens) await new Promise((resolve) => store.upkeep.onNews(resolve));
say('opened');
await told;
process.stdin.destroy();
if (enqueues) {
  const task = { type: 'mail', queue: 'default', source: 'imap:INBOX', priority: 0, payload: '{}', delay: 0 };
  await store.tasks.enqueue([task]);
}
await store.upkeep.close();
say('closed');
