import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { metricsText } from '../../src/queue/metrics.ts';
import { aStore } from '../a-store.ts';
import { claimRequest, newTask, settlement, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { useKits } from '../worker/scene.ts';

const open = useKits();

test('the metrics have the text format of Prometheus, with bounded labels', async () => {
  const work = defineTask('wo"rk', {
    retry: { maxAttempts: 2, backoff: { fixed: '1s' }, jitter: 'none' },
    run(fails: boolean) {
      if (fails) throw new Error('No.');
    },
  });
  const kit = await open({ tasks: [work] });
  await kit.holdfast.enqueueAll(work, [false, false, true]);
  await kit.advance('10s');
  await kit.holdfast.enqueueAll(
    'elsewhere',
    Array.from({ length: 300 }, (_, n) => n),
    (_, n) => ({ queue: `q${n}`, source: `s${n}` }),
  );
  await kit.holdfast.sources.hold('s1');
  await kit.advance('5s');

  const text = await kit.holdfast.metrics();
  const lines = text.trimEnd().split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      '# TYPE holdfast_tasks gauge',
      'holdfast_tasks{state="succeeded"} 2',
      'holdfast_tasks{state="dead"} 1',
      'holdfast_tasks_unresolved{state="dead",reason="unknown"} 1',
      'holdfast_ready_oldest_age_seconds{queue="q1"} 5',
      'holdfast_ready_oldest_age_seconds{queue="_other"} 5',
      'holdfast_source_held{source="s1",cause="source_held"} 1',
      '# TYPE holdfast_executions_total counter',
      'holdfast_executions_total{type="wo\\"rk",outcome="success"} 2',
      'holdfast_executions_total{type="wo\\"rk",outcome="failure"} 2',
      'holdfast_failures_total{type="wo\\"rk",reason="unknown",kind="unknown"} 2',
      'holdfast_retries_total{type="wo\\"rk",outcome="failure"} 1',
      'holdfast_task_ends_total{type="wo\\"rk",state="dead"} 1',
    ]),
  );
  expect(lines.filter((line) => line.startsWith('holdfast_ready_oldest_age_seconds{'))).toHaveLength(201);
  for (const line of lines)
    expect(line).toMatch(
      /^(?:# (?:HELP|TYPE) \w+ .+|\w+(?:\{\w+="(?:[^"\\]|\\.)*"(?:,\w+="(?:[^"\\]|\\.)*")*\})? [\d.]+)$/,
    );
  expect(new Set(lines).size).toBe(lines.length);
});

test('a type beyond the first 200 is counted as _other in all lines of all families', async () => {
  const store = await aStore().open(virtualWorld());
  const worker = await store.tasks.join({ name: 'a', leaseFor: 30_000, publishes: {} });
  await store.tasks.enqueue(Array.from({ length: 500 }, () => newTask({})));
  const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: 500 }));
  const keyOf = (n: number) => JSON.stringify([`t${n}`, 's', 'success', 'succeeded', 'nobody', '', '', '', 1, 1]);
  await store.tasks.settle(tasks.map((task, n) => settlement(task, succeeded(), { countedAs: keyOf(n) })));
  const text = await metricsText(store);
  await store.upkeep.close();
  const typesOf = (family: string) =>
    new Set([...text.matchAll(new RegExp(`^${family}\\{type="(\\w+)"`, 'gm'))].map(([, type]) => type));
  const types = typesOf('holdfast_executions_total');
  expect(types.size).toBe(201);
  for (const family of ['holdfast_retries_total', 'holdfast_task_ends_total']) expect(typesOf(family)).toEqual(types);
});
