import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type CommandInput, checkCommand, parseExitCodes } from '../../handlers/command.ts';
import { findProgram } from '../../handlers/program.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import type { Task } from '../../queue/task-view.ts';
import { hasEnded } from '../../task.ts';
import { SHELL_COMMAND } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { collect } from '../flags/given.ts';
import { span } from '../flags/moment.ts';
import { type FlagWords, inFlagWords } from '../flags/named-flags.ts';
import { addRecordFlags, enqueueOptions, type RecordFlags } from '../flags/record-flags.ts';
import { commandStatus } from '../foreground/command-status.ts';
import { exitOfTasks } from '../foreground/exit-of-tasks.ts';
import { recordAndWork, type WorkToRecord } from '../foreground/record-and-work.ts';
import { problemOf, usage } from '../problem.ts';
import { sourceOfCommand } from '../types/default-source.ts';

interface Flags extends RecordFlags {
  readonly exitState?: boolean;
  readonly idempotent: boolean;
  readonly retryOn?: string;
  readonly noRetryOn?: string;
  readonly retryIfStderr?: string;
  readonly rateLimitedIfStderr?: string;
  readonly permanentIfStderr?: string;
  readonly successOn?: string;
  readonly shell?: boolean;
  readonly cwd?: string;
  readonly env?: readonly string[];
  readonly stdin?: string;
  readonly killAfter?: string;
}

export function declare(command: Command): void {
  command.argument('<command...>').passThroughOptions();
  addRecordFlags(command);
  command
    .optionsGroup('What it runs')
    .option('--shell', 'hand the one argument to /bin/sh -c; without it no shell sees the arguments')
    .option('--cwd <folder>', 'where it runs (default: here)')
    .option('--env <name[=value]>', 'a variable to record; what is not recorded comes from its worker', collect)
    .option('--stdin <file>', 'a file that it reads (default: nothing)')
    .option('--kill-after <duration>', 'from SIGTERM to SIGKILL, when it is stopped (default: 10s)')
    .optionsGroup('How its end is judged')
    .option('--success-on <codes>', 'exit codes that mean success (default: 0), such as 0,24')
    .option('--retry-on <codes>', 'exit codes that are worth another attempt, such as 1,75,124-127')
    .addOption(noRetryOn(command))
    .option('--retry-if-stderr <regex>', 'another attempt if the end of stderr matches (RE2)')
    .option(
      '--rate-limited-if-stderr <regex>',
      'a rate limit, which is not charged, if the end of stderr matches (RE2)',
    )
    .option('--permanent-if-stderr <regex>', 'no other attempt if the end of stderr matches (RE2)')
    .option('--no-idempotent', 'running it twice does harm: ask a person when its outcome is unknown')
    .optionsGroup('How this command ends')
    .option('--exit-state', "exit by the task's state, as the other commands do")
    .addHelpText('after', HELP);
  act<Flags>(command, run);
}

const HELP = `
The command is recorded first, with fsync; then it is worked here. Its output goes to stdout and stderr as it comes, and is
kept for \`holdfast logs\`.
Ctrl-C detaches: the attempt that runs is stopped and not counted, and the task stays on disk.

Exit codes
  0    the task succeeded, also by --success-on, or it is recorded with --detach
  else the command's last exit code; 128 + n for signal n; 124 if its last attempt was stopped for its silence
  125  holdfast could not do its part, or the task ended without an exit code of the command
  126  the command may not be executed        127  it was not found
  75   not finished yet: detached, or --timeout is over
  2    usage
A --key or --unique key that another task has: this command waits for that task, and ends with its exit code.`;

async function run(cli: Cli, argv: readonly string[], flags: Flags): Promise<number> {
  const input = commandFrom(cli, argv, flags);
  const work: WorkToRecord = {
    name: 'run',
    type: SHELL_COMMAND,
    flags,
    inputs: [input],
    // The output of a command that another worker runs is not shown here.
    preferHere: true,
    options: (_, now, ofType) => ({
      ...enqueueOptions(flags, SHELL_COMMAND, now, ofType && { ofType }),
      source: sourceOfCommand(input),
      idempotent: flags.idempotent,
    }),
    exitOf: async (holdfast, [task], interrupted) =>
      flags.exitState ? exitOfTasks([task as Task]) : exitOfCommand(holdfast, task as Task, interrupted),
  };
  try {
    return await recordAndWork(cli, work);
  } catch (error) {
    const problem = problemOf(error);
    throw problem.exit === EXIT.usage || flags.exitState ? problem : problem.endingWith(EXIT.runFailed);
  }
}

/** The command's own exit code; 75 if the task has not ended, unless it needs a person and nobody interrupted. */
async function exitOfCommand(holdfast: Holdfast, task: Task, interrupted: boolean): Promise<number> {
  const unfinished = !hasEnded(task.state) && (task.state !== 'needs_manual' || interrupted);
  return unfinished ? EXIT.notFinished : commandStatus(task, await holdfast.history(task.id));
}

// ── What is recorded ──

function commandFrom(cli: Cli, argv: readonly string[], flags: Flags): CommandInput {
  if (flags.shell && argv.length !== 1) {
    throw usage(`--shell takes the script as one argument, got ${argv.length}`, {
      hints: ["quote it: holdfast run --shell -- 'a | b'"],
    });
  }
  const cwd = resolve(cli.cwd, flags.cwd ?? '.');
  if (flags.cwd !== undefined && !isFolder(cwd)) throw usage(`--cwd: there is no folder ${visible(cwd)}`);
  const env = flags.env && Object.fromEntries(flags.env.map((each) => variable(each, cli.environment)));
  const program = flags.shell ? undefined : findProgram(argv[0] as string, cwd, env?.PATH ?? cli.environment.PATH);
  const input = {
    argv,
    ...(program !== undefined && { program }),
    cwd,
    ...(flags.shell && { shell: true }),
    ...(env && { env }),
    ...(flags.stdin !== undefined && { stdin: stdinFile(flags.stdin, cli.cwd) }),
    ...(flags.successOn !== undefined && { successOn: codes(flags.successOn, '--success-on') }),
    ...(flags.retryOn !== undefined && { retryOn: codes(flags.retryOn, '--retry-on') }),
    ...(flags.noRetryOn !== undefined && { noRetryOn: codes(flags.noRetryOn, '--no-retry-on') }),
    ...(flags.retryIfStderr !== undefined && { retryIfStderr: flags.retryIfStderr }),
    ...(flags.rateLimitedIfStderr !== undefined && { rateLimitedIfStderr: flags.rateLimitedIfStderr }),
    ...(flags.permanentIfStderr !== undefined && { permanentIfStderr: flags.permanentIfStderr }),
    ...(flags.killAfter !== undefined && { killAfterMs: span(flags.killAfter, '--kill-after') }),
  };
  return inFlagWords(() => checkCommand(input), FLAGS);
}

function variable(text: string, environment: NodeJS.ProcessEnv): [string, string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  const value = at === 0 ? undefined : environment[text];
  if (value !== undefined) return [text, value];
  throw usage(`--env ${visible(text)}: there is no such variable here to record`, {
    hints: ['with a value: --env NAME=VALUE'],
  });
}

function stdinFile(text: string, cwd: string): string {
  if (text !== '-') return resolve(cwd, text);
  throw usage('--stdin takes a file, which a later attempt can read again, and not what comes through a pipe', {
    hints: ['save it first: cat > input.txt; holdfast run --stdin input.txt -- CMD…'],
  });
}

function codes(text: string, flag: string) {
  return inFlagWords(() => parseExitCodes(text), FLAGS, flag);
}

const FLAGS: FlagWords = {
  words: {
    retryIfStderr: '--retry-if-stderr',
    rateLimitedIfStderr: '--rate-limited-if-stderr',
    permanentIfStderr: '--permanent-if-stderr',
    killAfterMs: '--kill-after',
  },
};

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** For commander, `--no-…` is the opposite of a flag. This one is a flag of its own. */
function noRetryOn(command: Command) {
  const option = command.createOption('--no-retry-on <codes>', 'exit codes that are not; wins over --retry-on');
  option.negate = false;
  return option;
}
