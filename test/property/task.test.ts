import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ACTIONS,
  actionLeads,
  ENDED_STATES,
  hasEnded,
  isLegal,
  meets,
  type Needs,
  TASK_STATES,
  TRANSITIONS,
} from '../../src/task.ts';

describe('the table of transitions', () => {
  const unended = TASK_STATES.filter((state) => !hasEnded(state));

  test('knows every state, and every state can be reached', () => {
    expect(Object.keys(TRANSITIONS).sort()).toEqual(['elsewhere', 'new', ...TASK_STATES].sort());
    const { elsewhere: _, ...ours } = TRANSITIONS;
    const reached = new Set(Object.values(ours).flat());
    expect(TASK_STATES.filter((state) => !reached.has(state))).toEqual([]);
  });

  test('leads out of every state, so that no task is stuck', () => {
    for (const state of TASK_STATES) expect(TRANSITIONS[state].length).toBeGreaterThan(0);
  });

  test('lets a task be cancelled from every state that has not ended, and from no other', () => {
    expect(TASK_STATES.filter((state) => isLegal(state, 'cancelled'))).toEqual(unended);
  });

  test('lets a person retry from every state that has ended', () => {
    for (const state of ENDED_STATES) expect(isLegal(state, 'ready')).toBe(true);
    expect(isLegal('needs_manual', 'ready')).toBe(true);
  });

  test('lets a task succeed from every state that has not ended, since a lost execution may succeed late', () => {
    expect(TASK_STATES.filter((state) => isLegal(state, 'succeeded'))).toEqual(unended);
  });

  test('has every place to which an action leads', () => {
    for (const verb of Object.keys(ACTIONS) as (keyof typeof ACTIONS)[])
      for (const from of TASK_STATES)
        for (const as of ['succeeded', 'retry', 'dead'] as const)
          for (const isDue of [false, true]) {
            const to = actionLeads(verb, from, { isDue, as });
            if (to !== undefined) expect(isLegal(from, to)).toBe(true);
          }
  });

  test('lets no state follow itself', () => {
    expect(TASK_STATES.filter((state) => isLegal(state, state))).toEqual([]);
  });

  test('does not take needs_manual for an end: it waits for a person', () => {
    expect(hasEnded('needs_manual')).toBe(false);
  });
});

describe('needs', () => {
  const needs: fc.Arbitrary<Needs> = fc.dictionary(
    fc.constantFrom('cpu', 'gpu', 'gpu_model', 'constructor', '__proto__'),
    fc.oneof(fc.double({ noNaN: true }), fc.string(), fc.boolean()),
  );

  test('are met by what offers the same, and nothing is needed by nobody', () => {
    fc.assert(
      fc.property(needs, needs, (some, others) => {
        expect(meets(some, some)).toBe(true);
        expect(meets(others, {})).toBe(true);
      }),
    );
  });

  test.each<[string, Needs, Needs, boolean]>([
    ['numbers mean at least', { cpu: 8 }, { cpu: 4 }, true],
    ['and not less', { cpu: 2 }, { cpu: 4 }, false],
    ['text means equal', { gpu: 'RTX5090' }, { gpu: 'RTX5090' }, true],
    ['in the same letters', { gpu: 'rtx5090' }, { gpu: 'RTX5090' }, false],
    ['true means equal', { ssd: false }, { ssd: true }, false],
    ['false means equal too', {}, { ssd: false }, false],
    ['a number is no text', { cpu: '8' }, { cpu: 4 }, false],
    ['what is missing is not offered', {}, { cpu: 0 }, false],
    ['what everything inherits is not offered', {}, { toString: 'x' }, false],
    ['all must be met', { cpu: 8 }, { cpu: 4, gpu: 'RTX5090' }, false],
  ])('%s', (_, capabilities, some, met) => {
    expect(meets(capabilities, some)).toBe(met);
  });
});
