import { versionOf } from '../documents/version.ts';
import { type Problem, problemJson, problemLines } from './problem.ts';
import type { Terminal } from './terminal/terminal.ts';

/** Reports a problem, as text on stderr or as the document of --json, and sets the exit code. */
export function report(problem: Problem, terminal: Terminal): void {
  process.exitCode = problem.exit;
  if (terminal.json) {
    terminal.document(problemJson(problem));
    return;
  }
  const [first = '', ...rest] = problemLines(problem);
  terminal.warn(first.replace(/^error:/, terminal.err.paint('dead', 'error:')));
  for (const line of rest) terminal.err.line(line);
  if (terminal.verbose > 1) forBugReport(problem, terminal);
}

function forBugReport(problem: Problem, { err }: Terminal): void {
  const origin = problem.cause ?? problem;
  err.line(origin instanceof Error && origin.stack ? origin.stack : String(origin));
  err.line(`holdfast ${versionOf()}, Node ${process.versions.node}, ${process.platform} ${process.arch}`);
}
