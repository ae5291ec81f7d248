import { expect, test } from 'vitest';
import { parseCron } from '../../src/schedule/cron.ts';

const NEW_YORK = 'America/New_York';

function between(cron: string, from: string, to: string, timeZone = NEW_YORK): string[] {
  const times = parseCron({ cron, timeZone });
  const found: string[] = [];
  for (
    let time = times.after(Date.parse(from) - 1);
    time !== undefined && time < Date.parse(to);
    time = times.after(time)
  )
    found.push(new Date(time).toISOString());
  return found;
}

const SPRING = ['2026-03-08T05:00Z', '2026-03-09T04:00Z'] as const;
const AUTUMN = ['2026-11-01T04:00Z', '2026-11-02T05:00Z'] as const;

test.each([
  ['30 2 * * *', SPRING, ['2026-03-08T07:00:00.000Z']],
  ['30 1 * * *', AUTUMN, ['2026-11-01T05:30:00.000Z']],
  ['0,30 1 * * *', AUTUMN, ['2026-11-01T05:00:00.000Z', '2026-11-01T05:30:00.000Z']],
  ['@daily', AUTUMN, ['2026-11-01T04:00:00.000Z']],
  ['0 6 * * MON', ['2026-03-06T00:00Z', '2026-03-12T00:00Z'], ['2026-03-09T10:00:00.000Z']],
  ['30 59 23 31 12 *', ['2026-12-01T00:00Z', '2027-01-02T00:00Z'], ['2027-01-01T04:59:30.000Z']],
] as const)('%s in New York', (cron, [from, to], expected) => {
  expect(between(cron, from, to)).toEqual(expected);
});

test.each([
  ['*/15 * * * *', SPRING, 92],
  ['*/15 * * * *', AUTUMN, 100],
  ['@hourly', AUTUMN, 25],
  ['0 * * * *', SPRING, 23],
] as const)('%s fires as often as there are such times', (cron, [from, to], count) => {
  expect(between(cron, from, to)).toHaveLength(count);
});

test('the last times are the same as those found forwards', () => {
  for (const cron of ['*/15 * * * *', '0,30 1 * * *']) {
    const forwards = between(cron, '2026-10-31T04:00Z', '2026-11-03T05:00Z');
    const times = parseCron({ cron, timeZone: NEW_YORK }).upTo(Date.parse(forwards.at(-1) as string), 4);
    expect(times.map((time) => new Date(time).toISOString())).toEqual(forwards.slice(-4));
  }
});

test.each([
  ['nope', 'UTC', /five fields such as '0 3 \* \* \*'/],
  ['* * * *', 'UTC', /five fields/],
  ['2026-11-30T00:00:00', 'UTC', /five fields/],
  ['61 * * * *', 'UTC', /cron '61 \* \* \* \*' is refused: Invalid value for minute: 61\./],
  ['* * * * *', 'Mars/Olympus', /timeZone must be a name such as 'Europe\/Berlin' or 'UTC', got 'Mars\/Olympus'/],
  [7, 'UTC', /five fields/],
])('%s in %s is refused', (cron, timeZone, message) => {
  expect(() => parseCron({ cron: cron as string, timeZone })).toThrow(message);
});
