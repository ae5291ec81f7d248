import { type Command, Option } from 'commander';
import { storeContent } from '../../documents/store-content.ts';
import { parseFilter } from '../../filter.ts';
import type { Operations } from '../../queue/operations.ts';
import { REMOVABLE_STATES, type RemovableState, type Retention } from '../../retention.ts';
import type { PruneCount, PrunedTask } from '../../store/store.ts';
import type { TaskState } from '../../task.ts';
import { inBytes } from '../../views/bytes.ts';
import { signOf, stateWords } from '../../views/glyphs.ts';
import { plural } from '../../views/plural.ts';
import { rfc3339 } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import { clockTrouble } from '../../worker/clock-trouble.ts';
import { parseRetention } from '../../worker/retention-options.ts';
import type { Exit } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { filterFrom } from '../flags/filter.ts';
import { span } from '../flags/moment.ts';
import { type PruneFlags, pruneSelection } from '../flags/prune-selection.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import type { StoreLocation } from '../opening/store-location.ts';
import { removeOutput } from '../output/output-removal.ts';
import { usage } from '../problem.ts';
import { declareSubcommands } from '../subcommands.ts';
import { ProgressBar } from '../terminal/progress-bar.ts';
import { mayGoOn } from '../terminal/prompt.ts';
import { BACKUP_COMMANDS } from './db-backup.ts';

interface Flags extends PruneFlags {
  readonly dryRun?: boolean;
  readonly reset?: boolean;
  readonly accept?: boolean;
}

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, describeStore, [
    {
      usage: 'prune [FILTER] [--older-than 30d] [--state STATES] [--reason REASONS] [--dry-run]',
      summary: 'remove ended tasks whose time is up, with all that belongs to them',
      alsoCalled: ['clean', 'cleanup', 'purge', 'delete', 'remove', 'gc'],
      declare: (prune) =>
        prune
          .argument('[filter...]')
          .option('--older-than <duration>', 'that ended so long ago (default: by the retention that is configured)')
          .option('--state <states>', 'only succeeded, dead, cancelled or needs_manual; separated by commas')
          .option('--reason <reasons>', 'only with these reasons (fs.locked) or families (fs.*); separated by commas')
          .option('--dry-run', 'only count what would be removed')
          .addHelpText('after', PRUNE_HELP),
      action: (cli, terms, flags) => (terms.length > 0 ? pruneMatching(cli, terms, flags) : prune(cli, flags)),
    },
    ...BACKUP_COMMANDS,
    {
      usage: 'migrate',
      summary: 'make the tables or update them; on PostgreSQL as a role that may',
      alsoCalled: ['upgrade', 'init', 'create', 'setup'],
      action: (cli) => migrate(cli),
    },
    {
      usage: 'clock [--accept] [--reset]',
      summary: "the store's clock beside the wall clock, and what is wrong with them",
      alsoCalled: ['time'],
      declare: (clock) =>
        clock
          .option('--accept', 'the wall clock jumped ahead and is right: go by it at once')
          .addOption(
            new Option('--reset', "the store's clock is ahead and the wall clock is right: go back to it").conflicts(
              'accept',
            ),
          )
          .addHelpText('after', CLOCK_HELP),
      action: (cli, _, flags) => clock(cli, flags),
    },
  ]);
  command.addHelpText('after', '\nTells where the store is and what it is.');
}

const PRUNE_HELP = `
Workers do the same once an hour. \`retention:\` in the configuration sets how long ended tasks are kept; the default is 30 days.
Tasks that have not ended are never removed. Tasks that need a person are removed only by --state needs_manual with --older-than,
or if the configuration sets a time for them.
With a filter, it removes what matches and has ended, whatever the retention: db prune type:sync state:dead 'reason:http.*' until:7d.
What needs a person is removed only by state:needs_manual. A script needs --yes then.
The keys of removed tasks are free again. New tasks use the free space in the file; if more than a quarter of it is free, it shrinks.`;

const CLOCK_HELP = `
The clock of a store in a file follows the wall clock, but never goes backwards. If the wall clock jumps ahead by more than five
minutes, and the time since the boot does not explain it, the store ignores the jump for an hour. So a clock that is wrong for a short
time removes nothing and ends nothing. Both flags set the store's clock to the wall clock. --reset also moves the due times of retries
that were written after the jump. The first due time of a task stays; if it is too late, \`holdfast retry\` makes the task due now.`;

// ── The store ──

async function describeStore(cli: Cli): Promise<void> {
  return withStore(cli, {}, async (holdfast, location) => {
    const { name } = location;
    const content = await storeContent(holdfast, name);
    const { bytes, free_bytes: free, log_bytes: log, dead_rows: deadRows } = content;
    const { terminal } = cli;
    terminal.answer('db', content, () => {
      terminal.result(`Store       ${visible(name)}`);
      terminal.result(`Size        ${inBytes(bytes)}${free ? `, ${inBytes(free)} of it free` : ''}`);
      if (log) terminal.result(`Log         ${inBytes(log)}`);
      if (deadRows) terminal.result(`Dead rows   ${deadRows}, until PostgreSQL removes them (autovacuum)`);
      terminal.result(`Schema      ${content.schema_version}`);
      terminal.result(`Durability  ${content.durability}`);
      terminal.result(`Driver      ${content.driver}`);
    });
  });
}

// ── Migrate ──

/** Opening a store for writing migrates its tables. */
async function migrate(cli: Cli): Promise<void> {
  return withStore(cli, { create: true }, async (holdfast, { name }) => {
    const { kind, schema } = holdfast.describe();
    cli.terminal.answer('db.migrate', { exit: EXIT.done, store: name, kind, schema_version: schema }, () =>
      cli.terminal.result(`${visible(name)} is at schema ${schema}.`),
    );
  });
}

// ── Clock ──

async function clock(cli: Cli, { accept, reset }: Flags): Promise<void> {
  return withStore(cli, {}, async ({ administration }, { name }) => {
    if (accept || reset) await administration.resetClock();
    const found = await administration.clock();
    const trouble = clockTrouble(found) ?? null;
    const { terminal } = cli;
    const [now, wall] = [rfc3339(found.now), rfc3339(found.wall)];
    terminal.answer('db.clock', { store: name, now, wall, trouble }, () => {
      terminal.result(`Store       ${now}`);
      terminal.result(`Wall clock  ${wall}`);
      if (trouble === null) return;
      terminal.result(`${trouble}.`);
      const flag = found.believedIn === undefined ? '--reset' : '--accept';
      if (found.believedIn !== undefined || found.now > found.wall) {
        terminal.result(`If the wall clock is right: ${cli.command(`db clock ${flag}`)}`);
      }
    });
  });
}

// ── Prune ──

async function prune(cli: Cli, flags: Flags): Promise<Exit> {
  const config = await readConfig(cli);
  // Without a readable configuration it is unknown what is to be kept.
  if (config?.refused) throw config.refused;
  const selection = pruneSelection(flags, parseRetention(config?.registry.worker.retention));
  return withStore(cli, {}, async (holdfast, location) => {
    const found = await holdfast.administration.prunable(selection);
    if (flags.dryRun) return tell(cli, found, true);
    const total = totalOf(found);
    if (total > 0 && !(await mayGoOn(cli, questionAbout(found)))) return EXIT.failed;
    return tell(cli, await removeAll(cli, holdfast, location, selection, total), false);
  });
}

/** Removes what has ended and matches a filter now. */
async function pruneMatching(cli: Cli, terms: readonly string[], flags: Flags): Promise<Exit> {
  const named = flags.state !== undefined ? 'state' : flags.reason !== undefined ? 'reason' : undefined;
  if (named !== undefined) throw usage(`--${named} and a filter are two ways to say it: write ${named}: in the filter`);
  const age = flags.olderThan === undefined ? undefined : span(flags.olderThan, '--older-than');
  return withStore(cli, {}, async (holdfast, location) => {
    const now = holdfast.now();
    const { states: wanted, ...filter } = parseFilter(filterFrom(terms), new Date(now));
    const states = endedOnly(wanted);
    const endedBefore = age === undefined ? filter.endedBefore : Math.min(now - age, filter.endedBefore ?? now);
    const chosen = { ...filter, ...(endedBefore !== undefined && { endedBefore }) };
    const found = new Map<RemovableState, readonly number[]>();
    for (const state of states) {
      const ids = await holdfast.administration.select({ ...chosen, states: [state] });
      if (ids.length > 0) found.set(state, ids);
    }
    const counts = [...found].map(([state, ids]) => ({ state, count: ids.length }));
    if (flags.dryRun || counts.length === 0) return tell(cli, counts, flags.dryRun === true);
    if (!cli.yes && !cli.asks) {
      const what = plural(totalOf(counts), 'task matches', 'tasks match');
      throw usage(`${what}, and nobody can be asked, so nothing was removed`, {
        hints: ['look first: add --dry-run', 'without a question: add --yes'],
      });
    }
    if (!(await mayGoOn(cli, questionAbout(counts)))) return EXIT.failed;
    const removal = new Removal(cli, location, totalOf(counts));
    for (const [state, ids] of found) {
      await holdfast.administration.remove(ids, [state], (removed) => removal.count(removed));
    }
    return tell(cli, removal.end(), false);
  });
}

/** The states of a filter, without one all in which tasks have ended. */
function endedOnly(states: readonly TaskState[] | undefined): readonly RemovableState[] {
  if (!states) return REMOVABLE_STATES.filter((state) => state !== 'needs_manual');
  return states.map((state) => {
    const removable = REMOVABLE_STATES.find((each) => each === state);
    if (removable) return removable;
    throw usage(`db prune removes only what has ended, not what is ${state}`, {
      hints: [`states: ${REMOVABLE_STATES.join(', ')}`],
    });
  });
}

function questionAbout(found: readonly PruneCount[]): string {
  const needPerson = totalOf(found.filter(({ state }) => state === 'needs_manual'));
  const of = needPerson === 0 ? '' : `, of which ${needPerson} still ${needPerson === 1 ? 'needs' : 'need'} a person`;
  return `Remove ${plural(totalOf(found), 'task', 'tasks')}${of}, for good?`;
}

async function removeAll(
  cli: Cli,
  holdfast: Operations,
  location: StoreLocation,
  selection: Retention,
  expected: number,
): Promise<readonly PruneCount[]> {
  const removal = new Removal(cli, location, expected);
  await holdfast.administration.prune(selection, (removed) => removal.count(removed));
  return removal.end();
}

/** Counts removed tasks, shows how far it is, and removes what they printed. */
class Removal {
  readonly #cli: Cli;
  readonly #location: StoreLocation;
  readonly #expected: number;
  readonly #bar: ProgressBar;
  readonly #counts = new Map<string, { state: RemovableState; reason?: string; count: number }>();
  #done = 0;

  constructor(cli: Cli, location: StoreLocation, expected: number) {
    this.#cli = cli;
    this.#location = location;
    this.#expected = expected;
    this.#bar = new ProgressBar(cli.terminal, cli.environment);
  }

  count(removed: readonly PrunedTask[]): void {
    if (removed.length > 0) removeOutputOf(this.#cli, this.#location, removed);
    for (const { state, reason } of removed) {
      const name = `${state} ${reason ?? ''}`;
      const counted = this.#counts.get(name) ?? { state, ...(reason !== undefined && { reason }), count: 0 };
      counted.count += 1;
      this.#counts.set(name, counted);
    }
    this.#done += removed.length;
    const share = this.#expected === 0 ? undefined : Math.min(1, this.#done / this.#expected);
    this.#bar.update(share, () => `${this.#done} removed`);
  }

  /** What was removed, by state and reason: first what succeeded, then the most frequent. */
  end(): readonly PruneCount[] {
    this.#bar.clear();
    return [...this.#counts.values()].sort(
      (a, b) => Number(b.state === 'succeeded') - Number(a.state === 'succeeded') || b.count - a.count,
    );
  }
}

/** Removes the kept output of removed tasks. It is not part of the store, so a failure here is only a warning. */
function removeOutputOf({ terminal }: Cli, location: StoreLocation, removed: readonly PrunedTask[]): void {
  try {
    removeOutput(location, removed);
  } catch (error) {
    terminal.warn(`what removed tasks printed is still there: ${visible((error as Error).message)}`);
  }
}

function tell({ terminal }: Cli, counts: readonly PruneCount[], dryRun: boolean): void {
  const total = totalOf(counts);
  const items = counts.map(({ state, reason, count }) => ({ state, reason: reason ?? null, count }));
  terminal.answer('db.prune', { exit: EXIT.done, dry_run: dryRun, total, items }, () => {
    const rows = counts.map(({ state, reason = '', count }) => [
      signOf(state),
      stateWords(state),
      visible(reason),
      count,
    ]);
    if (total > 0) terminal.table(['', 'STATE', ['REASON', 12], 'TASKS'], rows);
    const what = plural(total, 'task', 'tasks');
    terminal.result(dryRun ? `Would remove ${what}; nothing was changed.` : `Removed ${what}.`);
  });
}

function totalOf(counts: readonly PruneCount[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0);
}
