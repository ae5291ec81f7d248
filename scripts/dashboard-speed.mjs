// Measures each GET of the dashboard's API on a store, such as a large one (npm run large-store).
//   npm run dashboard:speed -- FILE.db|postgres://… [--calls 20] [--limit 200]
// Prints processor time, which on SQLite is all that a call takes: other programs on the machine do not change it. Fails if the 95th
// percentile of a call is over the limit in milliseconds.
import { parseArgs } from 'node:util';
import { createDashboard } from '../dist/dashboard/index.js';
import { openHoldfast } from '../dist/index.js';
import { postgres } from '../dist/store/postgres/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { calls: { type: 'string', default: '20' }, limit: { type: 'string', default: '200' } },
});
const [place] = positionals;
if (place === undefined) throw new Error('Name a store: npm run dashboard:speed -- FILE.db');
const holdfast = await openHoldfast({ store: /^postgres/.test(place) ? postgres(place) : sqlite(place) });
const dashboard = createDashboard(holdfast, { authorize: 'anyone', readOnly: true });

const get = async (path) => {
  const answer = await dashboard.fetch(new Request(`http://localhost/api/v1/${path}`));
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  return answer.json();
};
const first = async (filter) => (await get(`tasks?limit=1&filter=${encodeURIComponent(filter)}`)).items[0];
const [dead, asks, scheduled] = [
  await first('state:dead'),
  await first('state:needs_manual'),
  await first('state:scheduled'),
];
const [group] = (await get('failures')).items;
const paths = [
  'me',
  'status',
  'tasks',
  'tasks?filter=state:dead',
  `tasks?filter=${encodeURIComponent(`state:dead reason:${dead.reason}`)}`,
  `tasks?filter=${encodeURIComponent(`type:${dead.type}`)}`,
  `tasks?filter=${encodeURIComponent('error:timed')}`,
  'tasks?held=true',
  ...[dead, asks, scheduled].flatMap((task) => (task ? [`tasks/${task.id}`, `tasks/${task.id}/explain`] : [])),
  'inbox',
  'failures',
  ...(group ? [`failures/${group.id}`] : []),
  'sources',
  `sources/${encodeURIComponent(dead.source)}`,
  'queues',
  'workers',
  'schedules',
  'redrives',
  'stats?since=24h&bin=30m',
  'forecast?within=1h',
  'audit',
  'filter/complete?text=source:a',
];
let isSlow = false;
for (const path of paths) {
  const times = [];
  for (let i = 0; i < Number(values.calls); i++) {
    const began = process.cpuUsage();
    await get(path);
    const { user, system } = process.cpuUsage(began);
    times.push((user + system) / 1_000);
  }
  times.sort((a, b) => a - b);
  const [median, p95] = [0.5, 0.95].map((share) => times[Math.min(times.length - 1, Math.floor(times.length * share))]);
  const slow = p95 > Number(values.limit);
  isSlow ||= slow;
  console.log(
    `${p95.toFixed(1).padStart(8)} ms p95 ${median.toFixed(1).padStart(8)} ms median  ${path}${slow ? '   SLOW' : ''}`,
  );
}
await holdfast.close();
process.exitCode = isSlow ? 1 : 0;
