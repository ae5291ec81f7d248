import type { InvalidConfigError } from '../errors.ts';
import type { Operations } from '../queue/operations.ts';
import { inBytes } from '../views/bytes.ts';
import { visible } from '../views/visible.ts';
import type { CommandLine } from './command-line.ts';
import { type Attention, seenStatus } from './status.ts';

const LARGE_LOG_BYTES = 256_000_000;
const MUCH_FREE_BYTES = 100_000_000;
const MANY_DEAD_ROWS = 1_000_000;

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
export interface Check {
  readonly check: string;
  readonly found: string;
  /** Absent: it is sound. */
  readonly action?: string;
}

/** What is looked at in the store, whichever process asks: itself, its clock and its workers. */
export async function storeChecks(
  commands: CommandLine,
  holdfast: Operations,
  refused: InvalidConfigError | undefined,
): Promise<readonly Check[]> {
  const { attention } = await seenStatus(commands, holdfast, refused, true);
  return [
    ...(await ofStore(commands, holdfast)),
    ...attention
      .filter(({ kind }) => FROM_STATUS.includes(kind))
      .map(({ kind, text, command }) => ({ check: kind, found: text, action: command })),
    ...(await ofWorkers(commands, holdfast)),
  ];
}

/** The document of `holdfast doctor --json`. */
export function doctorContent(checks: readonly Check[], exit: number): object {
  const items = checks.map(({ check, found, action }) => ({
    check,
    ok: action === undefined,
    found,
    action: action ?? null,
  }));
  return { exit, items };
}

/** Whether all is sound. */
export function isSound(checks: readonly Check[]): boolean {
  return checks.every(({ action }) => action === undefined);
}

async function ofStore(commands: CommandLine, holdfast: Operations): Promise<Check[]> {
  const { durability, schema, driver, kind } = holdfast.describe();
  const { bytes, free = 0, log = 0, deadRows = 0 } = await holdfast.administration.space();
  const lossy = 'acknowledged tasks may be lost when the power goes (fsync or synchronous_commit is off)';
  return [
    durability === 'full'
      ? { check: 'durability', found: 'each commit waits for the disk' }
      : { check: 'durability', found: lossy, action: "set fsync and synchronous_commit to 'on' in the server" },
    { check: 'schema', found: `${schema}, which this version uses (${driver})` },
    free > MUCH_FREE_BYTES && free > bytes / 2
      ? {
          check: 'size',
          found: `${inBytes(free)} of ${inBytes(bytes)} are free`,
          action: commands.command('db vacuum'),
        }
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

/** Workers that keep their tasks although their lease has run out: their process lives, but does not renew. */
async function ofWorkers(commands: CommandLine, holdfast: Operations): Promise<Check[]> {
  const now = holdfast.now();
  return (await holdfast.workers())
    .filter(({ keepsTasks, leaseUntil }) => keepsTasks && leaseUntil < now)
    .map(({ id, name, running }) => ({
      check: 'stuck_lease',
      found: `worker ${visible(name)} lives but does not renew the lease of its ${running} tasks`,
      action: commands.command(`workers end ${id}`),
    }));
}
