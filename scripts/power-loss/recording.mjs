import { spawnSync } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const WORKLOAD = fileURLToPath(new URL('workload.mjs', import.meta.url));
const CALLS = 'pwrite64,write,fsync,fdatasync,ftruncate,unlink';

/** Runs the workload under strace, and answers what it did to its files and acknowledged, in order. */
export async function record({ dist, folder, rounds, durability }) {
  const trace = join(folder, 'trace');
  const args = [dist, folder, String(rounds), durability];
  const ended = spawnSync(
    'strace',
    ['-y', '-xx', '-s', '1000000', '-e', `trace=${CALLS}`, '-o', trace, process.execPath, WORKLOAD, ...args],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  if (ended.error) throw ended.error;
  if (ended.status !== 0) throw new Error(`The workload ended with ${ended.status ?? ended.signal}.`);
  const events = [];
  for await (const line of createInterface({ input: createReadStream(trace) })) {
    const event = eventFrom(line, folder);
    if (event) events.push(event);
  }
  return events;
}

function eventFrom(line, folder) {
  if (!/\) += +\d/.test(line)) return undefined;
  const [, call, rest] = /^(\w+)\((.*)/.exec(line) ?? [];
  if (call === 'unlink') return ofFile(textOf(/^"([^"]*)"/.exec(rest)[1]), folder, { kind: 'unlink' });
  const [, name, args = ''] = /^\d+<([^>]*)>(?:, (.*))?\) += /.exec(rest) ?? [];
  if (name === undefined) return undefined;
  const path = textOf(name);
  if (call === 'fsync' || call === 'fdatasync') {
    return path === folder ? { kind: 'sync_folder' } : ofFile(path, folder, { kind: 'sync' });
  }
  if (call === 'ftruncate') return ofFile(path, folder, { kind: 'truncate', size: Number(args) });
  const [, data, offset] = /^"([^"]*)", \d+(?:, (\d+))?/.exec(args) ?? [];
  if (data === undefined) return undefined;
  if (path === join(folder, 'acknowledged')) return { kind: 'acknowledged', text: textOf(data) };
  return call === 'pwrite64'
    ? ofFile(path, folder, { kind: 'write', offset: Number(offset), data: bytesOf(data) })
    : undefined;
}

/** Shared memory does not outlive a power cut, and SQLite makes it anew. */
function ofFile(path, folder, event) {
  const name = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : '';
  return ['tasks.db', 'tasks.db-wal', 'tasks.db-journal'].includes(name) ? { ...event, file: name } : undefined;
}

function bytesOf(text) {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex');
}

function textOf(text) {
  return text.includes('\\x') ? bytesOf(text).toString() : text;
}
