// Measures each GET of the dashboard's API on a store, such as a large one (npm run large-store), and the first view in a real browser.
//   npm run dashboard:speed -- FILE.db|postgres://… [--calls 20] [--limit 200] [--only stats] [--views 5]
// Prints milliseconds: how long a call took, and the processor time that this process spent on it. Other programs of the machine lengthen
// the first; on SQLite the second is all that a call needs. Before it, `chrt -r 10` keeps other programs out of the first, if the
// server of PostgreSQL has that priority too. Fails if the 95th percentile of a call is over the limit, or a first view takes a second.
// `--views 0` opens no browser.
import { parseArgs } from 'node:util';
import { createDashboard } from '../dist/dashboard/index.js';
import { openHoldfast } from '../dist/index.js';
import { postgres } from '../dist/store/postgres/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';
import { firstViews } from './dashboard/views.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    calls: { type: 'string', default: '20' },
    limit: { type: 'string', default: '200' },
    only: { type: 'string', default: '' },
    views: { type: 'string', default: '5' },
  },
});
const [place] = positionals;
if (place === undefined) throw new Error('Name a store: npm run dashboard:speed -- FILE.db');
const isPostgres = place.startsWith('postgres');
const holdfast = await openHoldfast({ store: isPostgres ? postgres(place) : sqlite(place) });
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
  'stats?since=7d',
  'stats',
  'forecast?within=1h',
  'audit',
  'filter/complete?text=source:a',
];
const limit = Number(values.limit);
let isSlow = false;
console.log(`${['p50', 'p95', 'processor p50', 'p95'].map((head) => head.padStart(14)).join('')}  ms`);
for (const path of paths.filter((each) => each.includes(values.only))) {
  const [took, worked] = [[], []];
  for (let i = 0; i < Number(values.calls); i++) {
    const [began, before] = [performance.now(), process.cpuUsage()];
    await get(path);
    const { user, system } = process.cpuUsage(before);
    took.push(performance.now() - began);
    worked.push((user + system) / 1_000);
  }
  const shown = [took, worked].flatMap((times) => [0.5, 0.95].map((share) => percentile(times, share)));
  // On SQLite nothing is waited for, so that what other programs did meanwhile can be left out.
  const slow = (isPostgres ? shown[1] : shown[3]) > limit;
  isSlow ||= slow;
  console.log(`${shown.map((time) => time.toFixed(1).padStart(14)).join('')}  ${path}${slow ? '   SLOW' : ''}`);
}
await holdfast.close();
if (Number(values.views) > 0) {
  const views = await firstViews(place, Number(values.views));
  const [status, figures] = ['status', 'figures'].map((name) => views.map((view) => view[name]));
  isSlow ||= percentile(figures, 0.5) > 1_000;
  for (const [name, times] of [
    ['first view: what needs attention', status],
    ['first view: with the figures of the day', figures],
  ]) {
    console.log(`${times.map((time) => time.toFixed(0)).join(', ')} ms  ${name}, from the start of the navigation`);
  }
}
process.exitCode = isSlow ? 1 : 0;

function percentile(times, share) {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1];
}
