import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { describe, expect } from 'vitest';
import { type Project, test } from './cli-process.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Check {
  readonly check: string;
  readonly ok: boolean;
  readonly found: string;
  readonly action: string | null;
}

const STORE = '.holdfast/holdfast.db';

function isInstalled(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args).status === 0;
}

function change(project: Project, sql: string): void {
  const db = new Database(project.path(STORE));
  db.exec(sql);
  db.close();
}

describe('holdfast doctor', () => {
  test('looks at the store and the machine, and says what to do for each thing that is not sound', async ({
    project,
  }) => {
    await project.run('run', '--', 'true');
    const notSound = async (...flags: string[]) => {
      const { exit, document } = await project.json<{ items: Check[] }>('doctor', ...flags);
      // The machine of the test may be low on disk or file handles, or keep its files in memory.
      const items = document.items.filter(({ check }) => !['disk', 'file_system', 'file_handles'].includes(check));
      expect(exit).toBe(document.items.every(({ ok }) => ok) ? 0 : 8);
      for (const { ok, action } of items) expect(action === null).toBe(ok);
      return items.filter(({ ok }) => !ok).map(({ check }) => check);
    };
    expect(await notSound('--deep')).toEqual([]);
    expect((await project.run('doctor')).stdout).toContain('durability: each commit waits for the disk');

    await project.run('run', '--detach', '--', 'true');
    change(project, 'DELETE FROM hf_ready; DELETE FROM hf_active');
    expect(await notSound('--deep')).toEqual(expect.arrayContaining(['invariants']));
  });
});

test('status, queues and top show since when the oldest task of each queue is ready or runs', async ({ project }) => {
  await project.run('run', '--detach', '--queue', 'mail', '--', 'true');
  change(
    project,
    `UPDATE hf_ready SET order_key = order_key - 3600000; UPDATE hf_active SET order_key = order_key - 3600000;
     UPDATE hf_tasks SET submitted_at = submitted_at - 3600000`,
  );
  expect((await project.run('status')).stdout).toContain('Oldest   ready for 1h (queue mail)');
  expect((await project.run('top', '--once')).stdout).toContain('ready for 1h');
  expect((await project.run('queues')).stdout).toMatch(/mail +fifo +1 +1h +0/);
  expect((await project.run('top')).stderr).toContain('top needs a terminal');
});

test('service writes a service that runs a worker on this store', async ({ project }) => {
  await project.run('run', '--', 'true');
  const { stdout } = await project.run('service', 'print', '--manager', 'systemd', '--', '--concurrency', '8');
  expect(stdout).toMatch(
    /^ExecStart="\/.*node" "\/.*\/dist\/cli\/main\.js" "--store" "\/.*holdfast\.db" "worker" "--concurrency" "8"$/m,
  );
  expect((await project.run('service', 'print', '--manager', 'launchd')).stdout).toContain('<string>worker</string>');
  const { document } = await project.json<{ file: string }>('service', 'install', '--manager', 'systemd');
  expect(readFileSync(document.file, 'utf8')).toContain('ExecStart=');
  expect((await project.run('service', 'install', '--manager', 'systemd')).exit).toBe(5);
});

test.skipIf(!isInstalled('systemd-analyze', '--version'))('systemd accepts its unit', async ({ project }) => {
  const { stdout } = await project.run('service', 'print', '--manager', 'systemd', '--', '--concurrency', '8');
  const unit = project.write('holdfast-test.service', stdout);
  expect(spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
});

test.skipIf(!isInstalled('python3', '--version'))('the file for launchd is a property list', async ({ project }) => {
  const { stdout } = await project.run('service', 'print', '--manager', 'launchd', '--', '--queue', 'a & <b>');
  const read = 'import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))';
  const { stdout: json } = spawnSync('python3', ['-c', read], { input: stdout, encoding: 'utf8' });
  expect(JSON.parse(json).ProgramArguments.slice(-3)).toEqual(['worker', '--queue', 'a & <b>']);
});

test('completion knows commands, flags, and what is in the store', async ({ project }) => {
  await project.run('run', '--detach', '--queue', 'mail', '--', 'true');
  const { stdout: script } = await project.run('completion', 'bash');
  const asks = [
    'holdfast st',
    'holdfast list state:de',
    'holdfast list --lim',
    'holdfast show ',
    'holdfast queues pause m',
  ];
  const program = `holdfast() { ${process.execPath} ${MAIN} "$@"; }\n${script}
for COMP_LINE in ${asks.map((line) => `'${line}'`).join(' ')}; do COMP_POINT=\${#COMP_LINE}; _holdfast; echo "\${COMPREPLY[*]}"; done`;
  const { stdout } = await promisify(execFile)('bash', ['-c', program], { cwd: project.folder });
  expect(stdout.trimEnd().split('\n')).toEqual(['status stats', 'dead', '--limit', '1', 'mail']);
});

test.skipIf(!isInstalled('zsh', '--version'))('zsh loads its completion, and gets whole words', async ({ project }) => {
  await project.run('run', '--detach', '--queue', 'mail', '--', 'true');
  project.write('completion.zsh', (await project.run('completion', 'zsh')).stdout);
  const program = `holdfast() { ${process.execPath} ${MAIN} "$@"; }
compdef() { print loaded; }
compadd() { print -r -- "\${@[6,-1]}"; }
_files() { print files; }
source ./completion.zsh
for LBUFFER in 'holdfast st' 'holdfast list state:de' 'holdfast events -' 'holdfast queues pause m' 'holdfast mv x'; do _holdfast; done`;
  const { stdout } = await promisify(execFile)('zsh', ['-f', '-c', program], { cwd: project.folder });
  const [loaded, commands, state, flags, queue, files] = stdout.trimEnd().split('\n');
  expect([loaded, commands, state, queue, files]).toEqual(['loaded', 'status stats', 'state:dead', 'mail', 'files']);
  expect(flags?.split(' ')).toContain('--follow');
});

test.skipIf(!isInstalled('fish', '--version'))(
  'fish loads its completion, and gets whole words',
  async ({ project }) => {
    await project.run('run', '--detach', '--queue', 'mail', '--', 'true');
    project.write('completion.fish', (await project.run('completion', 'fish')).stdout);
    const program = `function holdfast; ${process.execPath} ${MAIN} $argv; end
source ./completion.fish
for line in 'holdfast st' 'holdfast list state:de' 'holdfast queues pause m'; complete -C $line; end`;
    const { stdout } = await promisify(execFile)('fish', ['--no-config', '-c', program], { cwd: project.folder });
    expect(stdout.trimEnd().split('\n').sort()).toEqual(['mail', 'state:dead', 'stats', 'status']);
  },
);

test('bug-report has counts and versions, and nothing that a task or a person named', async ({ project }) => {
  await project.run('run', '--attempts', '1', '--key', 'secret-key', '--', 'sh', '-c', 'echo secret-text >&2; exit 1');
  const { stdout } = await project.run('bug-report');
  expect(JSON.parse(stdout)).toMatchObject({ store: { kind: 'sqlite', by_state: { dead: 1 } } });
  for (const word of ['secret', project.folder]) expect(stdout).not.toContain(word);
});
