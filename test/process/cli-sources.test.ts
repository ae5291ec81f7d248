import { describe, expect } from 'vitest';
import { serve } from '../handlers/loopback.ts';
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
      'SOURCE STATE READY RUNNING BUDGET NEXT WHY',
      'cmd:true 2 0',
      'cmd:echo 1 0',
    ]);
    const held = await project.run('sources', 'hold', 'cmd:echo', '--note', 'too loud');
    expect(held).toMatchObject({ exit: 0, stdout: '⏸ cmd:echo is held, 1 ready task waits\n' });
    expect(held.stderr).toBe('Release it: holdfast sources release cmd:echo\n');
    expect(rows((await project.run('sources')).stdout)).toEqual([
      'SOURCE STATE READY RUNNING BUDGET NEXT WHY',
      '⏸ cmd:echo held 1 0 until it is released by WHO WHEN: too loud',
      'cmd:true 2 0',
    ]);

    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect((await project.run('list', '--ids', 'state:ready')).stdout).toBe('3\n');
    expect(plain((await project.run('status')).stdout)).toContain(
      '  ⏸ 1 ready task waits for the source cmd:echo, held WHEN by WHO: too loud\n      holdfast sources release cmd:echo\n',
    );
    expect(plain((await project.run('sources', 'hold', 'cmd:echo')).stdout)).toBe(
      '⏸ cmd:echo was held already: by WHO WHEN: too loud, 1 ready task waits\n',
    );
    const released = await project.run('sources', 'release', 'cmd:echo');
    expect(released).toMatchObject({ exit: 0, stdout: '○ cmd:echo is released: 1 ready task goes on\n' });
    expect(released.stderr).toContain('No worker is running');
    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect(await project.run('sources')).toMatchObject({
      exit: 0,
      stdout: '',
      stderr: 'Every source is in its normal state, and none has ready or running tasks.\n',
    });
    expect(rows((await project.run('sources', 'show', 'cmd:echo')).stdout)).toEqual([
      'source cmd:echo',
      'state normal',
      'tasks 0 ready, 0 running',
      expect.stringMatching(/^actions [\d:]+ released by WHO$/),
      expect.stringMatching(/^[\d:]+ held by WHO$/),
      expect.stringMatching(/^[\d:]+ held by WHO: too loud$/),
    ]);
    const { document } = await project.json<{ spans: object[]; changes: { note: string | null }[] }>(
      'sources',
      'show',
      'cmd:echo',
    );
    expect(document.spans).toEqual([{ from: expect.any(String), to: expect.any(String), condition: 'held' }]);
    expect(document.changes.map(({ note }) => note)).toEqual([null, null, 'too loud']);
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
    const source = {
      name: 'cmd:echo',
      state: 'held',
      since: held.at,
      cause: expect.stringContaining('why'),
      reason: null,
      error: null,
      ready: 1,
      running: 0,
      held,
      held_until: null,
      opens_in_ms: null,
      failed_probes: null,
      released_per_second: null,
      drain_at_least_ms: null,
      tokens: 20,
      limits: null,
    };
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
      since: expect.any(String),
      timelines: [{ source: 'cmd:echo', spans: [{ from: expect.any(String), to: null, condition: 'held' }] }],
    });
    expect((await project.json('sources', 'release', 'cmd:echo')).document).toEqual({
      schema: 'holdfast.sources.release/v1',
      exit: 0,
      changed: true,
      source: { ...source, state: 'normal', since: null, cause: null, held: null },
    });
    const { exit, document } = await project.json('sources', 'hold', 'nobody');
    expect([exit, document]).toMatchObject([3, { code: 'not_found', exit: 3, title: 'Name not found' }]);
  });
});

describe('holdfast sources, of what fails', () => {
  test('shows an outage, tests the source when it is asked to, and charges nobody', async ({ project }) => {
    let status = 503;
    const server = await serve((_, response) => void response.writeHead(status).end());
    const source = `http:127.0.0.1:${server.port}`;
    const record = (hook: string) =>
      project.run(
        ...['http', 'POST', `${server.url}/${hook}`, '--idempotency-header', '--detach', '--allow-private'],
        ...['--backoff', 'fixed:1h'],
      );
    await record('a');
    await project.run('worker', '--drain');
    expect((await project.json('sources')).document).toMatchObject({ items: [{ name: source, state: 'watched' }] });
    for (const hook of ['b', 'c']) await record(hook);
    await project.run('worker', '--drain', '--concurrency', '1');

    // On a slow machine the time for the first probe may have come.
    const down = { name: source, state: expect.stringMatching(/^(down|probing)$/), reason: 'http.5xx', ready: 1 };
    expect((await project.json('sources')).document).toMatchObject({ items: [down] });
    expect((await project.run('sources')).stdout).toMatch(/(down|probing) +1 +0 .* down for .*: http.5xx \(503/);
    expect((await project.json('explain', '3')).document).toMatchObject({
      held_by: ['breaker', 'no_worker'],
      headline: expect.stringContaining(`${source} is down for `),
      actions: [{ command: `holdfast sources probe ${source}` }, {}, {}, {}],
    });
    expect((await project.run('show', '1')).stdout).toMatch(/→ 1h, counted and given back/);
    const { exit, stdout } = await project.run('status', '--check');
    expect([exit, stdout]).toEqual([8, expect.stringMatching(/^the source http:.* is down for .*: http.5xx/m)]);

    status = 204;
    await project.run('sources', 'probe', source);
    await project.run('retry', '1', '2', '--yes');
    await project.run('worker', '--max-tasks', '3');
    const { document } = await project.json('list', 'state:succeeded');
    expect(document).toMatchObject({ items: [{ attempts: 0 }, { attempts: 0 }, { attempts: 0 }] });
    expect((await project.run('sources', 'probe', source)).stdout).toContain('is not tested');
  });

  test('says of a task that its source asked to wait, and tests it when it is asked to', async ({ project }) => {
    const server = await serve((_, response) => void response.writeHead(429, { 'retry-after': '3600' }).end());
    const source = `http:127.0.0.1:${server.port}`;
    for (const hook of ['a', 'b']) {
      await project.run('http', 'POST', `${server.url}/${hook}`, '--idempotency-header', '--detach', '--allow-private');
    }
    await project.run('worker', '--drain', '--concurrency', '1');
    expect((await project.json('sources')).document).toMatchObject({
      items: [{ name: source, state: 'asked_to_wait', ready: 1 }],
    });
    expect((await project.run('sources')).stdout).toMatch(/opens in (1h|59m\d+s) +asked to wait: http.429/);
    expect((await project.run('list', '--held')).stdout).toMatch(/^○ +2 .* held: rate limit\n$/m);
    expect((await project.json('list', '--held')).document).toMatchObject({
      items: [{ id: 2, held_by: 'rate_limit', held_for_ms: expect.any(Number) }],
    });
    expect((await project.run('show', '2')).stdout).toMatch(
      /^held {3}http:.* asked to wait \(http.429\): none of its tasks starts for (1h|59m\d+s)\nnext {3}It goes on when /m,
    );
    expect((await project.run('status', '--check')).stdout).not.toContain('asked to wait');
    expect((await project.run('sources', 'probe', source)).stdout).toBe(`↻ ${source} is tested with its next task\n`);
    expect((await project.run('sources', 'probe', source)).stdout).toBe(`↻ ${source} is not tested: it is probing\n`);
  });

  test('shows a source that needs a person as one item, and tests it after the release', async ({ project }) => {
    const server = await serve((_, response) => void response.writeHead(429, { 'retry-after': '1000000' }).end());
    const source = `http:127.0.0.1:${server.port}`;
    for (const hook of ['a', 'b']) {
      await project.run('http', 'POST', `${server.url}/${hook}`, '--idempotency-header', '--detach', '--allow-private');
    }
    await project.run('worker', '--drain', '--concurrency', '1');
    expect((await project.json('sources')).document).toMatchObject({
      items: [{ name: source, state: 'needs_person', reason: 'http.429', opens_in_ms: null }],
    });
    expect((await project.json('status')).document).toMatchObject({
      attention: expect.arrayContaining([
        expect.objectContaining({ kind: 'source_needs_person', command: `holdfast sources release ${source}` }),
      ]),
    });
    expect((await project.run('sources', 'release', source)).stdout).toBe(
      `↻ ${source} is released: it is tested first, with one task at a time\n`,
    );
  });

  test('limits a source and a queue, and says who did it', async ({ project }) => {
    for (const program of ['true', 'true']) await project.run('run', '-b', '--', program);
    const limited = await project.run('sources', 'limit', 'cmd:true', '--pace', '1/d', '--note', 'slowly');
    expect(limited).toMatchObject({ exit: 0, stdout: '○ cmd:true starts at most 1/d\n' });
    await project.run('worker', '--drain', '--max-tasks', '1');
    expect(rows((await project.run('sources')).stdout)[1]).toBe(
      'cmd:true limited 1 0 at most 1/d, set by WHO WHEN: slowly',
    );
    const left = (await project.run('list', '--held', '--ids')).stdout.trim();
    expect((await project.run('explain', left)).stdout).toContain('cmd:true starts at most 1/d; the next start is in ');
    expect((await project.run('sources', 'limit', 'cmd:true', '--none')).stdout).toBe('○ cmd:true has no limits\n');

    expect((await project.run('queues', 'limit', 'default', '--concurrency', '4')).stdout).toBe(
      '✓ default starts at most 4 at a time\n',
    );
    expect((await project.json('queues')).document).toMatchObject({
      items: [{ limits: { per_second: null, concurrency: 4 } }],
    });
    expect(await project.run('sources', 'limit', 'cmd:true', '--pace', 'often')).toMatchObject({ exit: 2 });
  });

  test('holds a source for a time', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    const { stdout } = await project.run('sources', 'hold', 'cmd:true', '--for', '2h');
    expect(stdout).toMatch(/^⏸ cmd:true is held, goes on in (2h|1h59m), 1 ready task waits\n$/);
    expect((await project.run('explain', '1')).stdout).toMatch(/cmd:true is held \(.*\), and goes on in (2h|1h59m)/);
    const waiting = await project.run('run', '--timeout', '1s', '--', 'true');
    expect([waiting.exit, waiting.stderr]).toEqual([
      75,
      expect.stringContaining('  ⏸ held: an operator holds its source cmd:true (why: holdfast explain 2)'),
    ]);
    const both = await project.run('sources', 'hold', 'cmd:true', '--for', '2h', '--until', '+1h');
    expect([both.exit, both.stderr]).toEqual([2, expect.stringContaining('contradict')]);
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
    expect(rows((await project.run('queues')).stdout).map((line) => line.replace(/ \d+m?s /, ' AGE '))).toEqual([
      'QUEUE ORDER READY FOR RUNNING FOR SCHEDULED AT MOST PAUSED',
      'default fifo 0 0 0',
      '⏸ mail fifo 1 AGE 0 1 WHEN by WHO: moving house',
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
