import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { test } from '../process/cli-process.ts';

test('the worked example of importing an old queue does what the page says', async ({ project }) => {
  const page = await readFile('docs/guides/importing-an-old-queue.md', 'utf8');
  const example = (language: string) => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(page)?.[1] as string;
  project.write('pending_moves.json', example('json'));
  project.write('pending-moves.yaml', example('yaml'));
  expect(await project.run('import', 'pending_moves.json', '--map', 'pending-moves.yaml', '--dry-run')).toMatchObject({
    exit: 0,
    stdout: '4 tasks can be imported; nothing was recorded\n',
  });

  expect(await project.run('import', 'pending_moves.json', '--map', 'pending-moves.yaml')).toMatchObject({
    exit: 0,
    stdout: '✓ 4 tasks imported: 1 scheduled, 1 needs_manual, 1 dead, 1 succeeded\n',
  });
  const shown = (await project.run('show', 'mv-0017')).stdout;
  expect(shown).toContain('↻ retrying, attempt 4 of ');
  expect(shown).toContain('3 failures counted (fs.locked 3), 3 executions');
  expect(shown).toContain('last: fs.locked: the file is open in another program');
  expect((await project.run('resolve', 'mv-0018', '--as', 'retry')).exit).toBe(0);
  expect((await project.json<{ task: object }>('show', 'mv-0019')).document.task).toMatchObject({
    state: 'dead',
    ended_at: '2026-01-02T08:00:00.000Z',
    attempts_by_reason: [{ reason: 'fs.locked', kind: 'transient', count: 10 }],
  });
});
