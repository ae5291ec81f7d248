import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, openSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline';
import { describe, expect } from 'vitest';
import { command, endLostCommand } from '../../src/handlers/command.ts';
import { hasEnded, processState } from '../../src/handlers/process-group.ts';
import { type Project, test } from './cli-process.ts';

/** The lines that commands write into a pipe, one after the other. */
function heardFrom(project: Project): { readonly pipe: string; next(): Promise<string> } {
  const pipe = project.path('told');
  execFileSync('mkfifo', [pipe]);
  // Opened for both, so that it does not end with the first writer.
  const lines = createInterface({ input: createReadStream('', { fd: openSync(pipe, 'r+') }) });
  const heard: string[] = [];
  let wake = () => {};
  lines.on('line', (line) => {
    heard.push(line);
    wake();
  });
  return {
    pipe,
    async next() {
      while (heard.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return heard.shift() as string;
    },
  };
}

/** Says who runs, and then lives for long. */
function script(pipe: string, before = ''): string {
  return `${before} echo "started $$" > ${pipe}; while :; do sleep 0.05; done`;
}

const pidIn = (line: string) => Number(/^started (\d+)$/.exec(line)?.[1] ?? Number.NaN);

/** Where nobody reaps orphans, as in a container without an init, they keep their numbers when they have ended. */
function lives(pid: number): boolean {
  const found = processState(pid);
  return found !== undefined && !hasEnded(found);
}

const WORKER = ['worker', '--lease', '2s', '--poll', '200ms'] as const;

describe('a command that outlives its killed worker', () => {
  for (const [what, trap] of [
    ['', ''],
    [' although it ignores SIGTERM', 'trap "" TERM;'],
  ] as const) {
    test(`is ended before the next execution starts a second one${what}`, async ({ project }) => {
      const heard = heardFrom(project);
      const running = script(heard.pipe, trap);
      await project.run('run', '-b', '--kill-after', '500ms', '--', 'sh', '-c', running);
      const first = project.start(WORKER);
      const old = pidIn(await heard.next());
      first.kill('SIGKILL');
      await first.ended;
      expect(lives(old)).toBe(true);

      const second = project.start(WORKER);
      const young = pidIn(await heard.next());
      expect([young === old, lives(old)]).toEqual([false, false]);
      second.kill('SIGKILL');
      process.kill(-young, 'SIGKILL');
    });
  }

  test('is ended when its task was cancelled, although no execution follows', async ({ project }) => {
    const heard = heardFrom(project);
    await project.run('run', '-b', '--', 'sh', '-c', script(heard.pipe));
    const first = project.start(WORKER);
    const old = pidIn(await heard.next());
    first.kill('SIGKILL');
    await first.ended;
    await project.run('cancel', '1');

    await project.run('worker', '--lease', '2s', '--drain');
    const { document } = await project.json<{ task: { state: string } }>('show', '1');
    expect([document.task.state, lives(old)]).toEqual(['cancelled', false]);
  });

  test('is ended too where it was started by `holdfast run` in the foreground', async ({ project }) => {
    const heard = heardFrom(project);
    const first = project.start(['run', '--', 'sh', '-c', script(heard.pipe)]);
    const old = pidIn(await heard.next());
    first.kill('SIGKILL');
    await first.ended;

    const second = project.start(['worker', '--lease', '2s', '--poll', '200ms']);
    const young = pidIn(await heard.next());
    expect([young === old, lives(old)]).toEqual([false, false]);
    second.kill('SIGKILL');
    process.kill(-young, 'SIGKILL');
  });
});

/** Of an execution of the handler itself, with what an earlier one saved. */
function execution(checkpoint: unknown, warnings: string[] = [], number = 2) {
  const log = { info() {}, warn: (_: object, message: string) => void warnings.push(message) };
  const run = command({ environment: process.env });
  const task = {
    id: 41,
    attempt: 1,
    execution: number,
    submittedAt: new Date(1_700_000_000_000),
    signal: new AbortController().signal,
    log,
    checkpoint: checkpoint as never,
    heartbeat() {},
  };
  return run({ argv: ['true'], cwd: '/', killAfterMs: 500 }, task);
}

async function aStranger(env: NodeJS.ProcessEnv = {}) {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore', env: { ...process.env, ...env } });
  await once(child, 'spawn');
  const over = once(child, 'exit');
  return {
    group: child.pid as number,
    end: async () => {
      child.kill('SIGKILL');
      await over;
    },
  };
}

describe('what an earlier execution saved of its command', () => {
  const saved = (group: number, more: object = {}) => ({
    command: { execution: 1, group, started: '1', host: hostname(), boot: null, pidSpace: null, ...more },
  });

  test('ends nobody who has the same number since', async () => {
    const stranger = await aStranger();
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const pidSpace = readlinkSync('/proc/self/ns/pid');
    await execution(saved(stranger.group, { boot, pidSpace }));
    await execution(saved(stranger.group, { boot: 'another', pidSpace }));
    expect(lives(stranger.group)).toBe(true);
    await stranger.end();
  });

  test('of another host or pid namespace is left alone, and the log says so', async () => {
    const stranger = await aStranger();
    const warnings: string[] = [];
    await execution(saved(stranger.group, { host: 'elsewhere' }), warnings);
    await execution(saved(stranger.group, { pidSpace: 'pid:[1]' }), warnings);
    expect(warnings).toEqual([
      'Whether the command of execution 1 still runs on elsewhere is not visible from here',
      'Whether the command of execution 1 still runs in another pid namespace is not visible from here',
    ]);
    expect(lives(stranger.group)).toBe(true);
    await stranger.end();
  });

  test('is judged although an execution after it started nothing', async () => {
    const left = await aStranger();
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const pidSpace = readlinkSync('/proc/self/ns/pid');
    const started = processState(left.group)?.started;
    await execution(saved(left.group, { boot, pidSpace, started }), [], 3);
    expect(lives(left.group)).toBe(false);
  });

  test('is judged where the task was cancelled after an execution that started nothing', async () => {
    const left = await aStranger();
    const later = await aStranger({ HOLDFAST_RUN: '41-1700000000000-2' });
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const pidSpace = readlinkSync('/proc/self/ns/pid');
    const checkpoint = saved(left.group, { boot, pidSpace, started: processState(left.group)?.started }) as never;
    const lost = { id: 41, execution: 3, submittedAt: new Date(1_700_000_000_000), checkpoint };
    await endLostCommand({ argv: ['true'], cwd: '/', killAfterMs: 500 }, lost);
    expect([lives(left.group), lives(later.group)]).toEqual([false, false]);
  });

  test('proves nothing without a start: the environment tells, or nothing is ended and the log says so', async () => {
    const left = await aStranger({ HOLDFAST_RUN: '41-1700000000000-1' });
    const stranger = await aStranger();
    const warnings: string[] = [];
    const pidSpace = readlinkSync('/proc/self/ns/pid');
    await execution(saved(left.group, { pidSpace, started: null }), warnings);
    await execution(saved(stranger.group, { pidSpace, started: null }), warnings);
    expect([lives(left.group), lives(stranger.group)]).toEqual([false, true]);
    expect(warnings.map((each) => each.replace(/\d+/, 'N'))).toEqual([
      'Whether process group N is the command of execution 1 is unknown, because its start time is unknown',
    ]);
    await stranger.end();
  });

  test('is not needed: where the worker was killed before it was durable, the environment tells', async () => {
    const left = await aStranger({ HOLDFAST_RUN: '41-1700000000000-1' });
    const other = await aStranger({ HOLDFAST_RUN: '41-1700000000000-11' });
    await execution(undefined, [], 4);
    expect([lives(left.group), lives(other.group)]).toEqual([false, true]);
    await other.end();
  });
});
