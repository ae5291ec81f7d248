import { CommanderError } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Cli } from '../../src/cli/cli.ts';
import { flagsAmong, problemOfCommander, programFor } from '../../src/cli/program.ts';
import { report } from '../../src/cli/report.ts';

let said = '';
beforeEach(() => {
  said = '';
  vi.stubEnv('HOLDFAST_STORE', '/nowhere/holdfast.db');
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((chunk) => {
      said += String(chunk);
      return true;
    });
  }
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

/** What `main` does, in this process. */
async function holdfast(args: readonly string[]): Promise<number> {
  try {
    const program = await programFor(args, (text) => void process.stdout.write(text));
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const problem = problemOfCommander(error, args);
    if (problem) report(problem, new Cli(flagsAmong(args)).terminal);
  }
  return Number(process.exitCode ?? 0);
}

describe('what cannot be meant is refused before anything is opened', () => {
  test.each<[string, string]>([
    ['frobnicate', 'there is no command "frobnicate"'],
    ['frobnicate', 'to run it durably: holdfast run -- frobnicate …'],
    ['lsit', 'did you mean: holdfast list?'],
    ['restart', 'did you mean: holdfast retry'],
    ['help rm', 'did you mean: holdfast cancel'],
    ['--quiet', 'a command is missing'],
    ['run', "missing required argument 'command'"],
    ['run --nope -- true', "unknown option '--nope'"],
    ['run --nope -- true', 'all flags: holdfast run --help'],
    ['mv a b --backoff', "option '--backoff <form>' argument missing"],
    ['run --backoff sometimes -- true', '--backoff sometimes: "sometimes" is none of'],
    ['run --attempts 0 -- true', '--attempts must be a whole number of at least 1'],
    ['run --priority 5000 -- true', '--priority must be a whole number from 0 to 4095'],
    ['run --policy standrad -- true', 'did you mean "standard"?'],
    ['run --at someday -- true', '--at is not a time'],
    ['run --within awhile -- true', '--within must be a duration'],
    ['run --key= -- true', '--key must be a text'],
    ['run --queue= -- true', '--queue must be a text'],
    ['run --env NO_SUCH_VARIABLE -- true', '--env NO_SUCH_VARIABLE'],
    ['run --env =x -- true', '--env =x'],
    ['run --cwd nowhere -- true', '--cwd: there is no folder'],
    ['run --stdin - -- true', '--stdin takes a file'],
    ['run --shell -- a b', '--shell takes the script as one argument, got 2'],
    ['run --retry-on 1- -- true', '--retry-on: Exit codes are written like'],
    ['run --no-retry-on 300 -- true', '--no-retry-on: Exit codes are written like'],
    ['run --retry-if-stderr ( -- true', '--retry-if-stderr is not a regular expression'],
    ['run --permanent-if-stderr (?=a) -- true', '--permanent-if-stderr is not a regular expression'],
    ['run --kill-after 2h -- true', '--kill-after must be'],
    ['run --timeout soon -- true', '--timeout must be a duration'],
    ['list colour:red', 'unknown filter key "colour", at column 1'],
    ['list --limit 0', '--limit must be a whole number from 1 to 1000'],
    ['list --limit 5 --all', '--all and --limit contradict each other'],
    ['list --before yesterday', '--before must be a whole number'],
    ['list -s postgres://host/db', '--store cannot be postgres://…: this version opens files only'],
    ['show', "missing required argument 'id'"],
    ['show 1 2', 'too many arguments'],
    ['resolve 1 --no-input', '--as is missing'],
    ['resolve 1 --as maybe', '--as is one of succeeded, retry, dead'],
    ['resolve 1 --as succeeded --result {', '--result is not JSON'],
    ['resolve 1 --as dead --result 1', '--result goes with --as succeeded'],
    ['resolve 1 --result 1', '--result says what came of it'],
    ['wait --timeout never', '--timeout must be a duration'],
    ['resume --concurrency none', '--concurrency must be a whole number'],
    ['cancel', "missing required argument 'ids'"],
    ['status now', 'too many arguments'],
  ])('%s', async (line, why) => {
    expect(await holdfast(line.split(' '))).toBe(2);
    expect(said).toContain(why);
    expect(said.trimEnd()).toMatch(/^error: .*\(exit 2\)$/s);
    expect(said).not.toMatch(/\n\s+at /);
  });

  test('in JSON with --json, wherever it stands', async () => {
    for (const args of [
      ['--json', 'list', 'x'],
      ['list', 'x', '--json'],
      ['list', '--nope', '--json'],
    ]) {
      said = '';
      expect(await holdfast(args)).toBe(2);
      expect(JSON.parse(said)).toMatchObject({ code: 'invalid_input', exit: 2, retryable: false });
    }
  });
});

test('flags of a command that is run are not ours', () => {
  expect(flagsAmong(['run', '-vv', '--', 'x', '--json', '--no-color', '-v'])).toEqual({
    json: false,
    color: true,
    verbose: 2,
  });
});
