// A worker with a configuration under watch: node config-driver.mjs DATABASE CONFIG
// 100 tasks fail, and fail again after each word about the file. Each line that it prints is a JSON value.
import { argv, stdin, stdout } from 'node:process';

const [database, file] = argv.slice(2);
const dist = new URL('../../dist/', import.meta.url);
const { openHoldfast, defineTask } = await import(new URL('index.js', dist).href);
const { sqlite } = await import(new URL('store/sqlite/index.js', dist).href);
const { loadConfig, watchConfig } = await import(new URL('config/index.js', dist).href);

const say = (what) => stdout.write(`${JSON.stringify(what)}\n`);
const TASKS = 100;

const broken = defineTask('broken', {
  run() {
    throw new Error('It broke.');
  },
});

const config = await loadConfig(file);
const holdfast = await openHoldfast({ store: sqlite(database), tasks: [broken], config });
const receipts = await holdfast.enqueueAll(broken, Array(TASKS).fill(null));

/** What was decided of how many tasks since somebody last asked. */
let decisions = new Map();
let told = 0;
const worker = holdfast.work({
  onEvent(event) {
    if (event.kind !== 'settled') return;
    const { decision } = event;
    const what = decision.next === 'scheduled' ? decision.after : decision.next;
    decisions.set(what, (decisions.get(what) ?? 0) + 1);
    told += 1;
    if (told < TASKS) return;
    say({ decided: Object.fromEntries(decisions) });
    decisions = new Map();
    told = 0;
  },
});

const again = () => Promise.all(receipts.map(({ id }) => holdfast.retry(id)));
const watching = watchConfig(file, config, {
  onReload() {
    say({ reloaded: true });
    void again();
  },
  onRefused({ problems }) {
    say({ refused: problems });
    void again();
  },
});

stdin.on('end', async () => {
  watching.close();
  await worker.stop();
  await holdfast.close();
});
stdin.resume();
