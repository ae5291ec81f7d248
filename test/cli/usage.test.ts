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
    ['run --retries 3 -- true', 'did you mean --attempts, which counts the first attempt too?'],
    ['run --delay 5m -- true', 'did you mean --at, such as --at +5m?'],
    ['run --queu x -- true', 'did you mean --queue?'],
    ['worker --concurency 5', 'did you mean --concurrency?'],
    ['list --state failed', 'a term of the filter, such as state:dead'],
    ['redrive --type order', 'a term of the filter, such as type:file_move'],
    ['sources limit api --rate 10', 'did you mean --pace, such as --pace 10/s?'],
    ['prune', 'did you mean: holdfast db prune?'],
    ['http api.example', 'holdfast http GET https://api.example'],
    ['status --summary --check', "'--summary' cannot be used with option '--check'"],
    ['db clean', 'did you mean: holdfast db prune?'],
    ['db prune --state failed', '--state failed: only ended tasks are removed'],
    ['db prune --state deda', 'did you mean "dead"?'],
    ['db prune --state needs_manual', '--older-than 90d'],
    ['db prune --older-than soon', '--older-than must be a duration'],
    ['mv a b --backoff', "option '--backoff <form>' argument missing"],
    ['run --backoff sometimes -- true', '--backoff sometimes: "sometimes" is none of'],
    ['run --attempts 0 -- true', '--attempts must be a whole number of at least 1'],
    ['run --priority 5000 -- true', '--priority must be a whole number from 0 to 4095'],
    ['run --policy standrad -- true', 'did you mean "standard"?'],
    ['run --at someday -- true', '--at is not a time'],
    ['run --within awhile -- true', '--within must be a duration'],
    ['run --key= -- true', '--key must be a text'],
    ['run --unique= -- true', '--unique must be a text'],
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
    ['http', "missing required argument 'method'"],
    ['http GET', 'the URL is missing'],
    ['http https://api.example/x', 'holdfast http GET https://api.example/x'],
    ['http GET api.example', 'The URL must be an absolute URL'],
    ['http G/T https://api.example', 'The method must be an HTTP method'],
    ['http GET ftp://api.example', "The URL must begin with http or https, got 'ftp:'"],
    ['http GET https://eva:pw@api.example', 'The URL has a user name or password'],
    ['http GET http://0x7f.1/', 'to allow it: --allow-private'],
    ['http POST https://api.example -H nonsense', "--header: A header is written 'Name: value'"],
    ['http POST https://api.example -H Host:x', 'The header Host cannot be set'],
    ['http POST https://api.example -H X-Api-Key:k', "'X-Api-Key: env:VARIABLE'"],
    ['http POST https://api.example -H X:env:NO_SUCH_VARIABLE', 'there is no variable NO_SUCH_VARIABLE here'],
    ['http POST https://api.example -H @nowhere', '--header: there is no file'],
    ['http POST https://api.example -d a -d b', '--data may be given once'],
    ['http POST https://api.example -d @nowhere', '--data: ENOENT'],
    ['http POST https://api.example -d @src', 'src is no file'],
    ['http POST https://api.example --ok 7xx', '--ok: Statuses are written like'],
    ['http POST https://api.example --max-body big', '--max-body must be a size'],
    ['http POST https://api.example --max-body 1g', '--max-body must be a size'],
    ['http POST https://api.example --max-redirects 99', '--max-redirects must be a whole number from 0 to 20'],
    ['http POST https://api.example --connect-timeout 2h', '--connect-timeout, in milliseconds, must be'],
    ['http POST https://api.example --attempt-timeout 2h', '--attempt-timeout, in milliseconds, must be'],
    ['http POST https://api.example --attempt-timeout none', '--attempt-timeout must be a duration'],
    ['http POST https://api.example --key č --idempotency-header', 'The --key, which is sent as the idempotency key'],
    ['http POST https://api.example --idempotency-header=a:b', '--idempotency-header must be the name of a header'],
    ['http POST https://api.example --attempts 0', '--attempts must be a whole number of at least 1'],
    ['curl', 'did you mean: holdfast http METHOD URL?'],
    ['classify {"a', 'what was given is no JSON'],
    ['classify a b', 'too many arguments'],
    ['list colour:red', 'unknown filter key "colour", at column 1'],
    ['list --limit 0', '--limit must be a whole number from 1 to 1000'],
    ['list --limit 5 --all', '--all and --limit contradict each other'],
    ['list --before yesterday', '--before must be a whole number'],
    [
      'list -s mysql://eva:secret@host/db',
      '--store cannot be mysql://…: a store is a file, or a database of PostgreSQL',
    ],
    ['show', "missing required argument 'id'"],
    ['show 1 2', 'too many arguments'],
    ['resolve 1 --no-input', '--as is missing'],
    ['resolve 1 --as maybe', '--as is one of succeeded, retry, dead'],
    ['resolve 1 --as succeeded --result {', '--result is not JSON'],
    ['resolve 1 --as dead --result 1', '--result goes with --as succeeded'],
    ['resolve 1 --result 1', '--result says what came of it'],
    ['wait --timeout never', '--timeout must be a duration'],
    ['resume --concurrency none', '--concurrency must be a whole number'],
    ['cancel', "missing required argument 'ids|filter'"],
    ['status now', 'too many arguments'],
    ['sources hodl x', 'did you mean: holdfast sources hold?'],
    ['sources close x', 'did you mean: holdfast sources hold?'],
    ['sources hold', "missing required argument 'name'"],
    ['sources hold a b', 'too many arguments'],
    ['sources release x --for 2h', "unknown option '--for'"],
    ['queues hold x', 'did you mean: holdfast queues pause?'],
    ['queues w1', 'there is: holdfast queues pause NAME'],
    ['queues order mail', "missing required argument 'order'"],
    ['queues order mail prioriti', 'did you mean "priority"?'],
    ['workers kill w1', 'did you mean: holdfast workers end?'],
    ['workers end', "missing required argument 'workers'"],
    ['list postgres://eva:secret@host/db', 'postgres://eva@host/db'],
    ['postgres://eva:secret@host/db', 'there is no command "postgres://eva@host/db"'],
    ['status --stor=postgres://eva:secret@host/db', "unknown option '--stor=postgres://eva@host/db'"],
    ['logs', "missing required argument 'id'"],
    ['logs 1 --execution last', '--execution must be a whole number'],
    ['import', "missing required argument 'file'"],
    ['import /no/such/file.jsonl', 'there is no file /no/such/file.jsonl'],
    ['import / --dry-run', '/ is a folder'],
    ['import package.json --keys=', '--keys must be a text'],
    ['load', 'did you mean: holdfast import?'],
    ['connectors', 'did you mean: holdfast sources?'],
  ])('%s', async (line, why) => {
    expect(await holdfast(line.split(' '))).toBe(2);
    expect(said).toContain(why);
    expect(said.trimEnd()).toMatch(/^error: .*\(exit 2\)$/s);
    expect(said).not.toMatch(/\n\s+at /);
    expect(said).not.toContain('secret');
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
