// @ts-check
// A daemon that replays the runs of a spool folder until it is stopped:
//   node examples/runs/daemon.js --spool FOLDER --service URL --store FILE [--category NAME]…
//     [--max-attempts 8] [--initial-backoff 60s] [--max-backoff 1h] [--backoff-multiplier 2]
//     [--concurrency 1] [--grace 10s]
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { replayTask } from './replay.js';
import { runLog } from './run-log.js';
import { Spool } from './spool.js';

/** How often it looks for new runs. */
const LOOK_EVERY_MS = 200;

const { values } = parseArgs({
  options: {
    spool: { type: 'string' },
    service: { type: 'string' },
    store: { type: 'string' },
    category: { type: 'string', multiple: true },
    concurrency: { type: 'string', default: '1' },
    grace: { type: 'string', default: '10s' },
    'max-attempts': { type: 'string', default: '8' },
    'initial-backoff': { type: 'string', default: '60s' },
    'max-backoff': { type: 'string', default: '1h' },
    'backoff-multiplier': { type: 'string', default: '2' },
  },
});
const { spool: folder, service, store, category: categories } = values;
if (!folder || !service || !store) throw new Error('It takes --spool FOLDER, --service URL and --store FILE.');

/** @param {string} line */
const say = (line) => process.stdout.write(`${new Date().toISOString()} ${line}\n`);

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort());

const replay = replayTask({
  service,
  retry: {
    maxAttempts: Number(values['max-attempts']),
    initialBackoff: values['initial-backoff'],
    maxBackoff: values['max-backoff'],
    backoffMultiplier: Number(values['backoff-multiplier']),
  },
});
const holdfast = await openHoldfast({ store: sqlite(store), tasks: [replay] });
const spool = new Spool(folder, say);
// What lies there already is enqueued before anything starts, so that the oldest goes first.
await spool.discover(holdfast, replay);
holdfast.work({ concurrency: Number(values.concurrency), onEvent: runLog(say), ...(categories && { categories }) });

const isStillOn = () => setTimeout(LOOK_EVERY_MS, true, { signal: stopping.signal }).catch(() => false);
while (await isStillOn()) await spool.discover(holdfast, replay);
say(`stopping: what runs may end within ${values.grace}`);
// What has not ended by then is handed back, uncounted.
await holdfast.close({ grace: /** @type {import('holdfast').DurationInput} */ (values.grace) });
