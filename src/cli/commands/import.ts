import type { Command } from 'commander';
import { text } from '../../options.ts';
import { LONGEST_NOTE } from '../../queue/operate.ts';
import type { Operations } from '../../queue/operations.ts';
import type { ImportedTask } from '../../store/store.ts';
import type { ImportState } from '../../task.ts';
import { plural } from '../../views/plural.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { hintAtWorkersFor } from '../flags/record-flags.ts';
import { type Input, openInput } from '../import/input.ts';
import { mappedInput, readMapping } from '../import/mapping.ts';
import { ImportReader, type Objection } from '../import/reader.ts';
import { emptyTally, Interruption, type Tally, type Walk, walk } from '../import/walk.ts';
import { withStore } from '../opening/open-store.ts';
import { Problem, problemOf, usage } from '../problem.ts';
import { report } from '../report.ts';
import { onInterrupt } from '../terminal/interrupts.ts';
import { ProgressBar } from '../terminal/progress-bar.ts';

interface Flags {
  readonly from?: string;
  readonly keys?: string;
  readonly map?: string;
  readonly note?: string;
  readonly skipInvalid?: boolean;
  readonly dryRun?: boolean;
}

export function declare(command: Command): void {
  command
    .argument('[file]')
    .option('--from <file>', 'the same as FILE')
    .option('--keys <name>', 'for lines without a key: one of this name, the number of the line and what it holds')
    .option('--map <mapping>', 'a YAML file that says how the rows of FILE (CSV, JSON, JSONL, SQLite) become tasks')
    .option('--note <text>', 'a word about it, for the history of each task (default: the file and the line)')
    .option('--skip-invalid', 'leave out the lines that are refused, and record the others')
    .option('-n, --dry-run', 'check every line, and record nothing')
    .addHelpText('after', HELP);
  act<Flags>(command, (cli, args, flags) => importFile(cli, fileOf(args, flags), flags));
}

const HELP = `
FILE holds one JSON object a line; - is stdin.
  type        required; of the others only key is
  key         what the task is recognised by: a line whose key its type has already is left alone, so that the same file can
              be imported again. Without --keys a line without one is refused
  payload     what its handler gets
  due_at      such as 2026-01-31T09:00:00Z; or delay, such as "10m"
  queue, source, priority, category, needs, idempotent, submitted_at, deadline, note
  retry       its own policy: {"max_attempts": 10, "backoff": {"kind": "exponential", "base": "5m", "cap": "24h"}}
Of a task that another queue had, as it stood there:
  state       ready or scheduled (default, by due_at), held, needs_manual, dead, succeeded or cancelled. What was running
              there is said to be ready or scheduled
  charged     the failures that counted: {"fs.locked": 3}, or [{"reason": "fs.locked", "kind": "transient", "count": 3}]
  executions, deferrals, reason, error (the last message), result, ended_at

With --map MAPPING.yaml, FILE is what the old queue has, and each of its rows is a line:
  task: { type: thumbnail, key: "job-{id}", payload: { json: args }, due_at: "{run_at}",
          state: { from: status, as: { queued: ready, failed: dead } }, charged: { reason: unknown, count: "{tries}" } }
  zone: Europe/Prague     of times that name none; for numbers as times: seconds or milliseconds
  query: SELECT * FROM jobs     for SQLite; items: the member that holds the list, for JSON

All lines of a file are checked before any is recorded: if one is refused, nothing is. Then a thousand are recorded at a time,
all or none of them. If that is interrupted, run it again. What comes through a pipe can be read only once: it is recorded up
to the first line that is refused.

Exit codes
  0    every line is recorded, now or before        1    some were left out (--skip-invalid)
  2    a line was refused, or usage                 75   interrupted: run it again`;

function fileOf([file]: readonly string[], { from }: Flags): string {
  const path = file ?? from;
  if (path === undefined || (file !== undefined && from !== undefined))
    throw usage(path === undefined ? "missing required argument 'file'" : 'FILE and --from are the same: give one');
  return path;
}

async function importFile(cli: Cli, path: string, flags: Flags): Promise<number> {
  if (flags.keys !== undefined) checkKeys(flags.keys);
  if (flags.note !== undefined) checkNote(flags.note);
  const mapping = flags.map === undefined ? undefined : readMapping(flags.map);
  const input = openInput(path);
  const interruption = new Interruption();
  const listenNoMore = onInterrupt(() => interruption.happen());
  try {
    const lines = mapping === undefined ? input : await mappedInput(path, input, mapping);
    return await importFrom(cli, lines, flags, interruption);
  } finally {
    listenNoMore();
    input.close();
  }
}

async function importFrom(cli: Cli, input: Input, flags: Flags, interruption: Interruption): Promise<number> {
  if (flags.dryRun || input.size !== undefined) {
    const nothing = async () => {};
    const checked = await walked(cli, input, flags, { verb: 'checking', interruption, take: nothing, now: Date.now });
    const stops = checked.interrupted || (checked.refused > 0 && !flags.skipInvalid);
    if (flags.dryRun || stops) return tell(cli, input, flags, checked);
  }
  return withStore(cli, { create: true }, async (holdfast) => {
    const now = () => holdfast.now();
    const tally = await walked(cli, input, flags, { verb: 'importing', interruption, take: recorder(holdfast), now });
    const exit = tell(cli, input, flags, tally);
    if ((tally.byState.ready ?? 0) > 0) await hintAtWorkersFor(cli, holdfast, {});
    return exit;
  });
}

async function walked(
  cli: Cli,
  input: Input,
  flags: Flags,
  how: Pick<Walk, 'verb' | 'interruption' | 'take'> & { readonly now: () => number },
): Promise<Tally> {
  const { keys, note, skipInvalid = false } = flags;
  const reader = new ImportReader({
    ...(keys !== undefined && { keys }),
    ...(note !== undefined && { note }),
    actor: cli.actor,
    file: input.name,
    now: how.now,
  });
  const bar = new ProgressBar(cli.terminal, cli.environment);
  const stopsAtRefusal = how.verb === 'importing' && !skipInvalid;
  const tally = emptyTally();
  try {
    return await walk({ ...how, input, reader, bar, stopsAtRefusal }, tally);
  } catch (error) {
    bar.clear();
    if (tally.recordedTo > 0) cli.terminal.warn(`${recordedTo(tally)}: run it again to go on.`);
    throw error;
  } finally {
    bar.clear();
  }
}

/** Records a batch in one transaction, and counts the results. */
function recorder(holdfast: Operations): Walk['take'] {
  return async (batch, tally) => {
    const now = holdfast.now();
    const receipts = await holdfast.administration.recordImported(batch);
    for (const [i, { created }] of receipts.entries()) {
      if (!created) {
        tally.alreadyThere += 1;
        continue;
      }
      const state = stateOf(batch[i] as ImportedTask, now);
      tally.imported += 1;
      tally.byState[state] = (tally.byState[state] ?? 0) + 1;
    }
    tally.recordedTo = tally.lines;
  };
}

function stateOf({ stands, dueAt, delay }: ImportedTask, now: number): ImportState {
  if (stands !== 'waiting') return stands;
  return (dueAt ?? now + delay) > now ? 'scheduled' : 'ready';
}

function checkKeys(keys: string): void {
  if (keys !== '' && keys.length <= 200 && visible(keys) === keys) return;
  throw usage(`--keys must be a text of 1 to 200 characters without control characters, got "${visible(keys)}"`);
}

function checkNote(note: string): void {
  try {
    text(note, '--note', LONGEST_NOTE);
  } catch (error) {
    throw usage(visible(problemOf(error).message), { cause: error });
  }
}

// ── What is said at the end ──

function tell(cli: Cli, input: Input, flags: Flags, tally: Tally): number {
  const exit = exitOf(tally, flags);
  const { terminal } = cli;
  const content = { exit, dry_run: flags.dryRun ?? false, ...tallyJson(tally) };
  terminal.answer('import', content, () => tellInWords(cli, input, flags, tally));
  return exit;
}

function tellInWords(cli: Cli, input: Input, flags: Flags, tally: Tally): void {
  if (tally.refused > 0) tellRefused(cli, input, flags, tally);
  if (tally.interrupted) {
    const all = tally.recordedTo === 0 ? 'nothing was recorded' : recordedTo(tally);
    cli.terminal.warn(`Interrupted; ${all}. Run it again to go on.`);
  }
  if (flags.dryRun) cli.terminal.result(`${plural(tally.good, 'task', 'tasks')} can be imported; nothing was recorded`);
  else if (tally.recordedTo > 0 || exitOf(tally, flags) === EXIT.done) tellRecorded(cli, tally);
}

function exitOf({ refused, interrupted }: Tally, flags: Flags): number {
  if (interrupted) return EXIT.notFinished;
  if (refused === 0) return EXIT.done;
  return flags.skipInvalid ? EXIT.failed : EXIT.usage;
}

function tellRecorded({ terminal }: Cli, { imported, alreadyThere, byState }: Tally): void {
  const states = Object.entries(byState).map(([state, count]) => `${count} ${state}`);
  const which = states.length === 0 ? '' : `: ${states.join(', ')}`;
  const glyph = terminal.out.glyph('succeeded');
  terminal.result(`${glyph} ${plural(imported, 'task', 'tasks')} imported${which}`);
  if (alreadyThere > 0) terminal.result(`  ${plural(alreadyThere, 'was', 'were')} there already, and left as they are`);
}

function tellRefused(cli: Cli, input: Input, flags: Flags, tally: Tally): void {
  const { refused, objections, recordedTo: last } = tally;
  const shown = new Set(objections.map(({ line }) => line)).size;
  const why = [
    ...objections.map((objection) => objectionLine(input, objection)),
    ...(refused > shown ? [`… and ${plural(refused - shown, 'more line', 'more lines')}`] : []),
  ];
  const hints = [...new Set(objections.flatMap(({ hint }) => hint ?? []))];
  const are = plural(refused, 'line is', 'lines are');
  if (flags.skipInvalid) {
    for (const line of [`${are} refused`, ...[...why, ...hints].map((each) => `  ${each}`)]) cli.terminal.warn(line);
    return;
  }
  const rest = last === 0 ? ', so nothing was recorded' : `; ${recordedTo(tally)}`;
  report(new Problem('invalid_input', `${are} refused${rest}`, { why, hints }), cli.terminal);
}

/** `tasks.jsonl:3:15  there is no member "prioritty": did you mean "priority"?`. */
function objectionLine({ path, mapped }: Input, { line, column, text: why }: Objection): string {
  return `${path}:${line}${column === undefined || mapped ? '' : `:${column}`}  ${why}`;
}

function recordedTo({ recordedTo: last }: Tally): string {
  return last === 1 ? 'line 1 is recorded' : `lines 1 to ${last} are recorded`;
}

function tallyJson(tally: Tally): object {
  const { lines, imported, alreadyThere, refused, byState, recordedTo: last, interrupted, objections } = tally;
  return {
    interrupted,
    lines,
    imported,
    already_there: alreadyThere,
    refused,
    by_state: byState,
    recorded_to_line: last,
    problems: objections.map(({ line, column, member, code, text: detail, hint }) => ({
      line,
      column: column ?? null,
      member: member ?? null,
      code,
      detail,
      hints: hint === undefined ? [] : [hint],
    })),
  };
}
