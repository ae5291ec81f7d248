#!/usr/bin/env node
import { CommanderError } from 'commander';
import { type Problem, problemJson, problemLines, problemOf } from './problem.ts';
import { problemOfCommander, programFor, versionOf } from './program.ts';
import { Channel, speaksUtf8 } from './terminal.ts';

/** How long after the end something forgotten (a timer, a child's pipe) may keep the process. */
const LINGER_MS = 2_000;

await main(process.argv.slice(2));

/** Reads the arguments, does what they say, and sets the exit code. Nothing that is thrown gets past it. */
async function main(args: readonly string[]): Promise<void> {
  survivePipes();
  // Thrown where nobody waits for it: nothing is known of what else is going on, so nothing else is done.
  process.on('uncaughtException', (error) => {
    report(problemOf(error), args);
    process.exit();
  });
  try {
    const program = await programFor(args, (text) => void process.stdout.write(text));
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const problem = error instanceof CommanderError ? problemOfCommander(error, args) : problemOf(error);
    if (problem) report(problem, args);
  }
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** A reader that went away (`| head`) is no error. Who writes for long listens too, and ends by itself. */
function survivePipes(): void {
  process.stderr.on('error', () => {});
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (process.stdout.listenerCount('error') === 1) process.exit();
  });
}

function report(problem: Problem, args: readonly string[]): void {
  process.exitCode = problem.exit;
  // Flags that could not be parsed have to be understood all the same; what follows `--` is somebody else's.
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined);
  if (own.includes('--json')) {
    process.stdout.write(`${JSON.stringify(problemJson(problem))}\n`);
    return;
  }
  const channel = new Channel(process.stderr, process.env, {
    colour: own.includes('--no-color') ? false : undefined,
    ascii: !speaksUtf8(process.env, process.platform),
  });
  const [first = '', ...rest] = problemLines(problem);
  channel.line(first.replace(/^error:/, channel.paint('dead', 'error:')));
  for (const line of rest) channel.line(line);
  if (own.reduce((sum, arg) => sum + verbosity(arg), 0) > 1) reportMore(problem, channel);
}

function reportMore(problem: Problem, channel: Channel): void {
  const origin = problem.cause ?? problem;
  channel.line(origin instanceof Error && origin.stack ? origin.stack : String(origin));
  channel.line(`holdfast ${versionOf()}, Node ${process.versions.node}, ${process.platform} ${process.arch}`);
}

function verbosity(arg: string): number {
  if (arg === '--verbose') return 1;
  return /^-v+$/.test(arg) ? arg.length - 1 : 0;
}
