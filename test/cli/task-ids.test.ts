import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Cli } from '../../src/cli/cli.ts';
import { findTask } from '../../src/cli/flags/task-ids.ts';
import { defineTask } from '../../src/index.ts';
import { openTestHoldfast, type TestHoldfast } from '../../src/testing/index.ts';

const cli = { command: (text: string) => `holdfast ${text}` } as Cli;

describe('which task is meant', () => {
  let kit: TestHoldfast;
  beforeEach(async () => {
    kit = await openTestHoldfast({ tasks: [defineTask('work', { run() {} })] });
    for (const key of [undefined, undefined, '0002', '2', '#1', '99', 'key:x', 'order-7']) {
      await kit.holdfast.enqueue('work', null, key === undefined ? {} : { key });
    }
  });
  afterEach(() => kit.close());
  const meant = async (text: string) => (await findTask(cli, kit.holdfast, text)).id;

  test.each([
    ['1', 1],
    ['#1', 1],
    ['#2', 2],
    ['key:2', 4],
    ['3', 3],
    ['0002', 3],
    ['key:0002', 3],
    ['key:#1', 5],
    ['99', 6],
    ['key:x', 7],
    ['key:key:x', 7],
    ['order-7', 8],
    ['key:order-7', 8],
  ])('%s means #%i', async (text, id) => {
    expect(await meant(text)).toBe(id);
  });

  test.each(['0001', '#0001', '00', '0', '#0', 'key:1', 'key:', '#99', '1000'])('%s means none', async (text) => {
    await expect(meant(text)).rejects.toMatchObject({ code: 'task_not_found' });
  });

  test('a number that is also the key of another task is refused, and both are named', async () => {
    await expect(meant('2')).rejects.toMatchObject({
      message: '2 is the number of task #2 and the key of task #4, so nothing was done',
      hints: ["the task with this number: '#2'", 'the task with this key: key:2'],
      exit: 2,
    });
  });

  test('a task whose key is its own number is no question', async () => {
    const { id } = await kit.holdfast.enqueue('work', null, { key: '9' });
    expect(id).toBe(9);
    expect(await meant('9')).toBe(9);
  });
});
