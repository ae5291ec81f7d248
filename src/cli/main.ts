#!/usr/bin/env node
import { CommanderError } from 'commander';
import { isOwned } from '../worker/strays.ts';
import { Cli } from './cli.ts';
import { readerIsGone } from './foreground/detacher.ts';
import { outputFailed, problemOf } from './problem.ts';
import { flagsAmong, problemOfCommander, problemOfCrash, programFor } from './program.ts';
import { report } from './report.ts';

/** How long after the end something forgotten (a timer, a child's pipe) may keep the process. */
const LINGER_MS = 2_000;

await main(process.argv.slice(2));

/** Reads the arguments, does what they say, and sets the exit code. Nothing that is thrown gets past it. */
async function main(args: readonly string[]): Promise<void> {
  survivePipes(args);
  const { terminal } = new Cli(flagsAmong(args));
  // Thrown where nobody waits for it: nothing is known of what else is going on, so nothing else is done.
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
 * A reader that went away is no error; a full disk is, and is told of on stderr, with --json too. Who writes for long, or works,
 * listens too, and ends by itself: then all that is left is that nothing which was lost ends as done.
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
