import { existsSync, readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { ON_TERMINAL, type Project, test } from './cli-process.ts';

/** A move of `a` to `b`, where something stands already. */
async function collision(project: Project): Promise<string> {
  project.write('a', 'new');
  const to = project.write('b', 'old');
  expect((await project.run('mv', 'a', 'b')).exit).toBe(4);
  return to;
}

const read = (project: Project, name: string) => readFileSync(project.path(name), 'utf8');

async function noteOf(project: Project): Promise<unknown> {
  const { document } = await project.json<{ history: { kind: string; note: string }[] }>('show', '1');
  return document.history.find(({ kind }) => kind === 'action')?.note;
}

describe.concurrent('holdfast resolve of a move whose destination exists', () => {
  test('keeps both', async ({ project }) => {
    const to = await collision(project);
    const resolved = await project.run('resolve', '1', '--as', 'keep-both', '--note', 'both are wanted');
    expect(resolved).toMatchObject({ exit: 0, stdout: expect.stringContaining('#1 due now, in a new round') });
    expect(await noteOf(project)).toBe(`keep both: ${to} is now ${to}.before-1. both are wanted`);
    expect((await project.run('resume', '1')).exit).toBe(0);
    expect([read(project, 'b'), read(project, 'b.before-1'), existsSync(project.path('a'))]).toEqual([
      'new',
      'old',
      false,
    ]);
  });

  test('overwrites', async ({ project }) => {
    const to = await collision(project);
    expect(await project.run('resolve', '1', '--as', 'overwrite')).toMatchObject({ exit: 0 });
    expect(await noteOf(project)).toBe(`overwrite: removed ${to}`);
    expect((await project.run('resume', '1')).exit).toBe(0);
    expect(read(project, 'b')).toBe('new');
  });

  test('skips', async ({ project }) => {
    await collision(project);
    expect(await project.run('resolve', '1', '--as', 'skip')).toMatchObject({ exit: 0 });
    expect(await noteOf(project)).toBe('skip: the source stays where it is');
    expect([read(project, 'a'), read(project, 'b')]).toEqual(['new', 'old']);
    expect((await project.json('show', '1')).document).toMatchObject({ task: { state: 'dead' } });
  });

  test('replaces nothing, and changes the task only if the files could be changed', async ({ project }) => {
    await collision(project);
    project.write('b.before-1', 'older');
    const taken = await project.run('resolve', '1', '--as', 'keep-both');
    expect([taken.exit, taken.stderr]).toEqual([5, expect.stringContaining('b.before-1')]);
    expect([read(project, 'b'), read(project, 'b.before-1')]).toEqual(['old', 'older']);
    expect((await project.json('show', '1')).document).toMatchObject({ task: { state: 'needs_manual' } });
    await project.run('run', '-b', '--', 'true');
    expect((await project.run('resolve', '1', '--as', 'never')).stderr).toContain('keep-both, overwrite, skip');
  });

  test('keeps both of all that match: what cannot be done for one stays as it is', async ({ project }) => {
    for (const name of ['a', 'b', 'c']) {
      project.write(name, 'new');
      project.write(`to-${name}`, 'old');
      expect((await project.run('mv', name, `to-${name}`)).exit).toBe(4);
    }
    project.write('to-b.before-2', 'older');
    expect((await project.run('resolve', 'reason:fs.*', '--as', 'keep-both')).stderr).toContain('add --yes');
    const all = await project.run('resolve', 'reason:fs.*', '--as', 'keep-both', '--yes');
    expect([all.exit, all.stdout]).toEqual([0, '2 tasks resolved\n']);
    expect(all.stderr).toMatch(/#2: what is at .*to-b stays as it is: EEXIST: /);
    expect(all.stderr).toContain('1 skipped: could not be done, as said above');
    expect(await noteOf(project)).toMatch(/^keep both: .*to-a is now .*to-a\.before-1$/);
    expect((await project.run('resume')).exit).toBe(0);
    expect(['to-a', 'to-a.before-1', 'to-b', 'to-c'].map((name) => read(project, name))).toEqual([
      'new',
      'old',
      'old',
      'new',
    ]);
  });

  test('asks again for a result that is not JSON', async ({ project }) => {
    await collision(project);
    const asking = project.start(['resolve', '1'], { under: ON_TERMINAL });
    await asking.says('Which (1–4)');
    asking.type('4\n');
    await asking.says('Result (JSON');
    asking.type('by hand\n');
    await asking.says('That is not JSON. Text goes in quotes');
    asking.type('"by hand"\n');
    await asking.says('Note');
    asking.type('\n');
    expect((await asking.ended).exit).toBe(0);
    expect((await project.json('show', '1')).document).toMatchObject({
      task: { state: 'succeeded', result: 'by hand' },
    });
  });

  test('asks a person which of its choices is meant', async ({ project }) => {
    const to = await collision(project);
    const asking = project.start(['resolve', '1'], { under: ON_TERMINAL });
    await asking.says('Which (1–4)');
    asking.type('1\n');
    await asking.says('Note');
    asking.type('by hand\n');
    const { exit, stdout } = await asking.ended;
    expect([exit, stdout]).toEqual([0, expect.stringContaining('Something stands at the destination already.')]);
    expect(stdout).toMatch(/\(1\) keep both +what is there becomes/);
    expect(await noteOf(project)).toBe(`keep both: ${to} is now ${to}.before-1. by hand`);
  });
});
