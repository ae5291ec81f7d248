import { describe, expect, test } from 'vitest';
import { type PruneFlags, pruneSelection } from '../../src/cli/flags/prune-selection.ts';
import { parseRetention, type RetentionOptions } from '../../src/worker/retention-options.ts';

const DAY = 86_400_000;
const NOTHING = { succeeded: {}, dead: {}, cancelled: {}, needs_manual: {} };

const selected = (flags: PruneFlags, configured: RetentionOptions = {}) =>
  pruneSelection(flags, parseRetention(configured));

describe('db prune removes', () => {
  test('what the retention says, without flags', () => {
    const configured: RetentionOptions = { succeeded: '7d', needs_manual: '90d' };
    expect(selected({}, configured)).toEqual(parseRetention(configured));
  });

  test('what is older than it is told, but nothing that needs a person', () => {
    expect(selected({ olderThan: '2d' }, { dead: 'never', needs_manual: '1d' })).toEqual({
      ...NOTHING,
      succeeded: { default: 2 * DAY },
      dead: { default: 2 * DAY },
      cancelled: { default: 2 * DAY },
    });
  });

  test('what needs a person where that is named', () => {
    expect(selected({ olderThan: '2d', state: 'needs_manual' })).toEqual({
      ...NOTHING,
      needs_manual: { default: 2 * DAY },
    });
  });

  test('only the states that are named', () => {
    expect(selected({ state: 'dead, cancelled' })).toEqual({
      ...NOTHING,
      dead: { default: 30 * DAY },
      cancelled: { default: 30 * DAY },
    });
  });

  test('only the reasons and families that are named, each by its time', () => {
    const configured: RetentionOptions = {
      dead: { default: '30d', 'fs.locked': '90d', 'http.*': '5d' },
      cancelled: 'never',
    };
    expect(selected({ reason: 'fs.*,http.5xx', state: 'dead' }, configured).dead).toEqual({
      'fs.locked': 90 * DAY,
      'fs.*': 30 * DAY,
      'http.5xx': 5 * DAY,
    });
    expect(selected({ reason: 'fs.locked', olderThan: '1d' })).toEqual({
      ...NOTHING,
      dead: { 'fs.locked': DAY },
      cancelled: { 'fs.locked': DAY },
    });
  });
});

describe('db prune refuses', () => {
  test.each<[PruneFlags, string]>([
    [{ state: 'ready' }, 'only ended tasks are removed'],
    [{ state: 'dead,' }, 'needs names, separated by commas'],
    [{ reason: 'EACCES' }, '--reason EACCES is no reason'],
    [{ olderThan: 'soon' }, '--older-than'],
    [{ state: 'succeeded', reason: 'fs.locked' }, 'what succeeded has no reason'],
    [{ state: 'needs_manual' }, 'the retention keeps tasks that are needs_manual for ever'],
  ])('%j', (flags, message) => {
    expect(() => selected(flags)).toThrow(message);
  });

  test('a state or reason that the retention keeps, and says how to remove it all the same', () => {
    const refused = () => selected({ state: 'dead', reason: 'fs.locked' }, { dead: { 'fs.locked': 'never' } });
    expect(refused).toThrow(
      expect.objectContaining({
        message: 'the retention keeps tasks that are dead for fs.locked for ever',
        hints: [expect.stringContaining('--older-than')],
      }),
    );
  });
});
