import { describe, expect } from 'vitest';
import { test } from './cli-process.ts';

const plain = (text: string) => text.replaceAll(/\S+ ago|just now/g, 'WHEN').replaceAll(/by \S+?(?=[:\s])/g, 'by WHO');
const rows = (text: string) =>
  plain(text)
    .trimEnd()
    .split('\n')
    .map((line) => line.replaceAll(/\s+/g, ' ').trim());

describe.concurrent('holdfast sources', () => {
  test('holds a source, says who did it and what waits, and releases it', async ({ project }) => {
    for (const program of ['true', 'true', 'echo']) await project.run('run', '-b', '--', program);
    expect(rows((await project.run('sources')).stdout)).toEqual([
      'SOURCE READY RUNNING HELD',
      'cmd:true 2 0',
      'cmd:echo 1 0',
    ]);
    const held = await project.run('sources', 'hold', 'cmd:echo', '--note', 'too loud');
    expect(held).toMatchObject({ exit: 0, stdout: '⏸ cmd:echo is held, 1 ready task waits\n' });
    expect(held.stderr).toBe('Release it: holdfast sources release cmd:echo\n');
    expect(rows((await project.run('sources')).stdout)).toEqual([
      'SOURCE READY RUNNING HELD',
      '⏸ cmd:echo 1 0 WHEN by WHO: too loud',
      'cmd:true 2 0',
    ]);

    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect((await project.run('list', '--ids', 'state:ready')).stdout).toBe('3\n');
    expect(plain((await project.run('status')).stdout)).toContain(
      '  ⏸ 1 ready task waits for the source cmd:echo, held WHEN by WHO: too loud\n      holdfast sources release cmd:echo\n',
    );
    expect(plain((await project.run('sources', 'hold', 'cmd:echo')).stdout)).toBe(
      '⏸ cmd:echo was held already: WHEN by WHO: too loud, 1 ready task waits\n',
    );
    const released = await project.run('sources', 'release', 'cmd:echo');
    expect(released).toMatchObject({ exit: 0, stdout: '○ cmd:echo is released: 1 ready task goes on\n' });
    expect(released.stderr).toContain('No worker is running');
    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect(await project.run('sources')).toMatchObject({
      exit: 0,
      stdout: '',
      stderr: 'No source is held, and none has ready or running tasks.\n',
    });
    expect((await project.run('sources', 'release', 'cmd:echo')).stdout).toBe('○ cmd:echo was not held\n');
  });

  test('takes a name that it does not know for a slip, unless it is told --yes', async ({ project }) => {
    await project.run('run', '-b', '--', 'echo');
    const slip = await project.run('sources', 'hold', 'cmd:ehco');
    expect(slip).toMatchObject({ exit: 3, stdout: '' });
    expect(slip.stderr).toContain(
      'error: there is no source cmd:ehco: no task of it was ever due\n       did you mean cmd:echo?\n',
    );
    expect((await project.run('sources', 'hold', 'imap:A', '--yes')).stdout).toBe(
      '⏸ imap:A is held, no ready tasks wait\n',
    );
    const wrong = await project.run('sources', 'release', 'imap:B');
    expect([wrong.exit, wrong.stderr]).toEqual([3, expect.stringContaining('did you mean imap:A?')]);
    expect((await project.run('sources', 'release', 'imap:A')).exit).toBe(0);
  });

  test('says all of it in JSON', async ({ project }) => {
    await project.run('run', '-b', '--', 'echo');
    const held = { at: expect.stringMatching(/Z$/), actor: expect.any(String), note: 'why' };
    const source = { name: 'cmd:echo', ready: 1, running: 0, held };
    expect((await project.json('sources', 'hold', 'cmd:echo', '--note', 'why')).document).toEqual({
      schema: 'holdfast.sources.hold/v1',
      exit: 0,
      changed: true,
      source,
    });
    expect((await project.json('sources')).document).toEqual({
      schema: 'holdfast.sources/v1',
      items: [source],
      more: false,
    });
    expect((await project.json('sources', 'release', 'cmd:echo')).document).toEqual({
      schema: 'holdfast.sources.release/v1',
      exit: 0,
      changed: true,
      source: { ...source, held: null },
    });
    const { exit, document } = await project.json('sources', 'hold', 'nobody');
    expect([exit, document]).toMatchObject([3, { code: 'not_found', exit: 3, title: 'Name not found' }]);
  });
});

describe.concurrent('holdfast queues', () => {
  test('pauses a queue, says who did it and what is in it, and lets it go on', async ({ project }) => {
    await project.run('run', '-b', '--queue', 'mail', '--', 'true');
    await project.run('run', '-b', '--queue', 'mail', '--at', '+1h', '--', 'true');
    await project.run('run', '-b', '--', 'true');
    const paused = await project.run('queues', 'pause', 'mail', '--note', 'moving house');
    expect(paused).toMatchObject({ exit: 0, stdout: '⏸ mail is paused, 1 ready task waits\n' });
    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect(rows((await project.run('queues')).stdout)).toEqual([
      'QUEUE ORDER READY RUNNING SCHEDULED PAUSED',
      'default fifo 0 0 0',
      '⏸ mail fifo 1 0 1 WHEN by WHO: moving house',
    ]);
    expect((await project.json('status')).document).toMatchObject({
      attention: [{ kind: 'no_worker' }, { kind: 'queue_paused', count: 1, command: 'holdfast queues resume mail' }],
    });
    expect((await project.json('queues')).document).toMatchObject({
      schema: 'holdfast.queues/v1',
      items: [
        { name: 'default', paused: null },
        { name: 'mail', order: 'fifo', paused: { note: 'moving house' }, scheduled: { value: 1, exact: true } },
      ],
    });
    expect(plain((await project.run('queues', 'pause', 'mail')).stdout)).toContain(
      'mail was paused already: WHEN by WHO: moving house',
    );
    expect((await project.run('queues', 'resume', 'mail')).stdout).toBe('○ mail goes on, with 1 ready task\n');
    expect((await project.run('queues', 'resume', 'mail')).stdout).toBe('○ mail was not paused\n');
    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect((await project.run('list', '--ids', 'state:succeeded')).stdout).toBe('3\n1\n');
  });

  test('sets the order in which the waiting tasks of a queue are claimed', async ({ project }) => {
    for (const priority of ['0', '9', '5']) await project.run('run', '-b', '--priority', priority, '--', 'true');
    expect((await project.run('queues', 'order', 'default', 'priority')).stdout).toBe(
      '✓ default is priority from now on, and was fifo\n',
    );
    await project.run('worker', '--max-tasks', '1');
    expect((await project.run('list', '--ids', 'state:succeeded')).stdout).toBe('2\n');
    expect((await project.json('queues', 'order', 'default', 'priority')).document).toMatchObject({
      schema: 'holdfast.queues.order/v1',
      changed: false,
      queue: { name: 'default', order: 'priority', ready: 2 },
    });
  });

  test('serves its sources in turn once it is told to be fair, and says so', async ({ project }) => {
    for (const program of ['true', 'true', 'true', 'echo']) await project.run('run', '-b', '--', program);
    expect((await project.run('queues', 'order', 'default', 'fifo', '--fair')).stdout).toBe(
      '✓ default is fifo, fair from now on, and was fifo\n',
    );
    await project.run('worker', '--max-tasks', '2');
    expect((await project.run('list', '--ids', 'state:succeeded')).stdout).toBe('4\n1\n');
    expect((await project.json('queues')).document).toMatchObject({ items: [{ name: 'default', fair: true }] });
    expect((await project.run('queues', 'order', 'default', 'fifo', '--exact')).stdout).toBe(
      '✓ default is fifo from now on, and was fifo, fair\n',
    );
    expect(await project.run('queues', 'order', 'default', 'fifo', '--exact', '--fair')).toMatchObject({ exit: 2 });
  });

  test('takes a name that it does not know for a slip, unless it is told --yes', async ({ project }) => {
    await project.run('run', '-b', '--queue', 'mail', '--', 'true');
    for (const args of [
      ['pause', 'mial'],
      ['resume', 'mial'],
      ['order', 'mial', 'lifo'],
    ]) {
      const { exit, stderr } = await project.run('queues', ...args);
      expect([args, exit, stderr]).toEqual([args, 3, expect.stringContaining('did you mean mail?')]);
    }
    expect((await project.run('queues', 'pause', 'bulk', '-y')).exit).toBe(0);
    await project.run('run', '-b', '--queue', 'bulk', '--', 'true');
    await project.run('worker', '--drain');
    expect((await project.run('list', '--ids', 'state:ready')).stdout).toBe('2\n');
  });
});
