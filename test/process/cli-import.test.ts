import { execFileSync } from 'node:child_process';
import { statSync, watch } from 'node:fs';
import { open } from 'node:fs/promises';
import { describe, expect } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { type HoldfastProcess, type Project, test } from './cli-process.ts';

interface Imported {
  readonly schema: string;
  readonly imported: number;
  readonly already_there: number;
  readonly refused: number;
  readonly interrupted: boolean;
  readonly recorded_to_line: number;
  readonly by_state: Readonly<Record<string, number>>;
  readonly problems: readonly object[];
}

const lines = (count: number, more: (n: number) => object = () => ({})) =>
  Array.from(
    { length: count },
    (_, i) => `${JSON.stringify({ type: 'mail', key: `job-${i + 1}`, ...more(i + 1) })}\n`,
  ).join('');

/** What is in the store: how many tasks, under how many keys, and what is broken. */
async function look(project: Project) {
  const holdfast = await openHoldfast({ store: sqlite(project.store) });
  try {
    const keys = new Set<string | undefined>();
    let tasks = 0;
    for (let before: number | undefined; ; ) {
      const page = await holdfast.list({ limit: 1_000, ...(before !== undefined && { before }) });
      for (const { key } of page) keys.add(key);
      tasks += page.length;
      before = page.at(-1)?.id;
      if (page.length < 1_000) break;
    }
    return { tasks, keys: keys.size, broken: await holdfast.store.upkeep.verify() };
  } finally {
    await holdfast.close();
  }
}

/** When so much has been written to the store, or the process has ended. */
function written(project: Project, bytes: number, process: HoldfastProcess): Promise<unknown> {
  const grown = new Promise<void>((resolve) => {
    const watcher = watch(project.path('.holdfast'), look);
    void process.ended.then(() => watcher.close());
    look();
    function look() {
      if ((statSync(`${project.store}-wal`, { throwIfNoEntry: false })?.size ?? 0) < bytes) return;
      watcher.close();
      resolve();
    }
  });
  return Promise.race([grown, process.ended]);
}

describe.concurrent('holdfast import', () => {
  test('records tasks as another queue had them, goes on where they were, and shows what was counted there', async ({
    project,
  }) => {
    const move = { type: 'shell_command', payload: { argv: ['./fail'], cwd: project.folder } };
    const retry = { max_attempts: 4, backoff: { kind: 'immediate' } };
    const old = [
      { ...move, key: 'a', charged: { 'process.exit': 2 }, error: 'exit 3: was here before', retry, note: 'was 17' },
      { ...move, key: 'b', state: 'needs_manual', charged: { 'fs.dest_exists': 1 } },
      { ...move, key: 'c', state: 'dead', charged: { 'fs.locked': 10 }, ended_at: '2026-01-03T10:00:00Z' },
      { ...move, key: 'd', state: 'succeeded', result: { bytes: 12 } },
      { type: 'elsewhere', key: 'e', payload: [1], due_at: '2999-01-01T00:00:00Z' },
    ];
    project.script('fail', 'exit 3');
    project.write('old.jsonl', old.map((task) => `${JSON.stringify(task)}\n`).join('\n'));

    expect(await project.run('import', '--dry-run', 'old.jsonl')).toMatchObject({
      exit: 0,
      stdout: '5 tasks can be imported; nothing was recorded\n',
    });
    const imported = await project.run('import', 'old.jsonl');
    expect(imported).toMatchObject({
      exit: 0,
      stdout: '✓ 5 tasks imported: 1 ready, 1 needs_manual, 1 dead, 1 succeeded, 1 scheduled\n',
    });
    expect(imported.stderr).toContain('No worker is running');
    expect((await project.run('show', '3')).stdout).toContain('10 failures counted (fs.locked 10), 10 executions\n');
    expect((await project.run('show', '2')).stdout).toContain('resolve 2 --as succeeded');

    expect((await project.run('resume', '1')).stderr).toContain('✕ #1 dead: process.exit: attempt 4 of 4 failed.');
    const shown = (await project.run('show', '1')).stdout;
    expect(shown).toMatch(/imported by \S+: was 17 {2}→ ready\n/);
    expect(shown).toContain('2 failures counted (process.exit 2), 2 executions\n');
    expect(shown).toContain('last: process.exit: exit 3: was here before\n');
    expect(shown).toMatch(/\n {2}3 {2}.* process\.exit .*\n {2}4 {2}/);
    expect((await project.json<{ history: object[] }>('show', '1')).document.history[0]).toMatchObject({
      kind: 'action',
      verb: 'imported',
      from: 'elsewhere',
      to: 'ready',
      imported: { executions: 2, charged: [{ reason: 'process.exit', kind: 'unknown', count: 2 }], deferrals: 0 },
    });

    expect(await project.run('import', 'old.jsonl')).toMatchObject({
      exit: 0,
      stdout: '✓ no tasks imported\n  5 were there already, and left as they are\n',
    });
  });

  test('records nothing of a file of which a line is refused, and says which and where', async ({ project }) => {
    project.write('bad.jsonl', `${lines(2)}{"type":"mail","key":"x","prioritty":1}\n{"type":"mail"}\n{"type"\n`);
    const { exit, stdout, stderr } = await project.run('import', 'bad.jsonl');
    expect([exit, stdout]).toEqual([2, '']);
    expect(stderr).toContain('error: 3 lines are refused, so nothing was recorded\n');
    expect(stderr).toContain('bad.jsonl:3:26  there is no member "prioritty": did you mean "priority"?\n');
    expect(stderr).toContain('bad.jsonl:4  key is missing\n');
    expect(stderr).toContain('bad.jsonl:5:8  it is not JSON: a colon was expected here\n');
    expect(stderr).toContain('To have keys made: --keys NAME');
    expect(statSync(project.store, { throwIfNoEntry: false })).toBeUndefined();

    const skipped = await project.run('import', 'bad.jsonl', '--skip-invalid');
    expect([skipped.exit, skipped.stdout]).toEqual([1, '✓ 2 tasks imported: 2 ready\n']);
    const { exit: again, document } = await project.json<Imported>('import', 'bad.jsonl');
    expect([again, document]).toMatchObject([
      2,
      { schema: 'holdfast.import/v1', imported: 0, refused: 3, problems: [{ line: 3, column: 26 }, { line: 4 }, {}] },
    ]);
  });

  test('takes a pipe up to the first line that is refused', async ({ project }) => {
    project.write('in', `${lines(3)}{"type":"mail"}\n${lines(5)}`);
    project.script('piped', `"$@" < in`);
    const under = { under: [project.path('piped')] };
    const stopped = await project.start(['import', '-'], under).ended;
    expect([stopped.exit, stopped.stdout]).toEqual([2, '✓ 3 tasks imported: 3 ready\n']);
    expect(stopped.stderr).toContain(
      'error: 1 line is refused; lines 1 to 3 are recorded\n       stdin:4  key is missing',
    );

    project.write('in', `${lines(4)}{"type":"mail"}\n{"type":"mail"}\n`);
    for (const imported of [3, 0]) {
      const { stdout } = await project.start(['import', '-', '--keys', 'may', '--json'], under).ended;
      expect(JSON.parse(stdout)).toMatchObject({ exit: 0, imported, already_there: 6 - imported });
    }
    expect(await look(project)).toEqual({ tasks: 6, keys: 6, broken: [] });
  });

  /** Before its n-th write to a file of the store. */
  const signalled = (signal: 'KILL' | 'INT', n: number) => ({
    under: [
      'strace',
      '-f',
      '-qq',
      '-o',
      '/dev/null',
      '-e',
      'pwrite64',
      '-e',
      `inject=pwrite64:signal=${signal}:when=${n}`,
    ],
  });
  const mixed = lines(20_000, (n) => (n % 3 === 0 ? { state: 'dead', charged: { 'fs.locked': 2 } } : {}));

  test('that is killed in the middle, and again, and then run to its end has recorded each task once', async ({
    project,
  }) => {
    project.write('many.jsonl', mixed);
    let before = 0;
    for (const write of [1_000, 3_001]) {
      expect((await project.start(['import', 'many.jsonl'], signalled('KILL', write)).ended).exit).toBe(137);
      const { tasks, keys, broken } = await look(project);
      expect([keys, broken]).toEqual([tasks, []]);
      expect(tasks % 1_000).toBe(0);
      expect(tasks).toBeGreaterThan(before);
      expect(tasks).toBeLessThan(20_000);
      before = tasks;
    }
    const { exit, document } = await project.json<Imported>('import', 'many.jsonl');
    expect([exit, document]).toMatchObject([0, { imported: 20_000 - before, already_there: before }]);
    expect(await look(project)).toEqual({ tasks: 20_000, keys: 20_000, broken: [] });
  });

  test('that is interrupted ends after the thousand that it has begun, and says how to go on', async ({ project }) => {
    project.write('many.jsonl', mixed);
    const { exit, stderr } = await project.start(['import', 'many.jsonl'], signalled('INT', 3_000)).ended;
    expect(exit).toBe(75);
    const { tasks, broken } = await look(project);
    expect(broken).toEqual([]);
    expect(tasks % 1_000).toBe(0);
    expect(stderr).toContain(`Interrupted; lines 1 to ${tasks} are recorded. Run it again to go on.\n`);
  });

  test('waits at a pipe that stays open, and hears of an interrupt there', async ({ project }) => {
    execFileSync('mkfifo', [project.path('pipe')]);
    const waiting = project.start(['import', 'pipe', '--json']);
    const pipe = await open(project.path('pipe'), 'w');
    await pipe.write(lines(1_003));
    await written(project, 100_000, waiting);
    waiting.kill('SIGINT');
    const { exit, stdout } = await waiting.ended;
    await pipe.close();
    expect([exit, JSON.parse(stdout)]).toMatchObject([75, { imported: 1_003, interrupted: true }]);
  });

  test('needs no more memory for a large file than for a small one', async ({ project }) => {
    const told = `data:text/javascript,process.on('exit',()=>console.error('maxrss',process.resourceUsage().maxRSS))`;
    const peak = async (file: string) => {
      const env = { NODE_OPTIONS: `--import ${told}` };
      const { exit, stderr } = await project.start(['import', '--dry-run', file], { env }).ended;
      expect(exit).toBe(0);
      return Number(/maxrss (\d+)/.exec(stderr)?.[1]) * 1_024;
    };
    project.write('small.jsonl', lines(100));
    project.write(
      'large.jsonl',
      lines(20_000, (n) => ({ payload: `${n}`.padEnd(10_000, 'x') })),
    );
    const small = await peak('small.jsonl');
    expect(statSync(project.path('large.jsonl')).size).toBeGreaterThan(200_000_000);
    expect((await peak('large.jsonl')) - small).toBeLessThan(120_000_000);
  });
});
