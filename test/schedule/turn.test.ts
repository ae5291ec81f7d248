import { expect, test } from 'vitest';
import { parseCron } from '../../src/schedule/cron.ts';
import { type Answers, NEW_PROGRESS, nextTurn, type Progress } from '../../src/schedule/turn.ts';

const HOURLY = parseCron({ cron: '0 * * * *', timeZone: 'UTC' });
const HOUR = 3_600_000;
const noon = Date.parse('2026-06-01T12:00Z');
const at = (hours: number): number => noon + hours * HOUR;
const from = (hours: number): Progress => ({ ...NEW_PROGRESS, nextAt: at(hours) });

test('a time that is due gets one task, and the next time is looked at then', () => {
  for (const missed of ['latest', 'all', 'skip'] as const) {
    const turn = nextTurn(HOURLY, { missed, overlap: 'allow' }, from(0), at(0) + 5);
    expect(turn).toEqual({
      ticks: [at(0)],
      progress: {
        nextAt: at(1),
        last: { tick: at(0), at: at(0) + 5, was: 'enqueued' },
        enqueued: 1,
        skipped: 0,
        missed: 0,
      },
      lookAt: at(1),
    });
  }
});

test.each([
  ['latest', [at(24)], { enqueued: 1, missed: 24 }],
  ['all', Array.from({ length: 25 }, (_, i) => at(i)), { enqueued: 25, missed: 0 }],
  ['skip', [], { enqueued: 0, missed: 25 }],
] as const)('after a day without a worker, %s', (missed, ticks, counts) => {
  const turn = nextTurn(HOURLY, { missed, overlap: 'allow' }, from(0), at(24.5));
  expect(turn.ticks).toEqual(ticks);
  expect(turn.progress).toMatchObject({ ...counts, nextAt: at(25) });
});

test('a clock that was set back enqueues nothing again', () => {
  const { progress: then } = nextTurn(HOURLY, { missed: 'all', overlap: 'allow' }, from(0), at(0));
  expect(nextTurn(HOURLY, { missed: 'all', overlap: 'allow' }, then, at(-1))).toMatchObject({
    ticks: [],
    lookAt: at(1),
  });
});

test('with `skip`, a time at which the task before runs is passed over and counted', () => {
  const { otherwise } = nextTurn(HOURLY, { missed: 'latest', overlap: 'skip' }, from(0), at(0));
  expect(otherwise).toEqual({
    progress: { nextAt: at(1), last: { tick: at(0), at: at(0), was: 'skipped' }, enqueued: 0, skipped: 1, missed: 0 },
    lookAt: at(1),
  });
});

test('with `queue`, one time waits for the task before, and those that it lets pass are counted as skipped', () => {
  const answers: Answers = { missed: 'latest', overlap: 'queue' };
  const first = nextTurn(HOURLY, answers, from(0), at(0));
  expect(first.otherwise).toEqual({ progress: { ...from(0), waits: true }, lookAt: at(0) + 5_000 });
  const later = nextTurn(HOURLY, answers, first.otherwise?.progress as Progress, at(3.5));
  expect(later.ticks).toEqual([at(3)]);
  expect(later.progress).toMatchObject({ enqueued: 1, skipped: 3, missed: 0, nextAt: at(4) });
  expect(later.progress.waits).toBeUndefined();
});

test('with `all`, a long absence is made up for in several turns, for the newest thousand times', () => {
  const answers: Answers = { missed: 'all', overlap: 'allow' };
  let progress = from(-5_000);
  const ticks: number[] = [];
  for (let turns = 0; turns < 20; turns++) {
    const turn = nextTurn(HOURLY, answers, progress, at(0));
    ticks.push(...turn.ticks);
    progress = turn.progress;
    if ((turn.lookAt as number) > at(0)) break;
  }
  expect(ticks).toEqual(Array.from({ length: 1_000 }, (_, i) => at(i - 999)));
  expect(progress).toMatchObject({ nextAt: at(1), enqueued: 1_000 });
});

test('a minute schedule whose workers were away for ten years answers at once', () => {
  const minutes = parseCron({ cron: '* * * * *', timeZone: 'Europe/Berlin' });
  const turn = nextTurn(minutes, { missed: 'latest', overlap: 'allow' }, from(-10 * 365 * 24), noon);
  expect(turn.ticks).toEqual([noon]);
  expect(turn.progress).toMatchObject({ missed: 99, nextAt: noon + 60_000 });
});

test('an expression whose last time is over is not looked at again', () => {
  const never = { after: () => undefined, upTo: () => [] };
  expect(nextTurn(never, { missed: 'latest', overlap: 'allow' }, from(0), at(0))).toMatchObject({
    ticks: [at(0)],
    lookAt: undefined,
  });
});
