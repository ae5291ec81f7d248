import { readFileSync, writeFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { ask } from '../postgres/ask.ts';
import { type Cluster, startCluster } from '../postgres/cluster.mjs';
import { ON_TERMINAL, test } from './cli-process.ts';

/** When somebody makes a file. */
async function fileIn(folder: string, name: string): Promise<void> {
  for await (const { filename } of watch(folder)) if (filename === name) return;
}

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({ fsync: false });
});
afterEach(() => cluster.stop());

describe('a server of one’s own', () => {
  test('may be killed and started again: the worker goes on, and loses nothing that it ran', async ({ project }) => {
    const env = { HOLDFAST_STORE: cluster.url() };
    const run = (...args: readonly string[]) => project.start(args, { env }).ended;
    project.script('waits', 'while [ ! -e go ]; do sleep 0.05; done', 'touch finished');
    expect((await run('run', '-b', '--', './waits')).exit).toBe(0);
    const worker = project.start(['worker', '--name', 'w1'], { env });
    await worker.says('"event":"started"');

    await cluster.kill();
    const finished = fileIn(project.folder, 'finished');
    project.write('go', '');
    await finished;
    await cluster.start();

    await worker.says(/"event":"settled".*"task":1,.*"state":"succeeded"/);
    // A sequence leaves out some numbers when its server was killed.
    const next = (await run('run', '-qb', '--', 'true')).stdout.trim();
    await worker.says(new RegExp(`"event":"settled".*"task":${next},.*"state":"succeeded"`));
    const { stdout } = await run('show', '--json', '1');
    expect(JSON.parse(stdout).task).toMatchObject({ state: 'succeeded', executions: 1, attempts: 0 });
    worker.kill('SIGTERM');
    expect((await worker.ended).exit).toBe(0);
  });

  test('may be killed and started again while top and list --watch show it: they say so, and go on', async ({
    project,
  }) => {
    const env = { HOLDFAST_STORE: cluster.url(), COLUMNS: '100' };
    expect((await project.start(['run', '-b', '--', 'true'], { env }).ended).exit).toBe(0);
    const top = project.start(['top'], { env, under: ON_TERMINAL });
    const list = project.start(['list', '--watch'], { env, under: ON_TERMINAL });
    await Promise.all([top.says('[1 Tasks]'), list.says('q: quit')]);

    await cluster.kill();
    const old = /of \d\d:\d\d:\d\d: /;
    await Promise.all([top.says(old), list.says(old)]);
    await cluster.start();
    expect((await project.start(['run', '-b', '--', 'echo', 'later'], { env }).ended).exit).toBe(0);
    await Promise.all([top.says('echo later'), list.says('echo later')]);
    for (const each of [top, list]) each.type('q');
    expect([(await top.ended).exit, (await list.ended).exit]).toEqual([0, 0]);
  });

  test('lets nobody in with a wrong password, which is not told', async ({ project }) => {
    const [{ hba_file: file }] = (await ask(cluster.url(), 'SHOW hba_file')) as [{ hba_file: string }];
    await ask(cluster.url(), "CREATE ROLE eva LOGIN PASSWORD 'right'");
    writeFileSync(file, `host all eva all scram-sha-256\n${readFileSync(file, 'utf8')}`);
    await ask(cluster.url(), 'SELECT pg_reload_conf()');
    const address = new URL(cluster.url());
    address.username = 'eva';
    const env = (password: string) => ({ HOLDFAST_STORE: address.href, PGPASSWORD: password });

    const refused = await project.start(['status', '-vv'], { env: env('hunter2') }).ended;
    expect(refused.exit).toBe(7);
    expect(refused.stderr).toContain('refused the login: password authentication failed for user "eva"');
    expect(refused.stderr).not.toContain('hunter2');
    const admitted = await project.start(['status'], { env: env('right') }).ended;
    expect(admitted.stderr).toContain('there is no store at');
  });
});
