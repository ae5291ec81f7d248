import { Command, type CommanderError, Option } from 'commander';
import { visible } from '../views/visible.ts';
import { GLOBAL_FLAGS } from './action.ts';
import type { GlobalFlags } from './cli.ts';
import { EXIT, EXIT_TABLE } from './exit-codes.ts';
import { type Problem, problemOf, usage } from './problem.ts';
import { commandsLike } from './suggest.ts';
import { versionOf } from './version.ts';

/** One file of `commands/`: what it adds to a command, and what it does. Loaded only when it is called for. */
interface CommandModule {
  declare(command: Command): void;
}

interface Entry {
  readonly name: string;
  readonly alias?: string;
  readonly group: string;
  readonly arguments: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

const WORK = 'Do durable work';
const LOOK = 'Inspect';
const ACTIONS = 'Actions';
const POLICIES = 'Policies';
const OTHER = 'Other';

const ENTRIES: readonly Entry[] = [
  {
    name: 'run',
    group: WORK,
    arguments: '[flags] -- CMD…',
    summary: 'run a command until it succeeds, by policy',
    load: () => import('./commands/run.ts'),
  },
  {
    name: 'mv',
    group: WORK,
    arguments: '[flags] SRC… DEST',
    summary: 'move files and folders, and overwrite nothing',
    load: () => import('./commands/mv.ts'),
  },
  {
    name: 'http',
    group: WORK,
    arguments: '[flags] METHOD URL',
    summary: 'send a request until it is delivered, by policy',
    load: () => import('./commands/http.ts'),
  },
  {
    name: 'import',
    group: WORK,
    arguments: 'FILE.jsonl',
    summary: 'record many tasks from a file, also those of another queue',
    load: () => import('./commands/import.ts'),
  },
  {
    name: 'worker',
    group: WORK,
    arguments: '[flags]',
    summary: 'work recorded tasks until it is stopped',
    load: () => import('./commands/worker.ts'),
  },
  {
    name: 'resume',
    group: WORK,
    arguments: '[ID…]',
    summary: 'work tasks here and now (default: all unfinished)',
    load: () => import('./commands/resume.ts'),
  },
  {
    name: 'wait',
    group: WORK,
    arguments: '[ID…]',
    summary: 'wait until tasks ended or need a person',
    load: () => import('./commands/wait.ts'),
  },
  {
    name: 'status',
    group: LOOK,
    arguments: '[--check|--summary]',
    summary: 'one screen: what is wrong, and what to do first',
    load: () => import('./commands/status.ts'),
  },
  {
    name: 'list',
    alias: 'ls',
    group: LOOK,
    arguments: '[FILTER]',
    summary: 'tasks, the newest first',
    load: () => import('./commands/list.ts'),
  },
  {
    name: 'show',
    group: LOOK,
    arguments: 'ID',
    summary: 'everything about one task',
    load: () => import('./commands/show.ts'),
  },
  {
    name: 'explain',
    group: LOOK,
    arguments: 'ID|--error JSON',
    summary: 'why a task does not run, what happens next, and what if it fails',
    load: () => import('./commands/explain.ts'),
  },
  {
    name: 'logs',
    group: LOOK,
    arguments: 'ID [-f]',
    summary: 'what the executions of a task printed',
    load: () => import('./commands/logs.ts'),
  },
  {
    name: 'sources',
    group: LOOK,
    arguments: '[hold|release NAME]',
    summary: 'held sources and what waits; holds and releases sources',
    load: () => import('./commands/sources.ts'),
  },
  {
    name: 'queues',
    group: LOOK,
    arguments: '[pause|resume|order NAME]',
    summary: 'what waits and runs in each queue; pauses and orders queues',
    load: () => import('./commands/queues.ts'),
  },
  {
    name: 'workers',
    group: LOOK,
    arguments: '[end WORKER…]',
    summary: 'running workers and their tasks; ends a stuck worker',
    load: () => import('./commands/workers.ts'),
  },
  {
    name: 'retry',
    group: ACTIONS,
    arguments: 'ID…',
    summary: 'make tasks due now; ended tasks start a new round',
    load: () => import('./commands/retry.ts'),
  },
  {
    name: 'redrive',
    group: ACTIONS,
    arguments: 'FILTER --note TEXT [--rate 10/s] [--dry-run]',
    summary: 'put many ended tasks back: a few first, then at a rate',
    load: () => import('./commands/redrive.ts'),
  },
  {
    name: 'redrives',
    group: ACTIONS,
    arguments: '[show|pause|resume|cancel ID]',
    summary: 'how far redrives are; pauses, resumes and cancels them',
    load: () => import('./commands/redrives.ts'),
  },
  {
    name: 'resolve',
    group: ACTIONS,
    arguments: 'ID --as succeeded|retry|dead',
    summary: 'answer a task that needs a person',
    load: () => import('./commands/resolve.ts'),
  },
  {
    name: 'cancel',
    group: ACTIONS,
    arguments: 'ID…',
    summary: 'end tasks that wait or run',
    load: () => import('./commands/cancel.ts'),
  },
  {
    name: 'hold',
    group: ACTIONS,
    arguments: 'ID…',
    summary: 'hold waiting tasks until they are released',
    load: () => import('./commands/hold.ts'),
  },
  {
    name: 'release',
    group: ACTIONS,
    arguments: 'ID…',
    summary: 'release held tasks',
    load: () => import('./commands/release.ts'),
  },
  {
    name: 'policies',
    group: POLICIES,
    arguments: '[show|validate|diff|schedule|test]',
    summary: 'how failures are answered, and where that is set; checks, tests',
    load: () => import('./commands/policies.ts'),
  },
  {
    name: 'classify',
    group: POLICIES,
    arguments: '[MESSAGE] [--type TYPE]',
    summary: 'what kind of failure an error is (JSON on stdin, or a message)',
    load: () => import('./commands/classify.ts'),
  },
  {
    name: 'db',
    group: OTHER,
    arguments: '[prune]',
    summary: 'where and what the store is; removes old tasks',
    load: () => import('./commands/db.ts'),
  },
  {
    name: 'version',
    group: OTHER,
    arguments: '[--json]',
    summary: 'the versions of holdfast and Node',
    load: () => import('./commands/version.ts'),
  },
];

/** Node has put U+FFFD for bytes that are no UTF-8: what was meant is lost, and something else may be called so. */
function refuseBrokenText(args: readonly string[]): void {
  const broken = args.find((arg) => arg.includes('\ufffd'));
  if (broken !== undefined) throw usage(`${visible(broken)} is not valid UTF-8, so what it names cannot be recorded`);
}

/** The program for these arguments: only the command that they name is loaded, so that the others cost nothing. */
export async function programFor(args: readonly string[], write: (text: string) => void): Promise<Command> {
  refuseBrokenText(args);
  const program = new Command('holdfast')
    .description('Durable commands, file moves and HTTP requests: what fails is retried, and nothing is lost.')
    .version(versionOf(), '-V, --version', 'the version of holdfast')
    .commandsGroup(OTHER)
    .helpCommand('help [command]', 'the flags of a command')
    .configureHelp({
      subcommandTerm: (command) => `${[command.name(), ...command.aliases()].join('|')} ${command.usage()}`,
    })
    .enablePositionalOptions()
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: () => {}, outputError: () => {} })
    .addHelpText('after', footer);
  addGlobalFlags(program);
  const wanted = wordsOf(args);
  const called = wanted[0] === 'help' ? wanted[1] : wanted[0];
  for (const entry of ENTRIES) await addCommand(program, entry, called);
  return program;
}

/** What to tell of a failure that nobody was there to hear. `run` has an exit code of its own for it. */
export function problemOfCrash(error: unknown, args: readonly string[]): Problem {
  const problem = problemOf(error);
  return wordsOf(args)[0] === 'run' ? problem.endingWith(EXIT.runFailed) : problem;
}

/** Commander's objections in our words. Help and version, which it throws too, are none. */
export function problemOfCommander(error: CommanderError, args: readonly string[]): Problem | undefined {
  if (error.exitCode === 0) return undefined;
  const [called, about] = wordsOf(args);
  if (called === 'help' && about !== undefined) return unknownCommand(about);
  if (error.code === 'commander.help')
    return usage('a command is missing', { hints: ['all commands: holdfast --help'] });
  if (error.code === 'commander.unknownCommand') return unknownCommand(called ?? '');
  const entry = entryOf(called);
  const what = visible(error.message.replace(/^error: /, '').split('\n')[0] as string);
  return usage(what, {
    hints: [
      entry ? `holdfast ${entry.name} ${entry.arguments}` : 'holdfast --help',
      ...(entry ? [helpHint(entry)] : []),
    ],
  });
}

function helpHint({ name }: Entry): string {
  return `all flags: holdfast ${name} --help`;
}

function unknownCommand(word: string): Problem {
  const names = ENTRIES.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias]));
  const likely = commandsLike(word, [...names, 'help']);
  return usage(`there is no command "${visible(word)}"`, {
    hints: [
      ...(likely.length > 0 ? [`did you mean: holdfast ${likely.join(', or holdfast ')}?`] : []),
      `to run it durably: holdfast run -- ${visible(word)} …`,
      'all commands: holdfast --help',
    ],
  });
}

// ── Commands ──

async function addCommand(program: Command, entry: Entry, called: string | undefined): Promise<void> {
  const command = program.command(entry.name).summary(entry.summary).description(entry.summary).helpGroup(entry.group);
  if (entry.alias !== undefined) command.alias(entry.alias);
  command.usage(entry.arguments);
  if (entryOf(called) !== entry) return;
  const { declare } = await entry.load();
  declare(command);
  for (const each of [command, ...command.commands]) addGlobalFlags(each);
}

function entryOf(word: string | undefined): Entry | undefined {
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
    const option = new Option(flags, help).helpGroup(SHARED);
    if (attribute === 'verbose') option.argParser((_, before: unknown) => Number(before ?? 0) + 1);
    command.addOption(option);
  }
}

/**
 * The flags that matter for a problem, read from arguments that could not be parsed, or not yet. What follows `--` is
 * somebody else's.
 */
export function flagsAmong(args: readonly string[]): GlobalFlags {
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined);
  const verbose = own.map((arg) => (arg === '--verbose' ? 1 : /^-v+$/.test(arg) ? arg.length - 1 : 0));
  return {
    json: own.includes('--json'),
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
