import { describe, expect, test } from 'vitest';
import { Registry } from '../../src/config/index.ts';
import { defineTask } from '../../src/index.ts';
import type { TestOptions } from '../../src/testing/index.ts';
import { useKits } from './scene.ts';

const openKit = useKits();

interface Spy {
  /** When each execution began. */
  readonly starts: number[];
  running: number;
  mostAtOnce: number;
}

/** Tasks of a second each, of one source. */
async function stage({ options = {}, ...more }: TestOptions & { options?: Partial<Parameters<typeof defineTask>[1]> }) {
  const spy: Spy = { starts: [], running: 0, mostAtOnce: 0 };
  const call = defineTask('call', {
    source: 'api',
    ...options,
    async run() {
      spy.starts.push(kit.clock.now());
      spy.running += 1;
      spy.mostAtOnce = Math.max(spy.mostAtOnce, spy.running);
      await kit.clock.sleep('1s');
      spy.running -= 1;
    },
  });
  const kit = await openKit({ tasks: [call], worker: { concurrency: 20 }, ...more });
  return { kit, spy, enqueue: (count: number) => kit.holdfast.enqueueAll(call, Array(count).fill({})) };
}

function gaps(starts: readonly number[]): number[] {
  return starts.slice(1).map((at, i) => at - (starts[i] as number));
}

describe('a pace', () => {
  test.each<[string, TestOptions & { options?: object }]>([
    ['of a source, by the code', { sources: { api: { pace: '2/s' } } }],
    ['of a queue, by the code', { queues: { default: { pace: '2/s' } } }],
    ['of the source of a type, by its definition', { options: { pace: '2/s' } }],
  ])('%s spaces the starts over all workers', async (_, options) => {
    const { kit, spy, enqueue } = await stage(options);
    kit.holdfast.work({ name: 'second', leaseFor: '1d', pollInterval: '1d', claimAhead: false });
    await enqueue(6);
    await kit.advance('1m');
    expect(spy.starts).toHaveLength(6);
    expect(Math.min(...gaps(spy.starts))).toBeGreaterThanOrEqual(500);
    expect(Math.max(...gaps(spy.starts))).toBeLessThanOrEqual(501);
  });

  test('that leaves the configuration ends, and one that a person set stays', async () => {
    const config = new Registry();
    const load = (limits: string) =>
      config.load(`sources: { api: ${limits}, other: ${limits} }\nqueues: { bulk: ${limits} }`);
    load('{ pace: 1/h, concurrency: 2 }');
    const { kit } = await stage({ config });
    const { holdfast } = kit;
    await holdfast.sources.limit('other', { pace: '1/m' });
    const limitsOnce = async (concurrency: number | undefined) => {
      for (let turn = 0; turn < 1_000; turn++) {
        await new Promise((resolve) => setImmediate(resolve));
        const limits = new Map((await holdfast.sources.list()).map((source) => [source.name, source.limits]));
        if (limits.get('api')?.concurrency === concurrency) return limits;
      }
      throw new Error('The limits of the configuration were not written.');
    };

    load('{ concurrency: 3 }');
    const fewer = await limitsOnce(3);
    expect(fewer.get('api')).not.toHaveProperty('pace');
    expect(fewer.get('other')).toMatchObject({ pace: { perSecond: 1 / 60 } });
    expect(await holdfast.queues()).toMatchObject([{ name: 'bulk', concurrency: 3 }]);
    expect((await holdfast.queues())[0]).not.toHaveProperty('pace');

    config.load('version: 1');
    expect([...(await limitsOnce(undefined)).keys()]).toEqual(['other']);
    expect((await holdfast.queues())[0]).not.toHaveProperty('concurrency');
  });

  test('that a person sets holds at once, goes before the code, and ends when it is removed', async () => {
    const { kit, spy, enqueue } = await stage({ sources: { api: { pace: '100/s' } } });
    await kit.holdfast.sources.limit('api', { pace: '1/m', note: 'their request', actor: 'eva' });
    await enqueue(3);
    await kit.advance('90s');
    expect(spy.starts).toHaveLength(2);
    expect(await kit.holdfast.sources.list()).toMatchObject([
      { name: 'api', limits: { pace: { perSecond: 1 / 60 }, by: { actor: 'eva', note: 'their request' } } },
    ]);
    await kit.holdfast.sources.limit('api', { pace: null });
    await kit.advance('2s');
    expect(spy.starts).toHaveLength(3);
  });
});

describe('a concurrency', () => {
  test.each<[string, TestOptions & { options?: object }]>([
    ['of a source, by the code', { sources: { api: { concurrency: 3 } } }],
    ['of a queue, by the code', { queues: { default: { concurrency: 3 } } }],
    ['of the source of a type, by its definition', { options: { concurrency: 3 } }],
  ])('%s bounds what runs at once over all workers', async (_, options) => {
    const { kit, spy, enqueue } = await stage(options);
    kit.holdfast.work({ name: 'second', leaseFor: '1d', pollInterval: '1d', claimAhead: false });
    await enqueue(10);
    await kit.advance('1m');
    expect(spy.starts).toHaveLength(10);
    expect(spy.mostAtOnce).toBe(3);
  });
});

describe('a hold', () => {
  test.each([
    ['for a time', () => ({ for: '1h' })],
    ['until a time', (now: number) => ({ until: new Date(now + 3_600_000) })],
  ] as const)('%s ends by itself', async (_, options) => {
    const { kit, spy, enqueue } = await stage({});
    await kit.holdfast.sources.hold('api', { ...options(kit.clock.now()), note: 'maintenance' });
    await enqueue(2);
    await kit.advance('59m');
    expect(spy.starts).toEqual([]);
    await kit.advance('2m');
    expect(spy.starts).toHaveLength(2);
    expect(await kit.holdfast.sources.list()).toEqual([]);
  });

  test('is refused for a time and until a time at once, and until a time that is over', async () => {
    const { kit } = await stage({});
    const until = new Date(kit.clock.now());
    await expect(kit.holdfast.sources.hold('api', { for: '1h', until })).rejects.toThrow('`for` or `until`, not both');
    await expect(kit.holdfast.sources.hold('api', { until })).rejects.toThrow('until must be in the future');
  });
});

test('a definition whose tasks have several sources refuses limits', () => {
  const define = (type: string, source?: () => string) =>
    defineTask(type, { pace: '1/s', run() {}, ...(source && { source }) });
  expect(() => define('call', () => 'api')).toThrow("defineTask('call') cannot limit its source");
  expect(() => define('*')).toThrow("defineTask('*') cannot limit its source");
});
