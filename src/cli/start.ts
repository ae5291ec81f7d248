import { CommanderError } from 'commander';
import { isOwned } from '../worker/strays.ts';
import { Cli } from './cli.ts';
import { readerIsGone } from './foreground/detacher.ts';
import { outputFailed, problemOf } from './problem.ts';
import { flagsAmong, problemOfCommander, problemOfCrash, programFor, withTerms } from './program.ts';
import { report } from './report.ts';

export { endWithClosedTerminal } from './terminal/closed-terminal.ts';

/** How long the process may live after the end of its command if a timer or a child's pipe is still open. */
const LINGER_MS = 2_000;

/** Runs the command in the arguments, and sets the exit code. Never rejects. */
export async function main(given: readonly string[]): Promise<void> {
  const args = withTerms(given);
  survivePipes(args);
  const { terminal } = new Cli(flagsAmong(args));
  // Nothing caught the error, so the state of the process is unknown, and it ends.
  process.on('uncaughtException', (error) => {
    // Its worker records it, and says whether the process goes on.
    if (isOwned()) return;
    report(problemOfCrash(error, args), terminal);
    process.exit();
  });
  try {
    const program = await programFor(args, (text) => terminal.out.raw(text));
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const problem = error instanceof CommanderError ? problemOfCommander(error, args) : problemOf(error);
    if (problem) report(problem, terminal);
  }
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/**
 * A closed reader of stdout is not an error. A full disk is, and is reported on stderr, with --json too. Commands that write for
 * long or run tasks have their own listener and end by themselves. For them, only the exit code is set if output was lost.
 */
function survivePipes(args: readonly string[]): void {
  process.stderr.on('error', () => {});
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    const gone = readerIsGone(error);
    const problem = problemOfCrash(outputFailed(error), args);
    if (process.stdout.listenerCount('error') > 1) {
      if (!gone) process.once('exit', () => (process.exitCode ||= problem.exit));
      return;
    }
    if (!gone) report(problem, new Cli({ ...flagsAmong(args), json: false }).terminal);
    process.exit();
  });
}
