import { readFileSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { type Attention, seenStatus } from '../../documents/status.ts';
import type { Operations } from '../../queue/operations.ts';
import { inBytes } from '../../views/bytes.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import type { StoreLocation } from '../opening/store-location.ts';

/** File systems by the number that Linux gives them. SQLite's locks do not hold on the first ones. */
const NETWORK: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  16914839: '9p',
  1397113167: 'Coda',
};
const IN_MEMORY: Readonly<Record<number, string>> = { 16914836: 'tmpfs', 2240043254: 'ramfs' };

const LEAST_DISK_BYTES = 500_000_000;
const LARGE_LOG_BYTES = 256_000_000;
const MUCH_FREE_BYTES = 100_000_000;
const MANY_DEAD_ROWS = 1_000_000;
const LEAST_FILE_HANDLES = 1_024;

/** What of `status` concerns the workers and the machine, not the tasks. */
const FROM_STATUS: readonly Attention['kind'][] = [
  'no_worker',
  'lease_lapsed',
  'worker_paused',
  'policies_differ',
  'clock',
  'config_refused',
];

/** A thing that was looked at: its state, and what to do if it is not sound. */
interface Check {
  readonly check: string;
  readonly found: string;
  /** Absent: it is sound. */
  readonly action?: string;
}

export function declare(command: Command): void {
  command
    .option('--deep', 'check the invariants of all tasks too, which reads the whole store')
    .addHelpText('after', '\nExit 8 if anything is not sound. Each line says what was found, and what to do.');
  act<{ deep?: boolean }>(command, doctor);
}

async function doctor(cli: Cli, _: readonly string[], { deep = false }: { deep?: boolean }): Promise<number> {
  const config = await readConfig(cli);
  return withStore(cli, {}, async (holdfast, location) => {
    const { attention } = await seenStatus(cli, holdfast, config?.refused, true);
    const checks = [
      ...(await ofStore(cli, holdfast)),
      ...ofDisk(location),
      ...ofProcess(),
      ...(deep ? await ofTasks(holdfast) : []),
      ...attention
        .filter(({ kind }) => FROM_STATUS.includes(kind))
        .map(({ kind, text, command }) => ({ check: kind, found: text, action: command })),
      ...(await ofWorkers(cli, holdfast)),
    ];
    const exit = checks.some(({ action }) => action !== undefined) ? EXIT.unhealthy : EXIT.done;
    const items = checks.map(({ check, found, action }) => ({
      check,
      ok: action === undefined,
      found,
      action: action ?? null,
    }));
    const { terminal } = cli;
    terminal.answer('doctor', { exit, items }, () => {
      for (const { check, found, action } of checks) {
        terminal.result(
          `${terminal.out.glyph(action === undefined ? 'succeeded' : 'dead')} ${check.replaceAll('_', ' ')}: ${found}`,
        );
        if (action !== undefined) terminal.result(`    ${terminal.out.paint('idle', action)}`);
      }
    });
    return exit;
  });
}

async function ofStore(cli: Cli, holdfast: Operations): Promise<Check[]> {
  const { durability, schema, driver, kind } = holdfast.describe();
  const { bytes, free = 0, log = 0, deadRows = 0 } = await holdfast.administration.space();
  const lossy = 'acknowledged tasks may be lost when the power goes (fsync or synchronous_commit is off)';
  return [
    durability === 'full'
      ? { check: 'durability', found: 'each commit waits for the disk' }
      : { check: 'durability', found: lossy, action: "set fsync and synchronous_commit to 'on' in the server" },
    { check: 'schema', found: `${schema}, which this version uses (${driver})` },
    free > MUCH_FREE_BYTES && free > bytes / 2
      ? { check: 'size', found: `${inBytes(free)} of ${inBytes(bytes)} are free`, action: cli.command('db vacuum') }
      : { check: 'size', found: inBytes(bytes) },
    ...(kind === 'sqlite' ? [logCheck(log)] : []),
    ...(kind === 'postgres' ? [deadRowsCheck(deadRows)] : []),
  ];
}

function logCheck(log: number): Check {
  const found = `the write-ahead log has ${inBytes(log)}`;
  const action = 'a process reads for very long: end its transaction, then the next checkpoint empties the log';
  return { check: 'log', found, ...(log > LARGE_LOG_BYTES && { action }) };
}

function deadRowsCheck(rows: number): Check {
  const action =
    'autovacuum does not keep up: look for an old transaction in pg_stat_activity, or run VACUUM on the schema of Holdfast';
  return { check: 'dead_rows', found: `${rows}`, ...(rows > MANY_DEAD_ROWS && { action }) };
}

function ofDisk(location: StoreLocation): Check[] {
  if (location.kind !== 'file') return [];
  const { type, bavail, bsize } = statfsSync(dirname(location.path));
  const network = NETWORK[type];
  const memory = IN_MEMORY[type];
  const left = bavail * bsize;
  const room = `${inBytes(left)} are left`;
  return [
    network !== undefined
      ? {
          check: 'file_system',
          found: `${network}, a network file system: locks may not hold`,
          action: 'move the store to a local disk',
        }
      : memory !== undefined
        ? {
            check: 'file_system',
            found: `${memory}: the store is gone at the next boot`,
            action: 'move the store to a disk',
          }
        : { check: 'file_system', found: 'local' },
    left < LEAST_DISK_BYTES
      ? { check: 'disk', found: room, action: 'free some space, or holdfast db prune' }
      : { check: 'disk', found: room },
  ];
}

/** The limit of this shell. A service has its own. */
function ofProcess(): Check[] {
  const limit = openFilesLimit();
  if (limit === undefined) return [];
  const found = `${limit} may be open in a process started here`;
  return [
    {
      check: 'file_handles',
      found,
      ...(limit < LEAST_FILE_HANDLES && { action: `ulimit -n ${LEAST_FILE_HANDLES * 4}` }),
    },
  ];
}

function openFilesLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // Not Linux.
    return undefined;
  }
}

async function ofTasks(holdfast: Operations): Promise<Check[]> {
  const broken = await holdfast.administration.verify();
  if (broken.length === 0) return [{ check: 'invariants', found: 'all hold' }];
  return broken.map((found) => ({
    check: 'invariants',
    found,
    action: 'holdfast bug-report, and restore a backup if tasks are missing',
  }));
}

/** Workers that keep their tasks although their lease has run out: their process lives, but does not renew. */
async function ofWorkers(cli: Cli, holdfast: Operations): Promise<Check[]> {
  const now = holdfast.now();
  return (await holdfast.workers())
    .filter(({ keepsTasks, leaseUntil }) => keepsTasks && leaseUntil < now)
    .map(({ id, name, running }) => ({
      check: 'stuck_lease',
      found: `worker ${visible(name)} lives but does not renew the lease of its ${running} tasks`,
      action: cli.command(`workers end ${id}`),
    }));
}
