import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { closing, openScene } from './scene.js';

const SAMPLES = fileURLToPath(new URL('../samples', import.meta.url));

/** Runs without the rights of root, which may open every file. */
async function unprivileged(run: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    await run();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

describe('a local folder', () => {
  test('is read whole; then only what has changed counts as read, and what is gone as removed', async () => {
    const { kit, tasks, documents, folder, story } = await openScene();
    for (const name of ['a.txt', 'b.txt', 'c.txt']) writeFileSync(join(folder, name), name);
    mkdirSync(join(folder, '.trash'));
    writeFileSync(join(folder, '.trash', 'd.txt'), 'gone');
    const first = await kit.holdfast.enqueue(tasks.localFiles, { folder });
    await kit.drain();
    expect(await story(first.id)).toMatchObject({ state: 'succeeded', result: { read: 3, unchanged: 0, removed: 0 } });
    appendFileSync(join(folder, 'b.txt'), 'more');
    rmSync(join(folder, 'c.txt'));
    const second = await kit.holdfast.enqueue(tasks.localFiles, { folder });
    await kit.drain();
    expect(await story(second.id)).toMatchObject({ result: { read: 1, unchanged: 1, removed: 1 } });
    expect((await documents.of(`folder:${folder}`)).documents.map(({ id }) => id)).toEqual(['a.txt', 'b.txt']);
  });

  test('with a file that may not be read (EACCES) is dead at once, and is read after a retry by a person', async () => {
    const { kit, tasks, documents, folder, story } = await openScene();
    writeFileSync(join(folder, 'a.txt'), 'secret', { mode: 0o000 });
    mkdirSync(documents.folder, { mode: 0o777 });
    for (const path of [join(folder, '..'), folder, documents.folder]) chmodSync(path, 0o777);
    const { id } = await kit.holdfast.enqueue(tasks.localFiles, { folder });
    await unprivileged(() => kit.drain());
    expect(await story(id)).toMatchObject({ state: 'dead', reason: 'fs.permission', attempts: 1, executions: 1 });
    chmodSync(join(folder, 'a.txt'), 0o644);
    await kit.holdfast.retry(id);
    await kit.drain();
    expect(await story(id)).toMatchObject({ state: 'succeeded', result: { read: 1 } });
  });

  test('is not charged when the worker has no file handles left (EMFILE): the worker waits, then reads it', async () => {
    const { kit, tasks, folder, story } = await openScene();
    writeFileSync(join(folder, 'a.txt'), 'a');
    const { id } = await kit.holdfast.enqueue(tasks.localFiles, { folder });
    const limit = await withoutFileHandles();
    await kit.drain();
    await limit.lifted();
    expect(await story(id)).toMatchObject({ state: 'scheduled', reason: 'fs.too_many_files', attempts: 0 });
    await kit.advance('10m');
    expect(await story(id)).toMatchObject({ state: 'succeeded', attempts: 0 });
  });

  test('with a file that changes while it is read keeps what was known, and is read again after 24 to 36 s', async () => {
    let left = 1;
    const scene = await openScene({
      onFile: (path) => {
        if (left-- > 0) appendFileSync(join(scene.folder, path), ' and more');
      },
    });
    const { kit, tasks, documents, folder, story } = scene;
    writeFileSync(join(folder, 'a.txt'), 'begun');
    const { id } = await kit.holdfast.enqueue(tasks.localFiles, { folder });
    await kit.drain();
    expect(await story(id)).toMatchObject({ state: 'scheduled', reason: 'file.changing', attempts: 1 });
    expect(await documents.of(`folder:${folder}`)).toEqual({ documents: [] });
    await kit.advance('36s');
    expect(await story(id)).toMatchObject({ state: 'succeeded', attempts: 1, executions: 2 });
  });
});

/** Takes all file handles away from this process until `lifted` is called. The helper runs before, for a new one would need handles. */
async function withoutFileHandles() {
  const { pid } = process;
  const limits = spawnSync('prlimit', ['--pid', String(pid), '--nofile', '--output=SOFT,HARD', '--noheadings']);
  const [soft, hard] = String(limits.stdout).trim().split(/\s+/);
  const set = (to: string) => `prlimit --pid ${pid} --nofile=${to}:${hard}`;
  const script = `${set('3')} && echo taken; read -r line; ${set(soft as string)}`;
  const child = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  const lifted = async () => {
    child.stdin.end('\n');
    await ended;
  };
  closing.push(lifted);
  await once(child.stdout, 'data');
  return { lifted };
}

describe('a vault', () => {
  test('is read with the front matter of its notes and the notes that they link to', async () => {
    const { kit, tasks, documents, story } = await openScene();
    const vault = join(SAMPLES, 'vault');
    const { id } = await kit.holdfast.enqueue(tasks.obsidianVault, { vault });
    await kit.drain();
    expect(await story(id)).toMatchObject({ state: 'succeeded', result: { read: 2 } });
    expect((await documents.of(`vault:${vault}`)).documents).toEqual([
      expect.objectContaining({
        id: 'Garden.md',
        title: 'The garden',
        tags: ['outside', 'plants'],
        links: ['Spring plan.md'],
      }),
      expect.objectContaining({ id: 'Spring plan.md', title: 'Spring plan', tags: [], links: ['Garden.md'] }),
    ]);
  });

  test('with front matter that is no YAML is dead at once, naming the note', async () => {
    const { kit, tasks, folder, story } = await openScene();
    writeFileSync(join(folder, 'Broken.md'), '---\ntags: [a\n---\nText\n');
    const { id } = await kit.holdfast.enqueue(tasks.obsidianVault, { vault: folder });
    await kit.drain();
    expect(await story(id)).toMatchObject({ state: 'dead', reason: 'note.front_matter', executions: 1 });
    const [entry] = await kit.holdfast.history(id);
    expect(entry).toMatchObject({
      failure: { message: expect.stringContaining('The front matter of Broken.md is no YAML') },
    });
  });

  test('that is not there (ENOENT) is dead at once', async () => {
    const { kit, tasks, folder, story } = await openScene();
    const { id } = await kit.holdfast.enqueue(tasks.obsidianVault, { vault: join(folder, 'nowhere') });
    await kit.drain();
    expect(await story(id)).toMatchObject({ state: 'dead', reason: 'fs.not_found', executions: 1 });
  });
});
