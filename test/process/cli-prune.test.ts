import { existsSync, readdirSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { type Project, test } from './cli-process.ts';

interface Pruned {
  readonly exit: number;
  readonly dry_run: boolean;
  readonly total: number;
  readonly items: readonly { readonly state: string; readonly reason: string | null; readonly count: number }[];
}

/** Two that succeeded, one that died, one that needs a person, one that waits. */
async function fill(project: Project): Promise<void> {
  project.write('here', 'x');
  project.write('there', 'y');
  await project.run('run', '--key', 'hello', '--', 'echo', 'hello');
  await project.run('run', '--', 'true');
  await project.run('run', '--attempts', '1', '--', 'sh', '-c', 'exit 64');
  await project.run('mv', 'here', 'there');
  await project.run('run', '--detach', '--at', '+9d', '--', 'true');
}

const statesOf = async (project: Project) => {
  const { document } = await project.json<{ items: { id: number; state: string }[] }>('list');
  return Object.fromEntries(document.items.map(({ id, state }) => [id, state]));
};

describe('holdfast db prune', () => {
  test('counts what it would remove, and then removes exactly that', async ({ project }) => {
    await fill(project);
    const before = await statesOf(project);
    const expected = {
      total: 3,
      items: [
        { state: 'succeeded', reason: null, count: 2 },
        { state: 'dead', reason: 'process.usage', count: 1 },
      ],
    };

    const dry = await project.json<Pruned>('db', 'prune', '--older-than', '0s', '--dry-run');
    expect(dry.document).toMatchObject({ schema: 'holdfast.db.prune/v1', exit: 0, dry_run: true, ...expected });
    expect(await statesOf(project)).toEqual(before);

    const real = await project.json<Pruned>('db', 'prune', '--older-than', '0s');
    expect(real).toMatchObject({ exit: 0, document: { dry_run: false, ...expected } });
    expect(await statesOf(project)).toEqual({ 4: 'needs_manual', 5: 'scheduled' });
    expect(await project.run('show', '1')).toMatchObject({ exit: 3 });
    const again = await project.run('db', 'prune', '--older-than', '0s');
    expect(again).toMatchObject({ exit: 0, stdout: 'Removed no tasks.\n' });
  });

  test('frees the key, and removes what the command printed', async ({ project }) => {
    await fill(project);
    const kept = () => (existsSync(`${project.store}.logs`) ? readdirSync(`${project.store}.logs`) : []);
    expect(kept()).toContain('1.jsonl');
    await project.run('db', 'prune', '--older-than', '0s', '--state', 'succeeded');
    expect(kept()).not.toContain('1.jsonl');
    const { stdout } = await project.run('run', '--key', 'hello', '--', 'echo', 'hello again');
    expect(stdout).toContain('hello again');
  });

  test('goes by the retention of the configuration', async ({ project }) => {
    await fill(project);
    project.write('holdfast.yaml', 'retention: { succeeded: 0s, dead: { default: 0s, "process.usage": 90d } }');
    const { document } = await project.json<Pruned>('db', 'prune');
    expect(document).toMatchObject({ total: 2, items: [{ state: 'succeeded', count: 2 }] });
  });

  test('removes nothing by a configuration that is refused', async ({ project }) => {
    await fill(project);
    const before = await statesOf(project);
    project.write('holdfast.yaml', 'retention: { succeeded: 0s, dead: forever }');
    const { exit, stderr } = await project.run('db', 'prune');
    expect(exit).toBe(6);
    expect(stderr).toContain('Write never');
    expect(await statesOf(project)).toEqual(before);
  });

  test('removes what needs a person only where it is named', async ({ project }) => {
    await fill(project);
    expect(await project.run('db', 'prune', '--state', 'needs_manual')).toMatchObject({ exit: 2 });
    const { document } = await project.json<Pruned>('db', 'prune', '--state', 'needs_manual', '--older-than', '0s');
    expect(document.items).toEqual([{ state: 'needs_manual', reason: 'fs.dest_exists', count: 1 }]);
  });

  test('is done by a worker too, once its time is up', async ({ project }) => {
    await fill(project);
    project.write('holdfast.yaml', 'retention: { succeeded: 0s, dead: 0s }');
    const worker = project.start(['worker', '--json']);
    await worker.says('"event":"up"');
    for (let look = 0; look < 60; look++) {
      const { stdout } = await project.run('db', 'prune', '--dry-run', '--json');
      if ((JSON.parse(stdout) as Pruned).total === 0) break;
    }
    worker.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ exit: 0 });
    expect(await statesOf(project)).toEqual({ 4: 'needs_manual', 5: 'scheduled' });
    expect(readdirSync(`${project.store}.logs`).filter((name) => name.startsWith('1.'))).toEqual([]);
  });
});

describe('holdfast db', () => {
  test('tells what the store is', async ({ project }) => {
    await fill(project);
    const { document } = await project.json('db');
    expect(document).toMatchObject({
      schema: 'holdfast.db/v1',
      schema_version: expect.any(Number),
      store: project.store,
      kind: 'sqlite',
      durability: 'full',
    });
  });
});

describe('holdfast status --summary', () => {
  test('counts by state, and says what to do about what needs a person', async ({ project }) => {
    await fill(project);
    const { stdout, exit } = await project.run('status', '--summary');
    expect(exit).toBe(0);
    expect(stdout).toMatch(/^Tasks +5$/m);
    expect(stdout).toMatch(/^ {2}succeeded +2$/m);
    expect(stdout).toMatch(/^Eligible for the next run +0 +the next one/m);
    expect(stdout).toContain('ACTION REQUIRED: 1 task needs a person');
    expect(stdout).toMatch(/1 fs\.dest_exists: Something stands at the destination already\./);
    expect(stdout).toContain('holdfast inbox reason:fs.dest_exists');
  });

  test('says the same as JSON', async ({ project }) => {
    await fill(project);
    const { document } = await project.json<{ action_required: object[] }>('status', '--summary');
    expect(document).toMatchObject({
      schema: 'holdfast.status.summary/v1',
      total: 5,
      by_state: { succeeded: 2, dead: 1, needs_manual: 1, scheduled: 1 },
      eligible: 0,
      action_required: [{ reason: 'fs.dest_exists', count: 1, advice: expect.stringContaining('destination') }],
    });
  });
});
