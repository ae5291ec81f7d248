import { describe, expect, test } from 'vitest';
import { defineTask, NeedsManual, PermanentFailure, RedriveConflictError } from '../../src/index.ts';
import type { RedriveFilterOptions, RedriveOptions } from '../../src/queue/redrives.ts';
import { type Kit, useKits } from '../worker/scene.ts';

const open = useKits();

/** A service that tasks call. What it refuses fails as everything does while it is down; what breaks fails in another way. */
class Service {
  down = true;
  refuses = (_: number): boolean => false;
  breaks = (_: number): boolean => false;
  works = async (): Promise<void> => {};
  readonly calls: number[] = [];

  readonly task = defineTask('call', {
    source: 'http:service',
    retry: { maxAttempts: 1 },
    run: async (input: number) => {
      this.calls.push(input);
      await this.works();
      if (this.down) throw new PermanentFailure('It is down.', { reason: 'http.503' });
      if (this.refuses(input)) throw new PermanentFailure('It is down.', { reason: 'http.503' });
      if (this.breaks(input)) throw new PermanentFailure('No such row.', { reason: 'app.row' });
    },
  });
}

/** So many tasks that died while the service was down, which is up again now. */
async function deadTasks(count: number, options: { readonly log?: { lines: object[] } } = {}) {
  const service = new Service();
  const lines = options.log?.lines ?? [];
  const write = (fields: object) => void lines.push(fields);
  const log = { debug() {}, info: write, warn: write, error: write };
  const kit = await open({ tasks: [service.task], worker: { concurrency: 50 }, log });
  await kit.holdfast.enqueueAll(
    service.task,
    Array.from({ length: count }, (_, i) => i),
  );
  await kit.drain();
  expect((await kit.holdfast.counts()).byState.dead).toBe(count);
  service.down = false;
  service.calls.length = 0;
  return { kit, service, lines };
}

const redrive = ({ holdfast }: Kit, more: Partial<RedriveOptions> = {}) =>
  holdfast.redrive({ filter: {}, note: 'the service is up again', ...more });

describe('a redrive', () => {
  test('puts all tasks back at its rate', async () => {
    const { kit, service } = await deadTasks(200);
    const began = kit.clock.now();
    const { id, putBack } = await redrive(kit);
    expect(putBack).toBe(1);
    await kit.advance('1m');

    expect([...service.calls].sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i));
    const end = await kit.holdfast.redrives.get(id);
    expect(end).toMatchObject({
      state: 'done',
      selected: 200,
      putBack: 200,
      succeeded: 200,
      failedAgain: 0,
      skipped: 0,
    });
    // A step after a pause may put back what fits into a quarter of a second.
    expect(end.since - began).toBeGreaterThan(196 * 100);
    expect(end.since - began).toBeLessThan(40_000);
  });

  test('puts back 1, then 5, then 25 tasks, each when it is known how those before went', async () => {
    const { kit, service } = await deadTasks(100);
    service.works = () => kit.clock.sleep('1m');
    await redrive(kit);
    const started: number[] = [];
    for (const time of ['50s', '1m', '1m'] as const) {
      await kit.advance(time);
      started.push(service.calls.length);
    }
    expect(started).toEqual([1, 6, 31]);
  });

  test('stops itself after the first task where the failure is still there, and leaves the rest', async () => {
    const { kit, service, lines } = await deadTasks(40, { log: { lines: [] } });
    service.down = true;
    const { id } = await redrive(kit);
    await kit.advance('1m');

    expect(service.calls).toEqual([0]);
    const because = 'The first task failed again as before, so the 39 that are left stay as they are.';
    expect(await kit.holdfast.redrives.get(id)).toMatchObject({
      state: 'stopped',
      because,
      putBack: 1,
      failedAgain: 1,
    });
    expect((await kit.holdfast.counts()).byState.dead).toBe(40);
    expect(lines).toContainEqual(expect.objectContaining({ event: 'redrive.stopped', redrive: id, putBack: 1 }));
    expect(lines).toContainEqual(expect.objectContaining({ event: 'redriven', task: 1, actor: 'api' }));
  });

  test('stops itself in a later stage too', async () => {
    const { kit, service } = await deadTasks(300);
    service.refuses = (input) => input >= 60;
    const { id } = await redrive(kit, { rate: '50/s' });
    await kit.advance('5m');

    const { state, putBack, failedAgain } = await kit.holdfast.redrives.get(id);
    expect(state).toBe('stopped');
    expect(failedAgain).toBeGreaterThanOrEqual(25);
    expect(putBack).toBeLessThan(300);
    expect(service.calls.length).toBe(putBack);
  });

  test('goes on where a few fail again, and where tasks fail in another way', async () => {
    const { kit, service } = await deadTasks(60);
    service.refuses = (input) => input % 5 === 4;
    service.breaks = (input) => input > 30;
    const { id } = await redrive(kit, { actor: 'eva' });
    await kit.advance('2m');
    expect(await kit.holdfast.redrives.get(id)).toMatchObject({
      state: 'done',
      actor: 'eva',
      succeeded: 25,
      failedAgain: 12,
      endedOtherwise: 23,
    });
  });

  test('waits for tasks that its source holds, and goes on when it is released', async () => {
    const { kit, service } = await deadTasks(40);
    await kit.holdfast.sources.hold('http:service');
    const { id } = await redrive(kit);
    await kit.advance('1h');
    expect(await kit.holdfast.redrives.get(id)).toMatchObject({ state: 'running', putBack: 1, succeeded: 0 });
    expect(await kit.holdfast.get(1)).toMatchObject({ state: 'ready', heldBy: 'source_held' });

    await kit.holdfast.sources.release('http:service');
    await kit.advance('1m');
    expect(await kit.holdfast.redrives.get(id)).toMatchObject({ state: 'done', succeeded: 40 });
    expect(service.calls).toHaveLength(40);
  });

  test('can be paused, resumed and cancelled', async () => {
    const { kit, service } = await deadTasks(100);
    const { redrives } = kit.holdfast;
    const { id } = await redrive(kit);
    await kit.advance('4s');
    expect(await redrives.pause(id, { actor: 'eva', note: 'lunch' })).toMatchObject({ state: 'paused' });
    await kit.advance('0s');
    const { length } = service.calls;
    await kit.advance('1h');
    expect(service.calls).toHaveLength(length);
    expect(await redrives.get(id)).toMatchObject({ state: 'paused', by: { actor: 'eva', note: 'lunch' } });

    await redrives.resume(id);
    await kit.advance('2s');
    expect(service.calls.length).toBeGreaterThan(length);
    await redrives.cancel(id);
    await kit.advance('1h');
    expect(service.calls.length).toBeLessThan(100);
    await expect(redrives.resume(id)).rejects.toThrow(
      `Redrive ${id} is cancelled, so it cannot be resumed. It is over: start another one for the tasks that are left.`,
    );
    await expect(redrives.pause(id)).rejects.toThrow(RedriveConflictError);
    await expect(redrives.get(id + 1)).rejects.toMatchObject({ code: 'redrive_not_found' });
  });

  test('puts back only what its filter selects, and only what had ended when it started', async () => {
    const { kit, service } = await deadTasks(20);
    await kit.holdfast.retry(1);
    await kit.drain();
    service.refuses = (input) => input === 1;
    const { id } = await redrive(kit, { filter: { reasons: ['http.*'], types: ['call'] } });
    expect(await kit.holdfast.redrives.get(id)).toMatchObject({ selected: 19, putBack: 1 });
    expect((await redrive(kit, { filter: { reasons: ['fs.*'] } })).selected).toBe(0);
  });

  test('can be previewed', async () => {
    const { kit } = await deadTasks(31);
    const { redrives } = kit.holdfast;
    expect(await redrives.preview({ filter: { reasons: ['http.503'] }, rate: '1/s' })).toEqual({
      matches: 31,
      mayRunTwice: 0,
      mustNotRunTwice: 0,
      takesAtLeast: 30_000,
    });
    expect(await redrives.list()).toEqual([]);
    expect((await kit.holdfast.counts()).byState.dead).toBe(31);
  });

  test('of nothing is done at once', async () => {
    const { kit } = await deadTasks(1);
    expect(await redrive(kit, { filter: { types: ['other'] } })).toMatchObject({ state: 'done', selected: 0 });
  });

  test('tells where a task is in it', async () => {
    const { kit } = await deadTasks(3);
    await kit.holdfast.sources.hold('http:service');
    const { id } = await redrive(kit, { actor: 'eva' });
    const waiting = await kit.holdfast.explain(2);
    expect(waiting.next).toBe(`Redrive ${id} puts it back in its turn.`);
    expect(waiting.text).toMatch(`  redrive it waits in redrive ${id} (by eva just now: the service is up again)`);
    expect((await kit.holdfast.explain(1)).text).toMatch(
      `  why     eva put it back just now: Redrive ${id}: the service is up again`,
    );
    await kit.holdfast.redrives.pause(id);
    expect((await kit.holdfast.explain(2)).next).toBe(`Redrive ${id} puts it back in its turn, once that is resumed.`);
    await kit.holdfast.redrives.cancel(id);
    expect((await kit.holdfast.explain(2)).text).not.toMatch('edrive');
  });
});

test('a task that needs a person says which redrive it waits in, and a task that was skipped says why', async () => {
  const ask = defineTask('ask', {
    idempotent: (input: string) => input !== 'charge',
    run(input) {
      if (input === 'charge') throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
      throw new NeedsManual('Look at it.');
    },
  });
  const kit = await open({ tasks: [ask] });
  const { holdfast } = kit;
  await holdfast.enqueueAll(ask, ['charge', 'look', 'look']);
  await kit.drain();
  const filter = { states: ['needs_manual'] } as const;
  expect(await holdfast.redrives.preview({ filter })).toMatchObject({ matches: 3, mayRunTwice: 1, mustNotRunTwice: 1 });
  await holdfast.sources.hold('ask');
  const { id } = await holdfast.redrive({ filter, note: 'all seen' });

  expect((await holdfast.explain(3)).next).toMatch(`Redrive ${id} puts it back in its turn. It waits for an answer`);
  expect(await holdfast.redrives.skips(id)).toEqual({ may_have_happened: 1 });
  expect(await holdfast.get(1)).toMatchObject({ state: 'needs_manual', executions: 1 });
  expect((await holdfast.explain(1)).text).toMatch(
    /redrive redrive 1 \(by api .*: all seen\) skipped it: it must not run twice, and its last execution may have had its effect/,
  );
  expect(await holdfast.redrives.ofTask(1)).toMatchObject({ is: 'skipped', why: 'may_have_happened' });
  expect(await holdfast.redrives.ofTask(2)).toMatchObject({ is: 'put_back', redrive: { id } });
});

describe('is refused', () => {
  test.each<[string, unknown, RegExp]>([
    ['without a note', { filter: {} }, /redrive needs a `note` about why/],
    ['with an empty note', { filter: {}, note: ' ' }, /redrive needs a `note` about why/],
    ['without a filter', { note: 'x' }, /filter takes an object of options, got undefined/],
    ['with an unknown filter', { filter: { type: ['x'] }, note: 'x' }, /filter has no option 'type'/],
    ['for a state that is not over', { filter: { states: ['ready'] }, note: 'x' }, /states\[0\] must be one of dead/],
    ['for no reason', { filter: { reasons: ['fs.*.x'] }, note: 'x' }, /reasons\[0\] must be a reason/],
    ['for no time', { filter: { endedFrom: 5 }, note: 'x' }, /endedFrom must be a valid Date/],
    ['at no rate', { filter: {}, note: 'x', rate: 'fast' }, /rate must be a rate such as '10\/s'/],
    ['with an unknown option', { filter: {}, note: 'x', canary: 5 }, /redrive has no option 'canary'/],
  ])('%s', async (_, options, message) => {
    const { kit } = await deadTasks(1);
    await expect(kit.holdfast.redrive(options as RedriveOptions)).rejects.toThrow(message);
    expect(await kit.holdfast.redrives.list()).toEqual([]);
  });

  test.each<[string, RedriveFilterOptions]>([
    ['when it ended', { endedFrom: new Date(0), endedBefore: new Date(1) }],
    ['its queue', { queues: ['other'] }],
    ['its source', { sources: ['other'] }],
    ['its fingerprint', { fingerprints: ['1:0'] }],
  ])('no task, and selects none that differs in %s', async (_, filter) => {
    const { kit } = await deadTasks(1);
    expect(await redrive(kit, { filter })).toMatchObject({ selected: 0 });
  });
});
