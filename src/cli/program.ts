import { Command, type CommanderError, Option } from 'commander';
import { versionOf } from '../documents/version.ts';
import { isFilter } from '../filter.ts';
import { visible } from '../views/visible.ts';
import { EXIT, EXIT_TABLE } from './exit-codes.ts';
import { GLOBAL_FLAGS, type GlobalFlags } from './flags/global-flags.ts';
import { HELP_COLUMNS, wrapHelp } from './help-text.ts';
import { type Problem, problemOf, usage } from './problem.ts';
import { commandsLike, flagLike } from './suggest.ts';

/** A file of `commands/`: it declares the arguments, flags and action of a command. Only the command that was called is loaded. */
interface CommandModule {
  declare(command: Command): void;
}

/** A command: its name with its aliases, then its arguments; what it does; and its file. */
type Entry = readonly [usage: string, summary: string, load: () => Promise<CommandModule>];

const OTHER = 'Other';

/** All commands, in the groups and the order in which the help lists them. */
const GROUPS: Readonly<Record<string, readonly Entry[]>> = {
  'Do durable work': [
    ['run [flags] -- CMD…', 'run a command until it succeeds, by policy', () => import('./commands/run.ts')],
    ['mv [flags] SRC… DEST', 'move files and folders, and overwrite nothing', () => import('./commands/mv.ts')],
    ['http [flags] METHOD URL', 'send a request until it is delivered, by policy', () => import('./commands/http.ts')],
    [
      'enqueue TYPE [JSON]',
      'record a task of a type that a program of yours works',
      () => import('./commands/enqueue.ts'),
    ],
    [
      'import FILE.jsonl',
      'record many tasks from a file, also those of another queue',
      () => import('./commands/import.ts'),
    ],
    ['worker [flags]', 'work recorded tasks until it is stopped', () => import('./commands/worker.ts')],
    ['resume [ID…|FILTER]', 'work tasks here and now (default: all unfinished)', () => import('./commands/resume.ts')],
    ['wait [ID…|FILTER]', 'wait until tasks ended or need a person', () => import('./commands/wait.ts')],
  ],
  Inspect: [
    [
      'status [--check|--summary]',
      'one screen: what is wrong, and what to do first',
      () => import('./commands/status.ts'),
    ],
    ['list|ls [FILTER]', 'tasks, the newest first', () => import('./commands/list.ts')],
    ['show ID', 'everything about one task', () => import('./commands/show.ts')],
    [
      'explain ID|--error JSON',
      'why a task waits, what happens next; at another time; what if it fails',
      () => import('./commands/explain.ts'),
    ],
    ['top [--once]', 'the same screen, live', () => import('./commands/top.ts')],
    [
      'stats [FILTER]',
      'how executions went: successes, failures, retries, by type and reason',
      () => import('./commands/stats.ts'),
    ],
    [
      'inbox [FILTER]',
      'what needs a person: what happened, since when, and how to answer',
      () => import('./commands/inbox.ts'),
    ],
    [
      'quarantine [list|show|retry]',
      'what is dead or needs a person, by type and reason; puts it back',
      () => import('./commands/quarantine.ts'),
    ],
    [
      'failures [FILTER|show|acknowledge|mute|resolve|reopen|note ID]',
      'groups of alike failures: how often, since when, and whether a retry helps',
      () => import('./commands/failures.ts'),
    ],
    ['events [FILTER] [-f]', 'what happened to tasks, and what happens (-f)', () => import('./commands/events.ts')],
    ['logs ID [-f]', 'what the executions of a task printed', () => import('./commands/logs.ts')],
    [
      'sources [hold|release NAME]',
      'held sources and what waits; holds and releases sources',
      () => import('./commands/sources.ts'),
    ],
    [
      'queues [pause|resume|order NAME]',
      'what waits and runs in each queue; pauses and orders queues',
      () => import('./commands/queues.ts'),
    ],
    [
      'schedules [show|pause|resume|run|remove NAME]',
      'tasks that are enqueued by the clock: their times, and what came of them',
      () => import('./commands/schedules.ts'),
    ],
    [
      'workers [end WORKER…]',
      'running workers and their tasks; ends a stuck worker',
      () => import('./commands/workers.ts'),
    ],
    [
      'ui [--port N] [--open] [--read-only]',
      'the dashboard in a browser, and its JSON API',
      () => import('./commands/ui.ts'),
    ],
  ],
  Actions: [
    ['retry ID…|FILTER', 'make tasks due now; ended tasks start a new round', () => import('./commands/retry.ts')],
    [
      'redrive FILTER --note TEXT [--rate 10/s] [--dry-run]',
      'put many ended tasks back: a few first, then at a rate',
      () => import('./commands/redrive.ts'),
    ],
    [
      'redrives [show|pause|resume|cancel ID]',
      'how far redrives are; pauses, resumes and cancels them',
      () => import('./commands/redrives.ts'),
    ],
    [
      'resolve ID|FILTER --as succeeded|retry|dead',
      'answer a task that needs a person',
      () => import('./commands/resolve.ts'),
    ],
    ['cancel ID…|FILTER', 'end tasks that wait or run', () => import('./commands/cancel.ts')],
    ['hold ID…|FILTER', 'hold waiting tasks until they are released', () => import('./commands/hold.ts')],
    ['release ID…|FILTER', 'release held tasks', () => import('./commands/release.ts')],
  ],
  Policies: [
    [
      'policies [show|validate|diff|schedule|test]',
      'how failures are answered, and where that is set; checks, tests',
      () => import('./commands/policies.ts'),
    ],
    [
      'classify [MESSAGE] [--type TYPE]',
      'what kind of failure an error is (JSON on stdin, or a message)',
      () => import('./commands/classify.ts'),
    ],
  ],
  [OTHER]: [
    [
      'db [prune [FILTER]|backup|restore|vacuum]',
      'where the store is, its size; backups, old tasks, free space',
      () => import('./commands/db.ts'),
    ],
    [
      'doctor [--deep]',
      'is the store, the disk and the clock sound, and what to do',
      () => import('./commands/doctor.ts'),
    ],
    [
      'service [print|install]',
      'a service of systemd or launchd that runs a worker',
      () => import('./commands/service.ts'),
    ],
    ['completion bash|zsh|fish', 'completion for your shell', () => import('./commands/completion.ts')],
    [
      'bug-report',
      'versions, counts and findings, without names and contents',
      () => import('./commands/bug-report.ts'),
    ],
    ['version [--json]', 'the versions of holdfast and Node', () => import('./commands/version.ts')],
  ],
};

const ENTRIES = Object.entries(GROUPS).flatMap(([group, entries]) =>
  entries.map(([usage, summary, load]) => {
    const [, name = '', alias, words = ''] = /^([\w-]+)(?:\|(\w+))? ?(.*)$/.exec(usage) ?? [];
    return { name, alias, arguments: words, group, summary, load };
  }),
);

/** Node replaces bytes that are not UTF-8 by U+FFFD, so the argument could name something else than was meant. */
function refuseBrokenText(args: readonly string[]): void {
  const broken = args.find((arg) => arg.includes('\ufffd'));
  if (broken !== undefined) throw usage(`${visible(broken)} is not valid UTF-8, so what it names cannot be recorded`);
}

/** The program for these arguments. Only the command that they name is loaded. */
export async function programFor(args: readonly string[], write: (text: string) => void): Promise<Command> {
  refuseBrokenText(args);
  const program = new Command('holdfast')
    .description('Durable commands, file moves and HTTP requests: what fails is retried, and nothing is lost.')
    .version(versionOf(), '-V, --version', 'the version of holdfast')
    .commandsGroup(OTHER)
    .helpCommand('help [command]', 'the flags of a command')
    .configureHelp({
      helpWidth: HELP_COLUMNS,
      subcommandTerm: (command) => shortTerm([command.name(), ...command.aliases()].join('|'), command.usage()),
    })
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ writeOut: (text) => write(wrapHelp(text)), writeErr: () => {}, outputError: () => {} })
    .addHelpText('after', footer);
  addGlobalFlags(program);
  const wanted = wordsOf(args);
  const called = wanted[0] === 'help' ? wanted[1] : wanted[0];
  for (const entry of ENTRIES) await addCommand(program, entry, called);
  return program;
}

/** A command in a list of commands. Long arguments are left to its own help. */
function shortTerm(name: string, usage: string): string {
  const whole = `${name} ${usage}`.trimEnd();
  return whole.length <= LONGEST_TERM ? whole : `${name} …`;
}

const LONGEST_TERM = 24;

/**
 * The arguments, in which a term such as `-type:report` is no flag `-t`: a space before it says so to the parser of flags, and means
 * nothing in a filter.
 */
export function withTerms(args: readonly string[]): readonly string[] {
  if (!/FILTER|^\[list/.test(entryOf(wordsOf(args)[0])?.arguments ?? '')) return args;
  return args.map((arg) => (arg.startsWith('-') && isFilter(arg) ? ` ${arg}` : arg));
}

/** The problem for an error that nothing caught. `run` has an exit code of its own for it. */
export function problemOfCrash(error: unknown, args: readonly string[]): Problem {
  const problem = problemOf(error);
  return wordsOf(args)[0] === 'run' ? problem.endingWith(EXIT.runFailed) : problem;
}

/** An error of commander in our words; undefined for help and version, which it throws too. */
export function problemOfCommander(error: CommanderError, args: readonly string[]): Problem | undefined {
  if (error.exitCode === 0) return undefined;
  const [called, about] = wordsOf(args);
  if (called === 'help' && about !== undefined) return unknownCommand(about);
  if (error.code === 'commander.help')
    return usage('a command is missing', { hints: ['all commands: holdfast --help'] });
  if (error.code === 'commander.unknownCommand') return unknownCommand(called ?? '');
  const entry = entryOf(called);
  const [said = '', nearest] = error.message.replace(/^error: /, '').split('\n');
  const flag = /^unknown option '([^']+)'/.exec(said)?.[1];
  const meant =
    (flag && flagLike(flag, entry?.arguments.includes('FILTER') ?? false)) ??
    /\bDid you mean (?:one of )?(.+)\?\)/.exec(nearest ?? '')?.[1];
  return usage(visible(said), {
    hints: [
      ...(meant === undefined ? [] : [`did you mean ${meant}?`]),
      ...(entry
        ? [`holdfast ${entry.name} ${entry.arguments}`, `all flags: holdfast ${entry.name} --help`]
        : ['holdfast --help']),
    ],
  });
}

/** The names of all commands, with their aliases. */
export function commandNames(): string[] {
  return [...ENTRIES.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias])), 'help'];
}

/** The arguments of a command as its help shows them: `ID…`. */
export function argumentsOf(command: string): string {
  return entryOf(command)?.arguments ?? '';
}

function unknownCommand(word: string): Problem {
  const likely = commandsLike(word, commandNames());
  return usage(`there is no command "${visible(word)}"`, {
    hints: [
      ...(likely.length > 0 ? [`did you mean: holdfast ${likely.join(', or holdfast ')}?`] : []),
      `to run it durably: holdfast run -- ${visible(word)} …`,
      'all commands: holdfast --help',
    ],
  });
}

// ── Commands ──

async function addCommand(
  program: Command,
  entry: (typeof ENTRIES)[number],
  called: string | undefined,
): Promise<void> {
  const command = program.command(entry.name).summary(entry.summary).description(entry.summary).helpGroup(entry.group);
  if (entry.alias !== undefined) command.alias(entry.alias);
  command.usage(entry.arguments);
  if (entryOf(called) !== entry) return;
  const { declare } = await entry.load();
  declare(command);
  for (const each of [command, ...command.commands]) addGlobalFlags(each);
}

function entryOf(word: string | undefined) {
  return ENTRIES.find(({ name, alias }) => word !== undefined && (name === word || alias === word));
}

/** The words before any flag of a command: the command's name, and after `help` the one that it is about. */
function wordsOf(args: readonly string[]): string[] {
  const words: string[] = [];
  for (let i = 0; i < args.length && words.length < 2; i += 1) {
    const arg = args[i] as string;
    if (arg === '--') break;
    if (['-s', '--store', '-c', '--config'].includes(arg)) i += 1;
    else if (!arg.startsWith('-')) words.push(arg);
    else if (words.length > 0) break;
  }
  return words;
}

// ── Flags of all commands ──

const SHARED = 'Flags of all commands';

function addGlobalFlags(command: Command): void {
  command.addHelpOption(new Option('-h, --help', 'show this help').helpGroup(SHARED));
  for (const { flags, attribute, help } of GLOBAL_FLAGS) {
    if (command.options.some((own) => own.attributeName() === attribute)) continue;
    const option = new Option(flags, help).helpGroup(SHARED);
    if (attribute === 'verbose') option.argParser((_, before: unknown) => Number(before ?? 0) + 1);
    command.addOption(option);
  }
}

/**
 * The flags that matter for showing a problem, read from arguments that cannot be parsed or are not parsed yet. Arguments after `--`
 * belong to another program.
 */
export function flagsAmong(args: readonly string[]): GlobalFlags {
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined);
  const verbose = own.map((arg) => (arg === '--verbose' ? 1 : /^-v+$/.test(arg) ? arg.length - 1 : 0));
  return {
    json: own.some((arg) => arg === '--json' || arg.startsWith('--json=')),
    color: !own.includes('--no-color'),
    verbose: verbose.reduce((sum: number, each) => sum + each, 0),
  };
}

function footer(): string {
  const width = Math.max(...EXIT_TABLE.map(([code]) => code.length));
  const codes = EXIT_TABLE.map(([code, meaning]) => `  ${code.padEnd(width)}  ${meaning}`);
  return `
Exit codes (run has its own: holdfast run --help)
${codes.join('\n')}

The store is named by --store, HOLDFAST_STORE or store: of the configuration: a path, or postgres://user@host/database (its
password may come from PGPASSWORD or ~/.pgpass). Else it is the nearest .holdfast/ folder upwards, else ~/.local/state/holdfast.
Policies are read from holdfast.yaml, .yml or .json here or beside .holdfast/, else from ~/.config/holdfast/config.yaml.
IDs are numbers (12, #12) or keys. Durations: 90s, 10m, 1h30m, 2d. Times: 14:30, tomorrow 9:00, +2h, 2026-01-31T09:00Z.
`;
}
