// @ts-check
// Shows the daemon at work, in a temporary folder and against a service on this machine: node examples/runs/main.js
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { ReplayService } from './service.js';

const DAEMON = fileURLToPath(new URL('daemon.js', import.meta.url));
/** A minute is long for a demonstration: here the first retry comes after a third of a second. */
const RETRY = ['--max-attempts', '3', '--initial-backoff', '300ms', '--max-backoff', '1s'];
const CATEGORIES = ['--category', 'web', '--category', 'api'];
const PATIENCE_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-runs-'));
const [spool, store] = [join(folder, 'spool'), join(folder, 'runs.db')];

const service = new ReplayService({
  'r-1': [{ status: 503 }, { status: 503 }, { verdict: 'passed' }],
  'r-2': [{ status: 422 }],
  'r-3': [{ status: 429, retryAfter: 1 }, { verdict: 'needs_review' }],
  'r-4': [{ status: 500 }],
  'r-5': ['silence', { verdict: 'failed' }],
});

/** @param {string} text */
const say = (text) => process.stdout.write(`\n── ${text}\n\n`);

/**
 * Writes a run into the spool, whole: under another name, then renamed.
 * @param {string} id
 * @param {string} submitted
 * @param {string} category
 */
function submit(id, submitted, category) {
  const run = { id, submitted, category, steps: ['open', 'click', 'compare'] };
  writeFileSync(join(spool, `${id}.tmp`), JSON.stringify(run));
  renameSync(join(spool, `${id}.tmp`), join(spool, `${id}.json`));
}

/** @param {string} url */
function startDaemon(url) {
  const args = [DAEMON, '--spool', spool, '--service', url, '--store', store, ...RETRY, ...CATEGORIES];
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  return { child, ended: once(child, 'exit') };
}

async function table() {
  const holdfast = await openHoldfast({ store: sqlite(store) });
  try {
    const tasks = await holdfast.list();
    return tasks.toReversed().map(({ key, state, category, attempts, executions, result, reason }) => {
      const verdict = Object(result).verdict ?? reason ?? '';
      return { run: key, category, state, verdict, 'failures counted': attempts, executions };
    });
  } finally {
    await holdfast.close();
  }
}

async function untilSettled() {
  for (const started = performance.now(); performance.now() - started < PATIENCE_MS; await setTimeout(100)) {
    const rows = await table();
    const open = rows.filter(({ category, state }) => category !== 'mobile' && !['succeeded', 'dead'].includes(state));
    if (rows.length === 6 && open.length === 0) return;
  }
  throw new Error('The runs were not settled within a minute: see the lines above for the last that was said of each.');
}

mkdirSync(spool);
const url = await service.open();
try {
  say('Six runs lie in the spool. The daemon takes two categories, the oldest run first.');
  submit('r-1', '2026-01-01T09:00:00Z', 'web');
  submit('r-2', '2026-01-02T09:00:00Z', 'web');
  submit('r-3', '2026-01-03T09:00:00Z', 'api');
  submit('r-4', '2026-01-04T09:00:00Z', 'web');
  submit('r-5', '2026-01-05T09:00:00Z', 'web');
  submit('r-6', '2026-01-06T09:00:00Z', 'mobile');
  const first = startDaemon(url);
  while (!service.asked.includes('r-5')) await once(service, 'asked', { signal: AbortSignal.timeout(PATIENCE_MS) });

  say(
    'The service does not answer r-5, and the daemon is killed with SIGKILL. Another one takes over, and nothing is counted.',
  );
  first.child.kill('SIGKILL');
  await first.ended;
  const second = startDaemon(url);
  await untilSettled();

  say('All that it may take is settled; SIGTERM ends it in good order.');
  second.child.kill('SIGTERM');
  await second.ended;
  console.table(await table());
} finally {
  await service.close();
  rmSync(folder, { recursive: true });
}
