import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFailed, onTestFinished, test, vi } from 'vitest';
import { classify, outcomeOf } from '../../src/failure/classify/classify.ts';
import { REASONS, type Reason } from '../../src/failure/classify/reasons.ts';
import type { Failure, FailureKind } from '../../src/failure/outcome.ts';
import { presets } from '../../src/failure/presets.ts';
import { Failed } from '../../src/failure/signals.ts';
import {
  type CommandInput,
  type CommandOptions,
  type CommandResult,
  type CommandTask,
  checkCommand,
  command,
  parseExitCodes,
} from '../../src/handlers/command.ts';
import { findProgram } from '../../src/handlers/program.ts';
import { encodeJson } from '../../src/json.ts';
import { decided } from '../failure/given.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-command-'));
});
afterAll(() => {
  rmSync(directory, { recursive: true });
});

function task(with_: Partial<CommandTask> = {}): CommandTask {
  return { id: 7, attempt: 2, execution: 3, signal: new AbortController().signal, heartbeat: () => {}, ...with_ };
}

function run(
  argv: readonly string[],
  input: Partial<CommandInput> = {},
  options: Partial<CommandOptions> & Partial<CommandTask> = {},
): Promise<CommandResult> {
  return command({ environment: process.env, ...options })({ argv, cwd: directory, ...input }, task(options));
}

function sh(script: string, input: Partial<CommandInput> = {}, options: Parameters<typeof run>[2] = {}) {
  return run([script], { shell: true, ...input }, options);
}

function thrownBy(running: Promise<unknown>): Promise<unknown> {
  return running.then(
    (result) => {
      throw new Error(`It should have failed, and ended with ${JSON.stringify(result)}.`);
    },
    (thrown: unknown) => thrown,
  );
}

/** What a command failed with, as the classifier will see it. */
async function failureOf(running: Promise<unknown>): Promise<Failure> {
  const failure = classify(await thrownBy(running), { now: Date.now() });
  expect(failure.evidence.rule).toBe('signal');
  return failure;
}

/** A command that tells on stdout when it has come so far; the numbers in its first line are processes. */
function observed() {
  let text = '';
  const tell: { with?: (pids: number[]) => void } = {};
  const started = new Promise<number[]>((settle) => {
    tell.with = settle;
  });
  const write = (stream: 'stdout' | 'stderr', chunk: Buffer) => {
    if (stream === 'stdout') text += chunk;
    if (text.includes('\n')) tell.with?.((/^[\d ]*/.exec(text)?.[0] ?? '').trim().split(' ').map(Number));
  };
  onTestFailed(async () => {
    for (const pid of (await started).filter(runs)) process.kill(pid, 'SIGKILL');
  });
  return { write, started };
}

function runs(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return stdout.trim() !== '' && !stdout.startsWith('Z');
}

async function expectGone(pids: readonly number[]): Promise<void> {
  await vi.waitFor(() => expect(pids.filter(runs)).toEqual([]), { timeout: 15_000 });
}

/** In `directory`, an executable file. */
function script(name: string, text: string, mode = 0o755): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

test('all output is heard by who keeps it, execution by execution, whether it is shown or not', async () => {
  const kept: string[] = [];
  const keep: CommandOptions['keep'] = ({ id, execution }) => {
    kept.push(`#${id} ${execution}`);
    return (stream, chunk) => kept.push(`${stream} ${chunk}`);
  };
  await sh('echo out', {}, { keep });
  await sh('echo err >&2', {}, { keep, execution: 4, write: () => kept.push('shown') });
  expect(kept).toEqual(['#7 3', 'stdout out\n', '#7 4', 'stderr err\n', 'shown']);
});

describe('what a command is given', () => {
  const ARGUMENTS = [
    'a b',
    '',
    `'"`,
    '$HOME',
    '`id`',
    '$(id)',
    '*',
    ';exit 3',
    '&&',
    '\n',
    '\\n',
    '-x',
    'é🙂',
    '%PATH%',
  ];

  test('arguments arrive exactly as they are, and no shell sees them', async () => {
    const { stdout } = await run([
      process.execPath,
      '-e',
      'console.log(JSON.stringify(process.argv.slice(1)))',
      '--',
      ...ARGUMENTS,
    ]);
    expect(JSON.parse(stdout as string)).toEqual(ARGUMENTS);
  });

  test('the program is looked up in the PATH, or relative to its directory', async () => {
    script('here', '#!/bin/sh\necho "$0 $1"');
    expect(await run(['./here', '$x'])).toEqual({ exit: 0, stdout: './here $x\n' });
    expect(await run(['here', 'y'], { env: { PATH: `${directory}:${process.env.PATH}` } })).toMatchObject({ exit: 0 });
  });

  test('a program that was found when the command was recorded, whatever the PATH of its worker, and called as it was', async () => {
    const program = script('recorded', '#!/bin/sh\necho found');
    expect(findProgram('recorded', '/', `/no/such:${dirname(program)}`)).toBe(program);
    expect(findProgram('recorded', '/', '/no/such')).toBeUndefined();
    expect(findProgram('./recorded', dirname(program), undefined)).toBe(program);

    const bare = command({ environment: {} });
    expect(await bare({ argv: ['recorded'], program, cwd: '/' }, task())).toMatchObject({ stdout: 'found\n' });
    const sh = await bare({ argv: ['my-sh', '-c', 'echo "$0"'], program: '/bin/sh', cwd: '/' }, task());
    expect(sh).toMatchObject({ stdout: 'my-sh\n' });
    // It has moved since: the PATH is asked.
    const moved = { argv: ['sh', '-c', 'echo moved'], program: '/no/such/sh', cwd: '/' };
    expect(await command({ environment: process.env })(moved, task())).toMatchObject({ stdout: 'moved\n' });
  });

  test('with shell, a script', async () => {
    expect(await sh('for i in 1 2; do echo "$i"; done | tail -n 1')).toEqual({ exit: 0, stdout: '2\n' });
  });

  test('its directory', async () => {
    mkdirSync(join(directory, 'sub dir'), { recursive: true });
    expect((await run(['pwd', '-P'], { cwd: join(directory, 'sub dir') })).stdout).toMatch(/\/sub dir\n$/);
  });

  test('the environment of the worker, the stored variables, and what is known of the task', async () => {
    const known = { maxAttempts: 8, lastError: 'exit 1:\0 é', deadline: new Date(86_400_000), key: 'k 1' };
    const options = { environment: { ...process.env, A: 'own', B: 'own' }, ...known };
    const argv = [process.execPath, '-e', 'console.log(JSON.stringify(process.env))'];
    const { stdout } = await run(argv, { env: { A: 'stored', C: '=\n', HOLDFAST_KEY: 'stored' } }, options);
    expect(JSON.parse(stdout as string)).toMatchObject({
      A: 'stored',
      B: 'own',
      C: '=\n',
      HOLDFAST_ATTEMPT: '2',
      HOLDFAST_DEADLINE: '1970-01-02T00:00:00.000Z',
      HOLDFAST_EXECUTION: '3',
      HOLDFAST_KEY: 'k 1',
      HOLDFAST_LAST_ERROR: 'exit 1:␀ é',
      HOLDFAST_MAX_ATTEMPTS: '8',
      HOLDFAST_TASK_ID: '7',
    });
  });

  test('nothing of another task that the worker itself runs in', async () => {
    const environment = {
      ...process.env,
      HOLDFAST_KEY: 'outer',
      HOLDFAST_DEADLINE: 'outer',
      HOLDFAST_STORE: '/outer.db',
    };
    const { stdout } = await sh(
      'echo "$HOLDFAST_KEY$HOLDFAST_DEADLINE$HOLDFAST_LAST_ERROR$HOLDFAST_MAX_ATTEMPTS $HOLDFAST_STORE"',
      {},
      { environment },
    );
    expect(stdout).toBe(' /outer.db\n');
  });

  test('no standard input, or a file', async () => {
    expect(await run(['cat'])).toEqual({ exit: 0, stdout: '' });
    writeFileSync(join(directory, 'in put'), 'hello');
    expect(await run(['cat'], { stdin: 'in put' })).toEqual({ exit: 0, stdout: 'hello' });
    expect(await run(['cat'], { stdin: join(directory, 'in put') })).toEqual({ exit: 0, stdout: 'hello' });
    expect(await run(['cat'], { stdin: '/dev/null' })).toEqual({ exit: 0, stdout: '' });
  });

  test('an input file and its output are whole, however fast it ends', async () => {
    writeFileSync(join(directory, 'fast'), 'x'.repeat(4_096));
    const results = await Promise.all(Array.from({ length: 50 }, () => run(['cat'], { stdin: 'fast' })));
    expect(new Set(results.map(({ stdout }) => stdout?.length))).toEqual(new Set([4_096]));
  });

  test('an input file that is missing is a failure of the file system, as it came', async () => {
    await expect(run(['cat'], { stdin: 'nowhere' })).rejects.toMatchObject({ code: 'ENOENT', syscall: 'stat' });
  });

  test('a pipe as input is refused, because nobody may ever write to it', async () => {
    execFileSync('mkfifo', [join(directory, 'pipe')]);
    expect(await failureOf(run(['cat'], { stdin: 'pipe' }))).toMatchObject({ kind: 'permanent', reason: 'fs.invalid' });
  });
});

describe('output', () => {
  test('the last 4 KiB of stdout are the result, from the first whole character on', async () => {
    const { stdout } = await run([process.execPath, '-e', `process.stdout.write('x' + '€'.repeat(5000))`]);
    expect(stdout).toBe('€'.repeat(Math.floor(4096 / 3)));
  });

  test('a result can be stored whatever the command wrote', async () => {
    const result = await sh(String.raw`printf 'a\000b\377\355\240\200'`);
    expect(result.stdout).toMatch(/^a␀b\ufffd+$/);
    expect(() => encodeJson(result, 'result')).not.toThrow();
  });

  test('is shown as it comes, and then it is no part of the result', async () => {
    const shown = { stdout: '', stderr: '' };
    const write = vi.fn((stream: 'stdout' | 'stderr', chunk: Buffer) => {
      shown[stream] += chunk;
    });
    const said = failureOf(sh('echo out; echo err >&2; exit 3', {}, { write }));
    expect(await said).toMatchObject({ message: 'exit 3: err' });
    expect(shown).toEqual({ stdout: 'out\n', stderr: 'err\n' });
    expect(await sh('echo out', {}, { write })).toEqual({ exit: 0 });
  });

  test('what fails to show it stops the command, and is what the execution fails with', async () => {
    const broken = new Error('the terminal went away');
    const write = () => {
      throw broken;
    };
    await expect(sh('echo x; sleep 1000', {}, { write })).rejects.toBe(broken);
    await expect(sh('(until ! kill -0 $$ 2>/dev/null; do sleep 0.01; done; echo x) &', {}, { write })).rejects.toBe(
      broken,
    );
  });

  test('256 MiB of stderr do not fill the memory', async () => {
    let most = 0;
    let bytes = 0;
    const before = process.memoryUsage().rss;
    const write = (_: string, chunk: Buffer) => {
      bytes += chunk.length;
      most = Math.max(most, process.memoryUsage().rss - before);
    };
    const said = await failureOf(
      sh('head -c 268435456 /dev/zero >&2; echo >&2; echo the end >&2; exit 9', {}, { write }),
    );
    expect(said).toMatchObject({ message: 'exit 9: the end', reason: 'process.exit' });
    expect(bytes).toBe(268_435_456 + 9);
    expect(Math.max(most, process.memoryUsage().rss - before)).toBeLessThan(128 * 1024 * 1024);
  });

  test('is a sign of life, passed on at most once a second', async () => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    const heartbeat = vi.fn();
    const beats: number[] = [];
    const times = [0, 10, 999, 1_000, 1_500, 2_000];
    const write = () => {
      beats.push(heartbeat.mock.calls.length);
      clock.mockReturnValue(times[beats.length] ?? 0);
      writeFileSync(join(directory, `go ${beats.length}`), '');
    };
    try {
      await sh(
        'for i in 1 2 3 4 5 6; do echo; until [ -e "go $i" ]; do sleep 0.01; done; done',
        {},
        { write, heartbeat },
      );
    } finally {
      clock.mockRestore();
    }
    expect(beats).toEqual([1, 1, 1, 2, 2, 3]);
  });

  test('silence is no sign of life', async () => {
    const heartbeat = vi.fn();
    await run(['true'], {}, { heartbeat });
    expect(heartbeat).not.toHaveBeenCalled();
  });
});

describe('how it ended', () => {
  const ENDS: readonly (readonly [script: string, kind: FailureKind, reason: Reason, code: string])[] = [
    ['exit 1', 'unknown', 'process.exit', '1'],
    ['exit 255', 'unknown', 'process.exit', '255'],
    ['exit 64', 'permanent', 'process.usage', '64'],
    ['exit 78', 'permanent', 'process.usage', '78'],
    ['exit 75', 'transient', 'process.tempfail', '75'],
    ['timeout 0.01 sleep 1000', 'transient', 'timeout', '124'],
    ['holdfast-no-such-program', 'permanent', 'process.not_found', '127'],
    ['/etc/passwd', 'permanent', 'process.not_executable', '126'],
    ...['129', '130', '131', '137', '141', '143'].map(
      (code) => [`exit ${code}`, 'transient', 'process.killed', code] as const,
    ),
    ...['132', '134', '136', '139'].map((code) => [`exit ${code}`, 'unknown', 'process.crashed', code] as const),
    ...['HUP', 'INT', 'KILL', 'TERM', 'QUIT', 'PIPE', 'USR1'].map(
      (name) => [`kill -${name} $$`, 'transient', 'process.killed', `SIG${name}`] as const,
    ),
    ...['ABRT', 'BUS', 'FPE', 'ILL', 'SEGV', 'TRAP', 'SYS'].map(
      (name) => [`kill -${name} $$`, 'unknown', 'process.crashed', `SIG${name}`] as const,
    ),
  ];
  test.each(ENDS)('%s is %s, %s', async (text, kind, reason, code) => {
    const { fault } = REASONS[reason];
    expect(await failureOf(sh(text))).toMatchObject({ kind, reason, fault, code });
  });

  const LINES: readonly [line: string, kind: FailureKind, reason: Reason][] = [
    ['ssh: connect to host nas port 22: Connection refused', 'transient', 'net.refused'],
    ['rsync: [sender] failed to connect to nas (10.0.0.9): Connection refused (111)', 'transient', 'net.refused'],
    ['ConnectionRefusedError: [Errno 111] Connection refused', 'transient', 'net.refused'],
    ['dial tcp 127.0.0.1:1: connect: connection refused', 'transient', 'net.refused'],
    ['Connection refused', 'transient', 'net.refused'],
    [`fatal: unable to access 'https://git.example/': Could not resolve host: git.example`, 'transient', 'net.dns'],
    ['curl: (6) Could not resolve host: api.example', 'transient', 'net.dns'],
    ['ssh: Could not resolve hostname nas: Name or service not known', 'transient', 'net.dns'],
    ['ssh: Could not resolve hostname nas: Temporary failure in name resolution', 'transient', 'net.dns'],
    ['dial tcp: lookup api.example on 10.0.0.1:53: no such host', 'transient', 'net.dns'],
    ['ssh: connect to host nas port 22: No route to host', 'transient', 'net.unreachable'],
    ['connect: Network is unreachable', 'transient', 'net.unreachable'],
    ['ssh: connect to host nas port 22: Connection timed out', 'transient', 'net.timeout'],
    ['ssh: connect to host nas port 22: Operation timed out', 'transient', 'net.timeout'],
    ['curl: (28) Operation timed out after 1000 milliseconds with 0 bytes received', 'transient', 'net.timeout'],
    [
      'curl: (7) Failed to connect to api.example port 443 after 3 ms: Could not connect to server',
      'transient',
      'net.failed',
    ],
    [
      `fatal: unable to access 'http://x/': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server`,
      'transient',
      'net.failed',
    ],
    ['kex_exchange_identification: read: Connection reset by peer', 'transient', 'net.reset'],
    ['cp: error writing "/mnt/a": No space left on device', 'transient', 'fs.no_space'],
    [`OSError: [Errno 28] No space left on device: '/mnt/a b'`, 'transient', 'fs.no_space'],
    ['touch: /home/a: Disk quota exceeded', 'transient', 'fs.no_space'],
    ['git@git.example: Permission denied (publickey).', 'permanent', 'auth.invalid'],
    ['git@git.example: Permission denied (publickey,password).', 'permanent', 'auth.invalid'],
    ['Host key verification failed.', 'permanent', 'tls.certificate'],
    ['sh: 1: ./tool: Text file busy', 'transient', 'fs.locked'],
    ['umount: /mnt: Device or resource busy', 'transient', 'fs.locked'],
    ['flock: 9: Resource temporarily unavailable', 'transient', 'fs.locked'],
    ['bash: fork: retry: Resource temporarily unavailable', 'transient', 'resource.limit'],
    ['\u001b[1;31merror\u001b[0m: \u001b[31mConnection refused\u001b[0m', 'transient', 'net.refused'],
    // Prose, options and names that only mention it.
    ['If you see "Connection refused", check the port.', 'unknown', 'process.exit'],
    ['The test for Connection refused', 'unknown', 'process.exit'],
    ['Connection refused: see the manual', 'unknown', 'process.exit'],
    [`error: no such option '--no-route-to-host'`, 'unknown', 'process.exit'],
    ['rm: cannot remove "No space left on device"', 'unknown', 'process.exit'],
    ['rm: x: Permission denied', 'unknown', 'process.exit'],
    ['see curl: (6) and curl: (7)', 'unknown', 'process.exit'],
  ];
  test.each(LINES)('stderr "%s" is %s, %s', async (line, kind, reason) => {
    expect(await failureOf(run(['sh', '-c', 'printf "%s\\n" "$1" >&2; exit 1', 'sh', line]))).toMatchObject({
      kind,
      reason,
      fault: REASONS[reason].fault,
    });
  });

  test('a line further up counts too, and is shown because it says why', async () => {
    const lines = [
      'ssh: connect to host nas port 22: No route to host',
      'rsync: connection closed',
      '',
      'rsync error: code 255',
    ];
    expect(
      await failureOf(sh(`printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')} >&2; exit 255`)),
    ).toMatchObject({
      kind: 'transient',
      reason: 'net.unreachable',
      fault: 'source',
      code: '255',
      message: 'exit 255: ssh: connect to host nas port 22: No route to host',
    });
  });

  test('a line more than ten lines above the end does not', async () => {
    const said = await failureOf(sh('{ echo "ssh: Connection refused"; seq 10; } >&2; exit 1'));
    expect(said).toMatchObject({ reason: 'process.exit', message: 'exit 1: 10' });
  });

  test('an exit code with a meaning says more than stderr', async () => {
    expect(await failureOf(sh('echo "x: Connection refused" >&2; exit 64'))).toMatchObject({ reason: 'process.usage' });
  });

  test('the message is the last line with something in it, at most 300 characters, and cannot harm a terminal', async () => {
    const messageOf = async (text: string) =>
      (await failureOf(run(['sh', '-c', 'printf "%b" "$1" >&2; exit 4', 'sh', text]))).message;
    expect(await messageOf('')).toBe('exit 4');
    expect(await messageOf('first\\nlast\\n \\n\\n')).toBe('exit 4: last');
    expect(await messageOf('10%\\r20%\\rdisk on fire\\r\\n')).toBe('exit 4: disk on fire');
    expect(await messageOf('\\033]0;title\\007 \\033[2Jx\\ty\\001')).toBe(String.raw`exit 4: \x1b]0;title\x07 x y\x01`);
    expect(await messageOf('\u202egnp.exe')).toBe(String.raw`exit 4: \u202egnp.exe`);
    const long = await messageOf('🙂'.repeat(400));
    expect(long).toBe(`exit 4: ${'🙂'.repeat(299)}…`);
  });

  test('a signal is named in the message', async () => {
    expect((await failureOf(sh('echo bye >&2; kill -KILL $$'))).message).toBe('killed by SIGKILL: bye');
  });
});

describe('a rate limit that a command tells of on stderr', () => {
  test.each([
    ['ERROR: [youtube] abc: Unable to download webpage: HTTP Error 429: Too Many Requests (caused by <HTTPError 429>)'],
    ['toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating.'],
    ['Error response from daemon: toomanyrequests: Rate exceeded'],
    ['curl: (22) The requested URL returned error: 429'],
    ["fatal: unable to access 'https://example.com/r.git/': The requested URL returned error: 429"],
    ['2026-01-15 12:00:00 ERROR 429: Too Many Requests.'],
    ['npm error code E429'],
    ['gh: API rate limit exceeded for user ID 1. (HTTP 403)'],
    ['HTTP 403: You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'],
    ['An error occurred (ThrottlingException) when calling the X operation (reached max retries: 4): Rate exceeded'],
    ['An error occurred (RequestLimitExceeded) when calling the RunInstances operation'],
    ['Failed to copy: googleapi: Error 403: User Rate Limit Exceeded., userRateLimitExceeded'],
    ['ERROR: (gcloud.run) RESOURCE_EXHAUSTED: Quota exceeded for quota metric'],
    ['Error from server (TooManyRequests): the server has received too many requests'],
    ['requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://example.com/'],
    ["openai.RateLimitError: Error code: 429 - {'error': {}}"],
    ['https response error StatusCode: 429, RequestID: 1, TooManyRequestsException: Rate Exceeded.'],
    ['rpc error: code = ResourceExhausted desc = too fast'],
    ['error: server returned 429'],
    ['@ERROR: max connections (4) reached -- try again later'],
  ])('%s', async (line) => {
    const failure = await failureOf(sh(`cat >&2 <<'EOF'\n${line}\nEOF\nexit 1`));
    expect(failure).toMatchObject({ kind: 'rate_limited', reason: 'throttled', fault: 'quota', code: '1' });
  });

  test('names the wait', async () => {
    const failure = await failureOf(sh('echo "Error: Too many requests - try again in 5 minutes" >&2; exit 1'));
    expect(failure).toMatchObject({ kind: 'rate_limited', retryAfterMs: 300_000 });
  });

  test.each([['Disk quota exceeded'], ['4290 files'], ['x: limit: 429'], ['the rate limit is 100']])(
    '%s is none',
    async (line) => {
      expect((await failureOf(sh(`echo '${line}' >&2; exit 1`))).kind).not.toBe('rate_limited');
    },
  );
});

describe('what the user said of it', () => {
  const SAID: readonly [
    script: string,
    input: Partial<CommandInput>,
    kind: FailureKind | undefined,
    reason?: string,
  ][] = [
    ['exit 24', { successOn: [0, [20, 24]] }, undefined],
    ['exit 0', { successOn: [1] }, 'unknown', 'process.exit'],
    ['exit 24', { successOn: [24], noRetryOn: [24] }, undefined],
    ['kill -TERM $$', { successOn: [0, 143] }, undefined],
    ['exit 2', { retryOn: [[1, 9]] }, 'transient', 'process.exit'],
    ['exit 2', { retryOn: [[1, 255]], noRetryOn: [2] }, 'permanent', 'process.exit'],
    ['kill -TERM $$', { noRetryOn: [143] }, 'permanent', 'process.exit'],
    // It wins over what the exit code and stderr mean to others,
    ['exit 127', { retryOn: [127] }, 'transient', 'process.exit'],
    ['exit 75', { noRetryOn: [75] }, 'permanent', 'process.exit'],
    ['echo "x: Connection refused" >&2; exit 1', { noRetryOn: [1] }, 'permanent', 'process.exit'],
    // which keep the reason where they agree.
    ['echo "x: Connection refused" >&2; exit 1', { retryOn: [1] }, 'transient', 'net.refused'],
    ['exit 127', { noRetryOn: [127] }, 'permanent', 'process.not_found'],
    ['echo oops: quota >&2; exit 1', { retryIfStderr: 'quot.$' }, 'transient', 'process.exit'],
    ['echo oops: quota >&2; exit 1', { permanentIfStderr: '^oops' }, 'permanent', 'process.exit'],
    ['echo oops: quota >&2; exit 1', { permanentIfStderr: 'QUOTA' }, 'unknown', 'process.exit'],
    ['echo oops: quota >&2; exit 1', { permanentIfStderr: '(?i)QUOTA' }, 'permanent', 'process.exit'],
    ['printf "one\\ntwo\\nthree\\n" >&2; exit 1', { retryIfStderr: '^two$' }, 'transient', 'process.exit'],
    ['printf "\\033[31mtwo\\033[0m\\r\\n" >&2; exit 1', { retryIfStderr: '^two$' }, 'transient', 'process.exit'],
    ['echo x >&2; exit 1', { retryIfStderr: 'x', permanentIfStderr: 'x' }, 'permanent', 'process.exit'],
    ['echo x >&2; exit 64', { retryIfStderr: 'x' }, 'transient', 'process.exit'],
    ['echo x >&2; exit 5', { retryIfStderr: 'x', noRetryOn: [5] }, 'permanent', 'process.exit'],
    ['echo x; exit 5', { retryIfStderr: 'x' }, 'unknown', 'process.exit'],
    ['echo oops: quota >&2; exit 1', { rateLimitedIfStderr: 'quot.$' }, 'rate_limited', 'throttled'],
    ['echo x >&2; exit 64', { rateLimitedIfStderr: 'x', retryIfStderr: 'x' }, 'rate_limited', 'throttled'],
    ['echo x >&2; exit 1', { rateLimitedIfStderr: 'x', permanentIfStderr: 'x' }, 'permanent', 'process.exit'],
    ['echo 429 Too Many Requests >&2; exit 1', { noRetryOn: [1] }, 'permanent', 'process.exit'],
  ];
  test.each(SAID)('%s with %j is %s', async (text, input, kind, reason) => {
    if (kind === undefined) expect(await sh(text, input)).toMatchObject({ exit: expect.any(Number) });
    else expect(await failureOf(sh(text, input))).toMatchObject({ kind, reason });
  });

  test('a pattern sees only the last 8 KiB', async () => {
    const text = 'echo early >&2; head -c 9000 /dev/zero | tr "\\0" a >&2; exit 1';
    expect(await failureOf(sh(text, { retryIfStderr: 'early' }))).toMatchObject({ kind: 'unknown' });
  });

  test('an evil pattern does not hang the process', async () => {
    const input = checkCommand({
      argv: ['head -c 9000 /dev/zero | tr "\\0" a >&2; echo ! >&2; exit 1'],
      shell: true,
      cwd: directory,
      retryIfStderr: '(a+)+$',
      permanentIfStderr: '(.*a){20}[^a!\n]$',
    });
    const from = performance.now();
    expect(await failureOf(command({ environment: process.env })(input, task()))).toMatchObject({ kind: 'unknown' });
    expect(performance.now() - from).toBeLessThan(15_000);
  });
});

describe('who is charged for a command that fails', () => {
  const FULL = 'echo "cp: error writing x: No space left on device" >&2; exit 1';
  const CHARGED: readonly [what: string, running: () => Promise<unknown>, next: string, charge: string][] = [
    ['a full disk', () => sh(FULL), 'scheduled', 'deferrals'],
    [
      'no room for one more process',
      () => sh('echo "sh: fork: Resource temporarily unavailable" >&2; exit 2'),
      'scheduled',
      'deferrals',
    ],
    ['no such folder', () => run(['true'], { cwd: '/no/such/folder' }), 'scheduled', 'deferrals'],
    [
      'a program that is gone',
      () => run(['no-such-program'], { program: '/no/such/program' }),
      'scheduled',
      'deferrals',
    ],
    ['a program that was never there', () => run(['no-such-program']), 'needs_manual', 'nobody'],
    ['an exit code of its own', () => sh('exit 1'), 'scheduled', 'task'],
    ['a usage error', () => sh('exit 64'), 'dead', 'task'],
    ['a server that refuses', () => sh('echo "ssh: connect: Connection refused" >&2; exit 255'), 'scheduled', 'task'],
    ['an end of which the user said otherwise', () => sh(FULL, { noRetryOn: [1] }), 'dead', 'task'],
  ];
  test.each(CHARGED)('%s', async (_, running, next, charge) => {
    const outcome = outcomeOf(await thrownBy(running()), { now: 0 });
    expect(decided(outcome, presets.standard)).toMatchObject({ next, charge });
  });

  test('the application’s own failure under the same reason is charged to the task', () => {
    const outcome = outcomeOf(new Failed('Full.', { reason: 'fs.no_space' }), { now: 0 });
    expect(outcome).toMatchObject({ failure: { fault: 'task' } });
    expect(decided(outcome, presets.standard)).toMatchObject({ charge: 'task' });
  });
});

describe('a command that cannot start', () => {
  test('because there is no such program', async () => {
    expect(await failureOf(run(['holdfast-no-such-program']))).toMatchObject({
      kind: 'permanent',
      reason: 'process.not_found',
      fault: 'worker',
      code: 'ENOENT',
      message: 'holdfast-no-such-program was not found, or the interpreter in its first line was not found.',
    });
    expect((await failureOf(run(['echo hi']))).message).toBe(
      'echo hi is no program. Give its arguments one by one, or use --shell.',
    );
    expect(await failureOf(run(['/etc/passwd/x']))).toMatchObject({ reason: 'process.not_found', code: 'ENOTDIR' });
    const orphan = script('orphan', '#!/no/such/interpreter\n');
    expect(await failureOf(run([orphan]))).toMatchObject({ reason: 'process.not_found' });
  });

  test('because the program is gone that was there when it was recorded; another worker may have it', async () => {
    expect(await failureOf(run(['holdfast-no-such-program'], { program: '/no/such/program' }))).toMatchObject({
      kind: 'transient',
      reason: 'process.not_found',
      fault: 'worker',
      code: 'ENOENT',
      message: 'holdfast-no-such-program was not found. It was /no/such/program when the command was recorded.',
    });
  });

  test('because its directory is gone, or is none', async () => {
    for (const cwd of ['/no/such/directory', '/etc/passwd']) {
      expect(await failureOf(run(['true'], { cwd }))).toMatchObject({
        kind: 'transient',
        reason: 'process.cwd_missing',
        fault: 'worker',
        message: `true was not started: there is no directory ${cwd}.`,
      });
    }
  });

  test('because the file is not executable', async () => {
    const path = script('plain', '#!/bin/sh\n', 0o644);
    expect(await failureOf(run([path]))).toMatchObject({
      kind: 'permanent',
      reason: 'process.not_executable',
      code: 'EACCES',
    });
  });

  test('because its arguments are too large', async () => {
    const said = await failureOf(run(['true', 'x'.repeat(8 * 1024 * 1024)]));
    expect(said).toMatchObject({ kind: 'permanent', reason: 'too_large', code: 'E2BIG' });
  });
});

describe('stopping', () => {
  const REASON = new Error('the lease was lost');

  /** Starts a script that names its processes in its first line, aborts it, and says how that went. */
  async function stopped(text: string, input: Partial<CommandInput> = {}, options: Partial<CommandOptions> = {}) {
    const controller = new AbortController();
    const { write, started } = observed();
    const running = sh(text, input, { write, signal: controller.signal, ...options });
    running.catch(() => {});
    const pids = await started;
    expect(pids.filter(runs)).toEqual(pids);
    controller.abort(REASON);
    return { running, pids };
  }

  test('before the start: it never starts', async () => {
    const started = vi.fn();
    subscribe('child_process', started);
    onTestFinished(() => void unsubscribe('child_process', started));
    await expect(run(['true'], { stdin: 'nowhere' }, { signal: AbortSignal.abort(REASON) })).rejects.toBe(REASON);

    writeFileSync(join(directory, 'input'), '');
    const controller = new AbortController();
    const running = run(['true'], { stdin: 'input' }, { signal: controller.signal });
    controller.abort(REASON); // While the input file is being opened.
    await expect(running).rejects.toBe(REASON);

    expect(started).not.toHaveBeenCalled();
    await run(['true']);
    expect(started).toHaveBeenCalledOnce();
  });

  test('at the moment of the start', async () => {
    const controller = new AbortController();
    const running = run(['sleep', '1000'], {}, { signal: controller.signal });
    controller.abort(REASON);
    await expect(running).rejects.toBe(REASON);
  });

  test('ends the whole group, and rejects with the reason once it is gone', async () => {
    const { running, pids } = await stopped('sleep 1000 & sh -c "sleep 1000; true" & echo $$ $!; wait');
    await expect(running).rejects.toBe(REASON);
    expect(pids.filter(runs)).toEqual([]);
  });

  test('a command that then exits 0 was stopped all the same', async () => {
    const { running } = await stopped('trap "exit 0" TERM; echo $$; while :; do sleep 0.01; done');
    await expect(running).rejects.toBe(REASON);
  });

  test('one that ignores SIGTERM is killed after killAfterMs', { timeout: 5_000 }, async () => {
    const { running, pids } = await stopped('trap "" TERM; echo $$; while :; do sleep 0.01; done', { killAfterMs: 50 });
    await expect(running).rejects.toBe(REASON);
    expect(pids.filter(runs)).toEqual([]);
  });

  test('one that needs its time to end gets it', async () => {
    const farewell = join(directory, 'farewell');
    const { running } = await stopped(
      'trap "sleep 0.2; touch farewell; exit 1" TERM; echo $$; while :; do sleep 0.01; done',
    );
    await expect(running).rejects.toBe(REASON);
    expect(existsSync(farewell)).toBe(true);
  });

  test('a second word kills at once, however long killAfterMs is', async () => {
    const kill = new AbortController();
    const text = 'trap "" TERM; echo $$; while :; do sleep 0.01; done';
    const { running, pids } = await stopped(text, { killAfterMs: 3_600_000 }, { kill: kill.signal });
    kill.abort();
    await expect(running).rejects.toBe(REASON);
    expect(pids.filter(runs)).toEqual([]);
  });

  test('a grandchild that ignores SIGTERM is killed too, though the command itself obeyed', {
    timeout: 5_000,
  }, async () => {
    const text =
      'sh -c "trap \\"\\" TERM; exec >/dev/null 2>&1; echo >ready; while :; do sleep 0.01; done" & until [ -e ready ]; do sleep 0.01; done; echo $$ $!; wait';
    const { running, pids } = await stopped(text, { killAfterMs: 50 });
    await expect(running).rejects.toBe(REASON);
    expect(pids.filter(runs)).toEqual([]);
  });

  test('a suspended command hears of it', async () => {
    const { running } = await stopped('trap "exit 0" TERM; echo $$; kill -STOP $$; while :; do sleep 0.01; done', {
      killAfterMs: 3_600_000,
    });
    await expect(running).rejects.toBe(REASON);
  });

  test('comes too late for a command that has ended: its own word counts', async () => {
    const controller = new AbortController();
    // The shell is gone, and its child keeps the pipes open.
    const write = () => controller.abort(REASON);
    const running = sh(
      '(until ! kill -0 $$ 2>/dev/null; do sleep 0.01; done; sleep 0.1; echo; exec sleep 1000) & exit 0',
      {},
      { write, signal: controller.signal },
    );
    await expect(running).resolves.toEqual({ exit: 0 });
  });
});

describe.concurrent('what a command leaves behind', () => {
  test('a grandchild that keeps the pipes open does not hold up the end, and is ended', async () => {
    const { write, started } = observed();
    await expect(sh('sleep 1000 & echo $!', {}, { write })).resolves.toEqual({ exit: 0 });
    expect((await started).filter(runs)).toEqual([]);
  });

  test('so is one that closed them', async () => {
    const { write, started } = observed();
    const said = await failureOf(sh('sleep 1000 >/dev/null 2>&1 & echo $!; exit 3', {}, { write }));
    expect(said).toMatchObject({ code: '3' });
    expect((await started).filter(runs)).toEqual([]);
  });

  test('what a grandchild still has to say within a second is heard', async () => {
    expect(await sh('{ sleep 0.1; echo late; } &')).toEqual({ exit: 0, stdout: 'late\n' });
  });

  test('a daemon that left the group is out of reach, and holds nothing up', async () => {
    const { write, started } = observed();
    await expect(sh('setsid sh -c "echo \\$\\$; exec sleep 1000" & sleep 0.1', {}, { write })).resolves.toEqual({
      exit: 0,
    });
    const [daemon] = (await started) as [number];
    expect(runs(daemon)).toBe(true);
    process.kill(daemon, 'SIGKILL');
    await expectGone([daemon]);
  });

  test('nor is its output heard any longer', async () => {
    const { write, started } = observed();
    await sh('setsid sh -c "echo \\$\\$; while echo; do sleep 0.01; done" & sleep 0.1', {}, { write });
    await expectGone(await started); // It wrote to a pipe without a reader.
  });

  const PERL = spawnSync('perl', ['-MPOSIX', '-e', '1']).status === 0;
  test.skipIf(!PERL || process.platform !== 'linux')(
    'zombies that nobody reaps, as in a container without an init, count as gone',
    async () => {
      const { write, started } = observed();
      // A child leaves the group but not before it had a child of its own in it, which ended and is never waited for.
      const text = `
      pipe(READY, DONE); $| = 1;
      if (my $child = fork) { close DONE; my $zombie = <READY>; print "$child $zombie"; exit 0 }
      my $zombie = fork; exit 0 unless $zombie;
      POSIX::setsid(); open STDOUT, '>/dev/null'; open STDERR, '>/dev/null';
      print DONE "$zombie\\n"; close DONE; sleep 1000`;
      const running = run(['perl', '-MPOSIX', '-e', text], { killAfterMs: 3_600_000 }, { write });
      await expect(running).resolves.toEqual({ exit: 0 });
      const [parent, zombie] = (await started) as [number, number];
      const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-p', String(zombie)]);
      expect(stdout).toMatch(/^Z/);
      process.kill(parent, 'SIGKILL');
      await expectGone([parent]);
    },
  );
});

describe('parseExitCodes', () => {
  test('reads codes and ranges', () => {
    expect(parseExitCodes('1,75,124-127')).toEqual([1, 75, [124, 127]]);
    expect(parseExitCodes(' 0 , 5 - 5,255')).toEqual([0, [5, 5], 255]);
  });

  test.each(['', '1,', 'x', '256', '-1', '1-', '9-3', '1-300', '1.5', '0x1', '1 2', '1--2'])(
    'refuses %j, naming the piece',
    (text) => {
      expect(() => parseExitCodes(`3,${text}`)).toThrow(`got '${text.split(',').at(-1)}' in '3,${text}'`);
    },
  );
});

describe('checkCommand', () => {
  const LEAST = { argv: ['true'], cwd: '/' };
  const MOST: CommandInput = {
    argv: ['sh', '-c', '', 'a\nb'],
    shell: false,
    cwd: '/tmp',
    env: { A: '', 'B.c': 'x=y' },
    stdin: 'in',
    successOn: [0, [20, 30]],
    retryOn: [],
    noRetryOn: [255],
    retryIfStderr: '^(a|b)$',
    rateLimitedIfStderr: 'y',
    permanentIfStderr: 'x',
    killAfterMs: 0,
  };

  test('gives back what it understood, as it is stored', () => {
    expect(checkCommand(LEAST)).toEqual(LEAST);
    expect(checkCommand(JSON.parse(JSON.stringify(MOST)))).toEqual(MOST);
    expect(checkCommand({ ...LEAST, env: undefined })).toEqual(LEAST);
  });

  const env = JSON.parse('{"__proto__": "x"}');
  test('keeps a variable named __proto__ as data', () => {
    expect(Object.entries(checkCommand({ ...LEAST, env }).env ?? {})).toEqual([['__proto__', 'x']]);
  });

  const REFUSED: readonly [input: unknown, message: string][] = [
    [null, 'A command takes an object of options, got null.'],
    [[], 'A command takes an object of options, got an array.'],
    [{ ...LEAST, retryon: [1] }, `A command has no option 'retryon'. It has: argv, program, shell,`],
    [JSON.parse('{"__proto__": 1}'), `A command has no option '__proto__'.`],
    [{ ...LEAST, toString: 1 }, `A command has no option 'toString'.`],
    [{ cwd: '/' }, 'argv must be a list of a program and its arguments, got undefined.'],
    [{ ...LEAST, argv: 'ls -l' }, `argv must be a list of a program and its arguments, got 'ls -l'.`],
    [{ ...LEAST, argv: [] }, 'argv must be a list of a program and its arguments, got [].'],
    [{ ...LEAST, argv: ['', 'x'] }, 'argv[0] must not be empty.'],
    [{ ...LEAST, argv: ['ls', 7] }, 'argv[1] must be a string, got 7.'],
    // biome-ignore lint/suspicious/noSparseArray: what a list from outside may be
    [{ ...LEAST, argv: ['ls', , 'x'] }, 'argv[1] must be a string, got undefined.'],
    [{ ...LEAST, argv: ['ls', 'a', 'b\0c'] }, 'argv[2] has a NUL byte at position 1, which no program accepts.'],
    [{ ...LEAST, argv: ['ls', '-l'], shell: true }, 'With shell, argv must be one string, the script, got 2 strings.'],
    [{ ...LEAST, shell: 1 }, 'shell must be true or false, got 1.'],
    [{ argv: ['ls'] }, 'cwd must be a string, got undefined.'],
    [{ ...LEAST, cwd: 'sub' }, `cwd must be an absolute path, got 'sub'.`],
    [{ ...LEAST, cwd: '/\0' }, 'cwd has a NUL byte at position 1'],
    [{ ...LEAST, env: ['A=1'] }, `env must be an object of strings, got ["A=1"].`],
    [{ ...LEAST, env: { A: 1 } }, 'env.A must be a string, got 1.'],
    [{ ...LEAST, env: { A: '\0' } }, 'env.A has a NUL byte'],
    [{ ...LEAST, env: { 'A=B': '' } }, `env has a variable named 'A=B'; a name has no '=' and no NUL byte.`],
    [{ ...LEAST, env: { '': '' } }, `env has a variable named ''`],
    [{ ...LEAST, stdin: '' }, 'stdin must not be empty.'],
    [{ ...LEAST, successOn: [] }, 'successOn must have at least one exit code, or no command could succeed.'],
    [{ ...LEAST, successOn: 0 }, 'successOn must be a list of exit codes and ranges'],
    [{ ...LEAST, retryOn: [1, 256] }, 'retryOn[1] must be an exit code from 0 to 255 or a range of them, got 256.'],
    [{ ...LEAST, retryOn: ['1'] }, `retryOn[0] must be an exit code from 0 to 255 or a range of them, got '1'.`],
    [
      { ...LEAST, noRetryOn: [[9, 3]] },
      'noRetryOn[0] must be an exit code from 0 to 255 or a range of them, got [9,3].',
    ],
    [{ ...LEAST, noRetryOn: [[1, 2, 3]] }, 'noRetryOn[0] must be'],
    [
      { ...LEAST, retryIfStderr: '(' },
      'retryIfStderr is not a regular expression: error parsing regexp: missing closing )',
    ],
    [{ ...LEAST, permanentIfStderr: '(?=x)' }, 'Patterns use RE2, which has no look-around and no back-references.'],
    [{ ...LEAST, retryIfStderr: '' }, 'retryIfStderr must not be empty.'],
    [{ ...LEAST, retryIfStderr: 'x'.repeat(1_001) }, 'retryIfStderr must have at most 1,000 characters, got 1001.'],
    [
      { ...LEAST, retryIfStderr: '(a?){1000}(b?){1000}' },
      'retryIfStderr is too large when its repetitions are written out',
    ],
    [{ ...LEAST, killAfterMs: -1 }, 'killAfterMs must be a whole number between 0 and 3600000, got -1.'],
    [{ ...LEAST, killAfterMs: 2 ** 31 }, 'killAfterMs must be a whole number between 0 and 3600000, got 2147483648.'],
    [{ ...LEAST, killAfterMs: '10s' }, `killAfterMs must be a whole number between 0 and 3600000, got "10s".`],
  ];
  test.each(REFUSED)('refuses %j', (input, message) => {
    expect(() => checkCommand(input)).toThrow(
      expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining(message) }),
    );
  });

  test('refuses the worst pattern of a thousand characters fast', () => {
    const from = performance.now();
    expect(() => checkCommand({ ...LEAST, retryIfStderr: '(?:a?){1000}'.repeat(83) })).toThrow('too large');
    expect(performance.now() - from).toBeLessThan(15_000);
  });
});
