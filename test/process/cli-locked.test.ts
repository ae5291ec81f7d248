import { expect, onTestFinished } from 'vitest';
import Database from '../database.ts';
import { test } from './cli-process.ts';

test('commands that only read do not wait for a process that writes', async ({ project }) => {
  await project.run('run', '--attempts', '1', '--', 'false');
  const writer = new Database(project.store);
  onTestFinished(() => {
    writer.close();
  });
  writer.exec('BEGIN IMMEDIATE');
  const reads = ['status', 'list', 'failures', 'inbox', 'stats', 'show 1', 'explain 1', 'sources', 'queues', 'workers'];
  for (const command of reads) {
    const { exit } = await project.run(...command.split(' '));
    expect([command, exit]).toEqual([command, 0]);
  }
  expect((await project.run('failures')).stdout).toContain('process.exit');
});
