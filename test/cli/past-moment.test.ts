import { expect, test } from 'vitest';
import { parsePastMoment } from '../../src/cli/flags/moment.ts';

const NOW = new Date(2026, 5, 15, 14, 0, 0);

test.each<[string, Date]>([
  ['13:30', new Date(2026, 5, 15, 13, 30)],
  ['14:30', new Date(2026, 5, 14, 14, 30)],
  ['14:00:00', NOW],
  ['yesterday 9:00', new Date(2026, 5, 14, 9)],
  ['today 15:00', new Date(2026, 5, 15, 15)],
  ['2h', new Date(2026, 5, 15, 12)],
  ['1h30m ago', new Date(2026, 5, 15, 12, 30)],
  ['2026-06-01', new Date(2026, 5, 1)],
  ['2026-06-01T10:00Z', new Date(Date.UTC(2026, 5, 1, 10))],
])('a time in the past may be written %s', (text, at) => {
  expect(parsePastMoment(text, NOW, '--ended-after')).toEqual(at);
});

test.each(['noon', '25:00', '2026-02-30', 'tomorrow 9:00', '', '-2h'])('"%s" is no time in the past', (text) => {
  expect(() => parsePastMoment(text, NOW, '--ended-after')).toThrow('--ended-after is not a time');
});
