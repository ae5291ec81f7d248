import { copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { openOperations } from '../../queue/operations.ts';
import { flush, isStore } from '../../store/sqlite/backup.ts';
import { sqlite } from '../../store/sqlite/index.ts';
import { inBytes } from '../../views/bytes.ts';
import { plural } from '../../views/plural.ts';
import { visible } from '../../views/visible.ts';
import type { Exit } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import type { FileStore } from '../opening/store-location.ts';
import { Problem, usage } from '../problem.ts';
import type { Subcommand } from '../subcommands.ts';
import { mayGoOn } from '../terminal/prompt.ts';

/** The files that SQLite keeps beside a database. */
const BESIDE = ['-wal', '-shm'];

export const BACKUP_COMMANDS: readonly Subcommand<object>[] = [
  {
    usage: 'backup FILE',
    summary: 'a consistent copy of the store in a new file, while workers go on',
    alsoCalled: ['dump', 'copy', 'save', 'export'],
    declare: (command) => command.argument('<file>').addHelpText('after', BACKUP_HELP),
    action: (cli, [file = '']) => backUp(cli, file),
  },
  {
    usage: 'restore [FILE]',
    summary: 'make a backup the store; what workers of before report is refused',
    declare: (command) => command.argument('[file]').addHelpText('after', RESTORE_HELP),
    action: (cli, [file]) => restore(cli, file),
  },
  {
    usage: 'vacuum',
    summary: 'give the free space in the file back to the disk',
    alsoCalled: ['compact', 'shrink', 'optimize', 'defrag'],
    declare: (command) => command.addHelpText('after', VACUUM_HELP),
    action: (cli) => vacuum(cli),
  },
];

const BACKUP_HELP = `
The copy has everything that was committed when the command began. It is checked, and gets its name only when it is whole. The output
that \`holdfast logs\` shows is not part of it. A PostgreSQL database is backed up by pg_dump or pg_basebackup.`;

const RESTORE_HELP = `
The file is checked before it becomes the store. The store of before is kept beside it under another name. Stop all workers and
programs that use the store first. Tasks that ended after the backup was made run again.
For a PostgreSQL database: restore it with pg_restore, and then run this command without FILE, so that all earlier leases end.`;

const VACUUM_HELP = `
It rewrites the file, which takes as much space again for that time, and others wait before they can write. New files give free space
back by themselves when old tasks are removed; an older file does this after its first vacuum.`;

async function backUp(cli: Cli, file: string): Promise<void> {
  const to = resolve(cli.cwd, file);
  return withStore(cli, {}, async ({ administration }, { name }) => {
    await administration.backUp(to);
    const { size } = statSync(to);
    cli.terminal.answer('db.backup', { exit: EXIT.done, store: name, file: to, bytes: size }, () =>
      cli.terminal.result(`${visible(to)} has a copy of the store (${inBytes(size)}).`),
    );
  });
}

async function vacuum(cli: Cli): Promise<void> {
  return withStore(cli, {}, async ({ administration }, { name }) => {
    const before = await administration.space();
    await administration.vacuum();
    const { bytes } = await administration.space();
    cli.terminal.answer('db.vacuum', { exit: EXIT.done, store: name, bytes_before: before.bytes, bytes }, () =>
      cli.terminal.result(`${visible(name)} takes ${inBytes(bytes)} now, and ${inBytes(before.bytes)} before.`),
    );
  });
}

// ── Restore ──

async function restore(cli: Cli, file: string | undefined): Promise<Exit> {
  const location = await cli.location();
  if (location.kind === 'postgres') return endLeases(cli, file);
  if (file === undefined) throw usage('db restore needs the backup', { hints: ['holdfast db restore FILE'] });
  const from = resolve(cli.cwd, file);
  if (!statSync(from, { throwIfNoEntry: false })?.isFile()) throw usage(`there is no file ${visible(from)}`);
  if (from === resolve(location.path)) throw usage(`${visible(from)} is the store itself`);
  await refuseUse(cli, location);
  const question = `Replace ${visible(location.name)} by ${visible(from)}?`;
  if (existsSync(location.path) && !(await mayGoOn(cli, question))) return EXIT.failed;
  const staged = `${location.path}.restoring`;
  const tasks = await stage(from, staged);
  const kept = setAside(location.path);
  renameSync(staged, location.path);
  flush(dirname(location.path), 'r');
  cli.terminal.answer('db.restore', { exit: EXIT.done, store: location.name, tasks, kept: kept ?? null }, () => {
    cli.terminal.result(`${visible(location.name)} is what ${visible(from)} was: ${plural(tasks, 'task', 'tasks')}.`);
    if (kept !== undefined) cli.terminal.result(`The store of before is kept: ${visible(kept)}`);
  });
}

/** A server restores by its own tools. What is left to do is to end the leases. */
async function endLeases(cli: Cli, file: string | undefined): Promise<void> {
  if (file !== undefined) {
    throw usage('a PostgreSQL database is restored by its own tools', {
      hints: [`pg_restore --dbname=… ${visible(file)}`, `then: ${cli.command('db restore')}`],
    });
  }
  await withStore(cli, {}, async ({ administration }, { name }) => {
    await administration.endLeases();
    cli.terminal.answer('db.restore', { exit: EXIT.done, store: name, tasks: null, kept: null }, () =>
      cli.terminal.result(`All leases in ${visible(name)} are ended: its running tasks are recovered and run again.`),
    );
  });
}

/** @throws Problem if a process uses the store. A damaged store cannot be asked, and may be replaced. */
async function refuseUse(cli: Cli, { path, name }: FileStore): Promise<void> {
  if (!existsSync(path)) return;
  try {
    await withStore(cli, {}, async (holdfast) => {
      const alive = (await holdfast.workers()).filter(({ keepsTasks }) => keepsTasks);
      if (alive.length > 0) {
        const names = alive.map((worker) => visible(worker.name)).join(', ');
        throw new Problem('state_conflict', `workers use the store: ${names}`, { hints: ['stop them first'] });
      }
    });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'store_corrupt')) throw error;
    return;
  }
  // The last connection removes the log when it closes.
  if (existsSync(`${path}-wal`)) {
    throw new Problem('state_conflict', `another process has ${visible(name)} open`, { hints: ['stop it first'] });
  }
}

/** Copies a backup to its place on the same disk, checks it, ends its leases, and returns how many tasks it has. */
async function stage(from: string, to: string): Promise<number> {
  const leftovers = () => {
    for (const end of ['', ...BESIDE]) rmSync(`${to}${end}`, { force: true });
  };
  leftovers();
  try {
    if (existsSync(`${from}-wal`)) {
      throw usage(`${visible(from)} is in use, or was copied without its log ${visible(`${from}-wal`)}`, {
        hints: ['make a backup with: holdfast db backup FILE'],
      });
    }
    copyFileSync(from, to);
    if (!(await isStore(to))) throw usage(`${visible(from)} is not a store of Holdfast`);
    const staged = await openOperations(sqlite(to), () => Promise.reject(new Error('No policy is asked for.')));
    try {
      const broken = await staged.administration.verify();
      if (broken.length > 0)
        throw new Problem('store_corrupt', `${visible(from)} is damaged`, { why: broken.slice(0, 5) });
      await staged.administration.endLeases();
      const { byState } = await staged.counts();
      return Object.values(byState).reduce((sum, count) => sum + count, 0);
    } finally {
      await staged.close();
      flush(to, 'r+');
    }
  } catch (error) {
    leftovers();
    throw error;
  }
}

/** Renames the store of before, with its log, and returns its new name. */
function setAside(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const kept = `${path}.before-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;
  for (const end of [...BESIDE, '']) if (existsSync(`${path}${end}`)) renameSync(`${path}${end}`, `${kept}${end}`);
  return kept;
}
