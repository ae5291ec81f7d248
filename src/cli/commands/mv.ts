import { lstatSync, statSync } from 'node:fs';
import { basename, join, resolve, sep } from 'node:path';
import type { Command } from 'commander';
import type { Policy } from '../../failure/policy.ts';
import { presets } from '../../failure/presets.ts';
import type { MoveInput } from '../../handlers/move.ts';
import { taskJson } from '../../views/json-shapes.ts';
import { FILE_MOVE } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { addRecordFlags, enqueueOptions, type RecordFlags } from '../flags/record-flags.ts';
import { recordAndWork } from '../foreground/record-and-work.ts';
import { usage } from '../problem.ts';
import { sourceOfMove } from '../types/default-source.ts';

interface Flags extends RecordFlags {
  readonly plain?: boolean;
}

export function declare(command: Command): void {
  command.argument('<paths...>');
  addRecordFlags(command);
  command
    .option('--plain', 'one plain policy for every failure: 10 attempts, exponential 5m ×2 ≤ 24h, then dead')
    .addHelpText(
      'after',
      `
One task for each SRC. DEST is a new name, or a folder that exists; several SRCs need a folder. All are recorded first, then
moved one after the other. What exists at the destination is never replaced: a person is asked. A file that is locked, or
that may not be moved, is tried again as long as its policy says.`,
    );
  act<Flags>(command, mv);
}

async function mv(cli: Cli, paths: readonly string[], flags: Flags): Promise<number> {
  const moves = movesFrom(paths, cli.cwd);
  for (const name of ['key', 'unique'] as const) {
    if (flags[name] === undefined || moves.length < 2) continue;
    throw usage(`--${name} names one task, and there are ${moves.length} sources`, {
      hints: ['one call for each source'],
    });
  }
  if (flags.plain && flags.policy !== undefined) throw usage('--plain and --policy contradict each other: choose one');
  // A key may belong to a move that is done, whose source does not exist any more.
  if (flags.key === undefined) for (const { from } of moves) refuseMissing(from);
  return recordAndWork(cli, {
    name: 'mv',
    type: FILE_MOVE,
    flags,
    inputs: moves,
    preferHere: false,
    endsOnStdout: true,
    options: (move, now, ofType) => ({
      ...optionsFor(flags, now, ofType),
      source: sourceOfMove(move as MoveInput),
    }),
    async check({ administration }) {
      if (flags.key === undefined || (await administration.findByKey(flags.key, FILE_MOVE))) return;
      refuseMissing((moves[0] as MoveInput).from);
    },
    content: (tasks) => ({ items: tasks.map(taskJson) }),
  });
}

function optionsFor(flags: Flags, now: number, ofType?: Policy) {
  const chosen = flags.plain ? presets.fileMovePlain : undefined;
  return enqueueOptions(flags, FILE_MOVE, now, { chosen, ...(ofType && { ofType }) });
}

// ── What is recorded ──

/**
 * One move for each source, in absolute paths: a worker has another current folder.
 * @throws Problem if the destination makes no sense, or if two sources would get one name.
 */
function movesFrom(paths: readonly string[], cwd: string): MoveInput[] {
  const sources = paths.slice(0, -1);
  const destination = paths.at(-1) as string;
  if (sources.length === 0) {
    throw usage('mv needs a source and a destination', { hints: ['holdfast mv [flags] SRC… DEST'] });
  }
  if (paths.includes('')) throw usage('an empty path was given');
  const to = resolve(cwd, destination);
  const into = isFolder(to);
  if (!into && sources.length > 1) {
    throw usage(`${sources.length} sources need a folder to go to, and ${visible(destination)} is none`, {
      hints: [`mkdir -p ${visible(destination)}`],
    });
  }
  if (!into && /[/\\]$/.test(destination)) {
    throw usage(`there is no folder ${visible(destination)}`, { hints: [`mkdir -p ${visible(destination)}`] });
  }
  const moves = sources.map((source) => {
    const from = resolve(cwd, source);
    return { from, to: into ? join(to, basename(from)) : to };
  });
  refuseNamesakes(moves);
  return moves;
}

function refuseNamesakes(moves: readonly MoveInput[]): void {
  const byName = new Map<string, string>();
  for (const { from, to } of moves) {
    if (from === to) throw usage(`${visible(from)} is there already: source and destination are the same`);
    if (to.startsWith(from + sep)) throw usage(`${visible(from)} cannot go into itself, to ${visible(to)}`);
    const other = byName.get(to);
    if (other !== undefined) throw usage(`${visible(other)} and ${visible(from)} would both become ${visible(to)}`);
    byName.set(to, from);
  }
}

/** A path that does not exist is a mistake. One that cannot be checked now, as on an unavailable share, may exist later. */
function refuseMissing(path: string): void {
  if (isMissing(path)) throw usage(`there is no ${visible(path)}, so nothing was recorded`);
}

function isMissing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
