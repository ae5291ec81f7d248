import { describe, expect, test } from 'vitest';
import { EXIT } from '../../src/cli/exit-codes.ts';
import { commandStatus } from '../../src/cli/foreground/command-status.ts';
import { exitOfTasks } from '../../src/cli/foreground/exit-of-tasks.ts';
import { Problem, problemJson, problemLines, problemOf } from '../../src/cli/problem.ts';
import { commandsLike, nearest } from '../../src/cli/suggest.ts';
import { Channel, speaksUtf8, Terminal, wantsColour } from '../../src/cli/terminal/terminal.ts';
import { ERROR_CODES, type ErrorCode, StoreError } from '../../src/errors.ts';
import type { Failure } from '../../src/failure/outcome.ts';
import { openHoldfast } from '../../src/queue/open.ts';
import { PolicyCache } from '../../src/queue/policy-cache.ts';
import type { Task } from '../../src/queue/task-view.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { HistoryEntry } from '../../src/store/store.ts';
import type { Json } from '../../src/task.ts';
import {
  attemptsOf,
  endOf,
  isAmbiguous,
  numbered,
  policyWords,
  reasoning,
  summaryOf,
} from '../../src/views/task-text.ts';
import { ago, clockTime, rfc3339, until } from '../../src/views/times.ts';

const COMMANDS = ['run', 'mv', 'worker', 'resume', 'wait', 'status', 'list', 'ls', 'show', 'retry', 'cancel', 'hold'];

describe('an unknown command', () => {
  test.each([
    ['lsit', ['list']],
    ['shwo', ['show']],
    ['retyr', ['retry']],
    ['stat', ['status']],
    ['xyzzy', []],
  ])('%s is matched by its letters', (word, likely) => {
    expect(commandsLike(word, COMMANDS)).toEqual(likely);
  });

  test.each([
    ['restart', /^retry /],
    ['rm', /^cancel /],
    ['ps', /^list state:running$/],
    ['start', /^worker /],
    ['groups', /^failures /],
    ['export', /^list --all --json, /],
    ['pause', /^hold \(tasks\), sources hold, or queues pause$/],
  ])('%s is matched by what is meant', (word, meant) => {
    expect(commandsLike(word, COMMANDS)).toEqual([expect.stringMatching(meant)]);
  });

  test('a name that all objects have means nothing', () => {
    expect(commandsLike('constructor', COMMANDS)).toEqual([]);
    expect(nearest('toString', COMMANDS)).toEqual([]);
  });
});

describe('a problem', () => {
  test('has an exit code for each code of an error', () => {
    const exitOf = (code: ErrorCode) => new Problem(code, '').exit;
    expect(ERROR_CODES.map(exitOf).every((exit) => exit > 0)).toBe(true);
    expect(exitOf('task_not_found')).toBe(3);
    expect(exitOf('store_read_only')).toBe(9);
  });

  test('says what, why, what next, and how the command ends', () => {
    const problem = new Problem('task_not_found', 'no task #9', {
      why: ['The newest is 3.'],
      hints: ['holdfast list'],
    });
    expect(problemLines(problem)).toEqual([
      'error: no task #9',
      '       The newest is 3.',
      '       holdfast list   (exit 3)',
    ]);
    expect(problemJson(problem)).toEqual({
      type: 'urn:holdfast:problem:task_not_found',
      code: 'task_not_found',
      title: 'Task not found',
      detail: 'no task #9. The newest is 3.',
      exit: 3,
      hints: ['holdfast list'],
      retryable: false,
    });
  });

  test('is made of whatever was thrown', () => {
    expect(problemOf(new StoreError('store_busy', 'locked', { retryable: true }))).toMatchObject({
      code: 'store_busy',
      exit: 7,
      retryable: true,
    });
    expect(problemOf(new TypeError('x is undefined'))).toMatchObject({ code: 'unexpected', exit: 1 });
    expect(problemOf(undefined)).toMatchObject({ code: 'unexpected', exit: 1 });
  });

  test('shows no control characters of what it is about', () => {
    expect(problemLines(problemOf(new Error('\u001b[2Jgone'))).join('')).not.toContain('\u001b');
  });
});

describe('a terminal', () => {
  test.each([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [false, { FORCE_COLOR: '1' }, true],
    [true, { FORCE_COLOR: '0' }, false],
    [true, { NO_COLOR: '1', FORCE_COLOR: '1' }, false],
    [true, { TERM: 'dumb' }, false],
    [true, { CLICOLOR: '0' }, false],
  ])('a terminal (%s) with %j has colours: %s', (isTerminal, environment, colours) => {
    expect(wantsColour(isTerminal, environment)).toBe(colours);
  });

  test.each([
    [{ LANG: 'en_US.UTF-8' }, 'linux', true],
    [{ LANG: 'C.utf8' }, 'linux', true],
    [{ LANG: 'en_US.UTF-8', LC_ALL: 'C' }, 'linux', false],
    [{ LANG: 'de_DE.ISO-8859-1' }, 'linux', false],
    [{}, 'linux', false],
    [{}, 'darwin', true],
    [{}, 'win32', true],
  ] as const)('%j on %s speaks UTF-8: %s', (environment, platform, yes) => {
    expect(speaksUtf8(environment, platform)).toBe(yes);
  });

  test('gets ASCII where it speaks nothing else, and JSON as it is', () => {
    const written: string[] = [];
    const sink = { write: (chunk: string | Uint8Array) => written.push(String(chunk)) };
    const channel = new Channel(sink, {}, { colour: false, ascii: true });
    channel.line('✓ #1');
    channel.raw('{"a":"✓"}\n');
    expect(written).toEqual(['+ #1\n', '{"a":"✓"}\n']);
  });

  test('is not moved by JSON either', () => {
    const written: string[] = [];
    const sink = { write: (chunk: string | Uint8Array) => written.push(String(chunk)) };
    const streams = { stdout: sink, stderr: sink, stdin: {}, env: {}, platform: 'linux' } as const;
    const terminal = new Terminal(streams, { json: true });
    const value = { said: '\u001b[2J\u009b2J\u202e\u007f č' };
    terminal.document(value);
    expect(written).toEqual([`{"said":"\\u001b[2J\\u009b2J\\u202e\\u007f č"}\n`]);
    expect(JSON.parse(written[0] as string)).toEqual(value);
  });

  test('is as wide as COLUMNS says, and without an end where nobody looks', () => {
    const sink = { write: () => true, columns: 120 };
    const options = { colour: false, ascii: false };
    expect(new Channel({ ...sink, isTTY: true }, { COLUMNS: '60' }, options).columns).toBe(60);
    expect(new Channel({ ...sink, isTTY: true }, {}, options).columns).toBe(120);
    expect(new Channel(sink, {}, options).columns).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('times', () => {
  const now = new Date(2026, 4, 30, 12, 0, 0).getTime();

  test('to come and past', () => {
    expect([until(now + 250_400, now), until(now - 5, now), until(now + 400, now)]).toEqual([
      'in 4m10s',
      'now',
      'in 400ms',
    ]);
    expect([ago(now - 250_400, now), ago(now - 500, now), ago(now - 90_000_000, now)]).toEqual([
      '4m ago',
      'just now',
      '1d ago',
    ]);
  });

  test('of a day are shown without it', () => {
    expect(clockTime(now, now)).toBe('12:00:00');
    expect(clockTime(now - 86_400_000, now)).toBe('2026-05-29 12:00:00');
  });

  test('for programs are RFC 3339 in UTC', () => {
    expect([rfc3339(0), rfc3339(undefined)]).toEqual(['1970-01-01T00:00:00.000Z', null]);
  });
});

const failure = (more: Partial<Failure> = {}): Failure => ({
  kind: 'unknown',
  reason: 'process.exit',
  fault: 'task',
  ambiguous: false,
  name: 'Failed',
  message: 'exit 3: boom',
  evidence: { rule: 'signal' },
  ...more,
});

type Execution = Extract<HistoryEntry, { kind: 'execution' }>;

const execution = (more: Partial<Execution> = {}): Execution => ({
  kind: 'execution',
  execution: 1,
  worker: 'w1',
  startedAt: 0,
  endedAt: 10,
  outcome: 'failure',
  next: 'scheduled',
  charge: 'task',
  failure: failure(),
  late: false,
  ...more,
});

const retryBy = (from: 'dead' | 'scheduled'): HistoryEntry => ({
  kind: 'action',
  at: 20,
  actor: 'eva',
  verb: 'retry',
  from,
  to: 'ready',
});

describe('the exit code of a command', () => {
  const dead = { state: 'dead' } as const;

  test.each([
    [{ state: 'succeeded' } as const, [execution()], 0],
    [{ state: 'succeeded' } as const, [], 0],
    [dead, [execution({ failure: failure({ code: '3' }) })], 3],
    [dead, [execution({ failure: failure({ code: '3' }) }), execution({ failure: failure({ code: '7' }) })], 7],
    [dead, [execution({ failure: failure({ code: 'SIGKILL' }) })], 137],
    [dead, [execution({ failure: failure({ code: 'ENOENT', reason: 'process.not_found' }) })], 127],
    [dead, [execution({ failure: failure({ code: 'EACCES', reason: 'process.not_executable' }) })], 126],
    [dead, [execution({ failure: failure({ reason: 'timeout' }) })], 124],
    [dead, [execution({ failure: failure({ code: '0' }) })], 1],
    [dead, [], 125],
    [dead, [execution({ failure: failure({ code: '3' }), late: true })], 125],
    [dead, [execution({ failure: failure({ code: 'toString' }) })], 125],
    [{ state: 'cancelled' } as const, [execution({ failure: failure({ code: '9' }) })], 9],
  ])('%j', (task, history, exit) => {
    expect(commandStatus(task, history)).toBe(exit);
  });
});

describe('the exit code of several tasks', () => {
  test.each([
    [['succeeded'], EXIT.done],
    [[], EXIT.done],
    [['succeeded', 'dead'], EXIT.failed],
    [['cancelled'], EXIT.failed],
    [['dead', 'needs_manual'], EXIT.needsPerson],
    [['needs_manual', 'scheduled'], EXIT.notFinished],
    [['held'], EXIT.notFinished],
  ] as const)('%j', (states, exit) => {
    expect(exitOfTasks(states.map((state) => ({ state })))).toBe(exit);
  });
});

describe('a task in words', () => {
  test.each<[string, Json, string]>([
    ['shell_command', { argv: ['rsync', '-a', './my out/', 'nas:/'] }, "rsync -a './my out/' nas:/"],
    ['shell_command', { argv: ['a | b'], shell: true }, 'a | b'],
    ['shell_command', { argv: ['\u001b[2J'] }, String.raw`'\x1b[2J'`],
    ['shell_command', 'nonsense', 'shell_command'],
    ['file_move', { from: '/a', to: '/b c' }, "mv /a '/b c'"],
    ['http_delivery', { method: 'PUT', url: 'https://a.example/b' }, 'PUT https://a.example/b'],
    ['http_delivery', { method: 'GET', url: 'https://a.example/?token=x' }, "GET 'https://a.example/?…'"],
    ['payout.send', { iban: 'x' }, 'payout.send'],
  ])('%s %j', (type, input, words) => {
    expect(summaryOf({ type, input })).toBe(words);
  });

  test('an end is split into how and what was said', () => {
    expect(endOf({ failure: failure() })).toEqual({ how: 'exit 3', said: 'boom' });
    expect(endOf({ failure: failure({ message: 'killed by SIGTERM' }) })).toEqual({
      how: 'killed by SIGTERM',
      said: '',
    });
    expect(endOf({ failure: failure({ message: 'ENOENT: no\nsuch' }) })).toEqual({
      how: '',
      said: String.raw`ENOENT: no\nsuch`,
    });
    expect(endOf({})).toEqual({ how: '', said: '' });
  });

  test('a delay says its rule, its formula and its dice', () => {
    const because = {
      step: 'retry',
      rule: 'fs.locked',
      formula: 'fixed 5m, retry 1',
      policyVersion: 'x',
      text: '',
    } as const;
    expect(reasoning(because)).toBe('rule fs.locked, fixed 5m, retry 1');
    expect(reasoning({ ...because, rule: 'policy', jitter: { low: 0, high: 10_000, roll: 0.5 } })).toBe(
      'fixed 5m, retry 1, random wait from 0ms to 10s',
    );
    expect(reasoning({ ...because, jitter: { low: 5, high: 5, roll: 0.5 } })).toBe('rule fs.locked, fixed 5m, retry 1');
  });

  test('attempts are numbered by what was charged, anew in each round', () => {
    const history = [
      execution(),
      execution({ charge: 'nobody', outcome: 'interruption' }),
      execution({ late: true }),
      retryBy('scheduled'),
      execution(),
      retryBy('dead'),
      execution(),
    ];
    expect([...numbered(history).values()]).toEqual([1, 2, 2, 1]);
  });

  test('tries are counted against the limit of the rule that governs them', async () => {
    const holdfast = await openHoldfast({ store: sqlite(':memory:') });
    const policies = new PolicyCache(holdfast);
    const tries = async (task: Task) => attemptsOf(task, await policies.answerTo(task));
    const task = {
      type: 'file_move',
      queue: 'default',
      source: 'fs:/',
      attempts: 2,
      reason: 'fs.locked',
      attemptsByReason: [{ reason: 'fs.locked', kind: 'transient', count: 2 }],
    } as unknown as Task;
    expect(await tries(task)).toBe('2/10');
    expect(await tries({ ...task, retry: { maxAttempts: 4, rules: { 'fs.locked': { maxAttempts: 4 } } } })).toBe('2/4');
    expect(await tries({ ...task, type: 'payout.send' })).toBe('2');
    expect(policyWords((await policies.answerTo(task)).answer)).toBe(
      'up to 10 attempts by the rule fs.locked, exponential 5m ×2 ≤ 1d',
    );
    // Written by a version that knew more.
    expect(await tries({ ...task, retry: { maxPatience: 3 } as object })).toBe('2/10');
    await holdfast.close();
  });

  test('only what waits for a person for that reason is ambiguous', () => {
    const because = { step: 'ambiguous', rule: 'policy', policyVersion: 'x', text: '' } as const;
    const history = [execution({ because })];
    expect(isAmbiguous({ state: 'needs_manual' }, history)).toBe(true);
    expect(isAmbiguous({ state: 'dead' }, history)).toBe(false);
    expect(isAmbiguous({ state: 'needs_manual' }, [...history, execution()])).toBe(false);
    expect(isAmbiguous({ state: 'needs_manual' }, [...history, execution({ late: true })])).toBe(true);
  });
});
