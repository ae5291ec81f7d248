// A worker process whose tasks call a server, on the built package: node outage-worker.mjs KIND WHERE URL
// It prints "working" when it works. SIGTERM stops it.
import { argv, pid, stdout } from 'node:process';
import { defineTask, openHoldfast } from '../../dist/index.js';
import { postgres } from '../../dist/store/postgres/index.js';
import { sqlite } from '../../dist/store/sqlite/index.js';

const [kind, where, url] = argv.slice(2);

const call = defineTask('call', {
  async run(_, { signal }) {
    const response = await fetch(url, { signal, headers: { 'x-worker': String(pid) } });
    await response.arrayBuffer();
    if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}`), { status: response.status });
  },
});
const holdfast = await openHoldfast({ store: kind === 'sqlite' ? sqlite(where) : postgres(where), tasks: [call] });
const worker = holdfast.work({ name: `worker-${pid}`, concurrency: 5 });
process.once('SIGTERM', async () => {
  await worker.stop();
  await holdfast.close();
});
stdout.write('"working"\n');
