// @ts-check
// Reads four kinds of sources on their schedules: node examples/ingestion/main.js --config FILE --documents FOLDER --store FILE
// Without --config it shows one round over the samples and a server on this machine, and ends.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openHoldfast } from 'holdfast';
import { loadConfig } from 'holdfast/config';
import { postgres } from 'holdfast/postgres';
import { sqlite } from 'holdfast/sqlite';
import { connectors } from './connectors.js';
import { Documents } from './documents.js';
import { GithubServer } from './github-server.js';

/** @param {string} path */
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { values } = parseArgs({
  options: {
    config: { type: 'string' },
    documents: { type: 'string', default: 'documents' },
    store: { type: 'string', default: 'ingestion.db' },
    imap: { type: 'string', default: 'imaps://127.0.0.1:993' },
    github: { type: 'string', default: 'https://api.github.com' },
  },
});

if (values.config === undefined) await show();
else await serve(values.config);

/** @param {string} config */
async function serve(config) {
  const { IMAP_PASSWORD: password = '', GITHUB_TOKEN: token } = process.env;
  const { protocol, hostname: host, port } = new URL(values.imap);
  const secure = protocol === 'imaps:';
  const tasks = connectors(new Documents(values.documents), {
    imap: { host, port: Number(port) || (secure ? 993 : 143), secure, password },
    github: { url: values.github, ...(token !== undefined && { token }) },
  });
  const store = /^postgres(ql)?:/.test(values.store) ? postgres(values.store) : sqlite(values.store);
  const holdfast = await openHoldfast({ store, tasks: Object.values(tasks), config: await loadConfig(config) });
  const worker = holdfast.work({ onEvent: say });
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void worker.stop());
  await worker.finished;
  await holdfast.close();
}

async function show() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ingestion-'));
  const server = new GithubServer();
  server.repositories['octo/notes'] = ['Write it down', 'Read it again'];
  server.trouble['octo/notes'] = [{ status: 503 }];
  const tasks = connectors(new Documents(join(folder, 'documents')), {
    imap: { host: '127.0.0.1', port: 9, secure: false, password: '' },
    github: { url: await server.open() },
  });
  const config = await loadConfig(here('holdfast.yaml'));
  const holdfast = await openHoldfast({
    store: sqlite(join(folder, 'ingestion.db')),
    tasks: Object.values(tasks),
    config,
  });
  await holdfast.enqueue(tasks.localFiles, { folder: here('samples/files') });
  await holdfast.enqueue(tasks.localFiles, { folder: here('samples/nowhere') });
  await holdfast.enqueue(tasks.obsidianVault, { vault: here('samples/vault') });
  await holdfast.enqueue(tasks.imapMailbox, { user: 'ada', mailbox: 'INBOX' });
  await holdfast.enqueue(tasks.githubRepository, { repository: 'octo/notes' });
  await holdfast.work({ maxTasks: 5, concurrency: 1, onEvent: say }).finished;
  await holdfast.close();
  await server.close();
  rmSync(folder, { recursive: true });
}

/** @param {import('holdfast').WorkerEvent} event */
function say(event) {
  if (event.kind === 'settled')
    console.log(`${event.task.type} #${event.task.lease.task}: ${event.decision.because.text}`);
}
