// The sections of docs/reference/options.md: which interfaces of the source describe the options of which function, and how the function
// is called with one option, so that it answers a wrong one.
import { watchConfig } from '../../dist/config/index.js';
import { Registry } from '../../dist/config/registry.js';
import { createDashboard } from '../../dist/dashboard/index.js';
import { defineTask, jsonLog, LOG_LEVELS, openHoldfast, QUEUE_ORDERS } from '../../dist/index.js';
import { MISSED, OVERLAPS } from '../../dist/schedule/turn.js';
import { postgres } from '../../dist/store/postgres/index.js';
import { SQLITE_DRIVERS } from '../../dist/store/sqlite/driver.js';
import { sqlite } from '../../dist/store/sqlite/index.js';
import { UNIQUE_CONFLICTS, UNIQUE_SCOPES } from '../../dist/task.js';
import { openTestHoldfast } from '../../dist/testing/index.js';
import { UNHANDLED_REJECTIONS } from '../../dist/worker/worker-options.js';

const run = () => {};

/** The texts that these types allow. */
export const WORDS = {
  Durability: ['full', 'process'],
  LogLevel: LOG_LEVELS,
  Missed: MISSED,
  Overlap: OVERLAPS,
  QueueOrder: QUEUE_ORDERS,
  SqliteDriver: SQLITE_DRIVERS,
  UnhandledRejections: UNHANDLED_REJECTIONS,
  UniqueConflict: UNIQUE_CONFLICTS,
  UniqueScope: UNIQUE_SCOPES,
};

/** The type that the store of `sectionsFor` must be opened with. */
export const task = defineTask('mail', { run });

/** @param holdfast an open store, on which the functions are called. */
export function sectionsFor(holdfast) {
  const acts =
    'Who acts and why, for `cancel`, `hold`, `release`, `retry`, `resolve`, `pauseQueue`, `resumeQueue`, `sources.hold`, `sources.release` and `sources.probe`.';
  return [
    {
      title: 'openHoldfast',
      says: '`await openHoldfast({ … })` opens a store. Everything else is called on what it returns.',
      from: [['queue/open.ts', 'HoldfastOptions']],
      call: (options) => opened(openHoldfast, options),
    },
    {
      title: 'openHoldfast: a queue',
      says: "The members of `queues`: `queues: { mail: { order: 'priority' } }`.",
      from: [['queue/open.ts', 'QueueOptions']],
      call: (options) => opened(openHoldfast, { queues: { mail: options } }),
    },
    {
      title: 'openHoldfast: a source',
      says: "The members of `sources`: `sources: { 'api.example.com': { pace: '10/s' } }`. Also the options of `holdfast.sources.limit(source, { … })`.",
      from: [['limits.ts', 'LimitOptions']],
      call: (options) => opened(openHoldfast, { sources: { 'api.example.com': options } }),
    },
    {
      title: 'sqlite',
      says: "`sqlite('tasks.db', { … })` of `holdfast/sqlite`: a store in one file.",
      from: [['store/sqlite/index.ts', 'SqliteOptions']],
      call: (options) => sqlite(':memory:', options),
      known: ['durability', 'driver'],
    },
    {
      title: 'postgres',
      says: "`postgres('postgres://…', { … })` of `holdfast/postgres`: a store in a database.",
      from: [['store/postgres/index.ts', 'PostgresOptions']],
      call: (options) => postgres('postgres://app@db.example/app', options),
    },
    {
      title: 'defineTask',
      says: "`defineTask('type', { … })` says how the tasks of a type are run, and how their failures are answered.",
      from: [
        ['worker/define-task.ts', 'TaskOptions'],
        ['worker/define-task.ts', 'BatchTaskOptions'],
      ],
      call: (options) => defineTask('mail', { run, ...options }),
    },
    {
      title: 'defineTask: batch',
      says: 'The members of `batch`.',
      from: [['worker/batches.ts', 'BatchOptions']],
      call: (options) => defineTask('mail', { batch: { size: 100, ...options }, runBatch: run }),
    },
    {
      title: 'enqueue',
      says: '`await holdfast.enqueue(task, input, { … })` records a task. `enqueueAll` and `within` take the same options.',
      from: [['queue/enqueue.ts', 'EnqueueOptions']],
      call: (options) => holdfast.enqueue(task, {}, options),
    },
    {
      title: 'enqueue: unique',
      says: "The members of `unique`: `unique: { key: 'invoice-17' }`.",
      from: [['queue/enqueue.ts', 'UniqueOptions']],
      call: (options) => holdfast.enqueue(task, {}, { unique: { key: 'invoice-17', ...options } }),
    },
    {
      title: 'enqueueGroup',
      says: '`await holdfast.enqueueGroup(task, inputs, { … })` records tasks, and one that runs when all of them have ended.',
      from: [['queue/enqueue.ts', 'GroupOptions']],
      call: (options) => holdfast.enqueueGroup(task, [{}], { followUp: [task, {}], ...options }),
    },
    {
      title: 'work',
      says: '`holdfast.work({ … })` starts a worker. `holdfast.worker({ … })` makes one that runs tasks only when it is told to (`runOne`).',
      from: [['worker/worker-options.ts', 'WorkerOptions']],
      call: (options) => holdfast.worker(options),
    },
    {
      title: 'claim',
      says: '`await holdfast.claim({ … })` takes one task, for programs with a loop of their own.',
      from: [['queue/claim.ts', 'ClaimOptions']],
      call: (options) => holdfast.claim(options),
    },
    {
      title: 'result',
      says: '`await holdfast.result(id, { … })` waits for the result of a task.',
      from: [['queue/results.ts', 'ResultOptions']],
      call: (options) => holdfast.result(1, options),
    },
    {
      title: 'schedules.set',
      says: "`await holdfast.schedules.set('name', { … })` records a task that is enqueued by the clock.",
      from: [['queue/schedules.ts', 'ScheduleOptions']],
      call: (options) => holdfast.schedules.set('nightly', { task, cron: '@daily', ...options }),
      unchecked: ['input'],
    },
    {
      title: 'list',
      says: '`await holdfast.list({ … })` returns tasks, the newest first.',
      from: [['queue/task-reader.ts', 'ListOptions']],
      call: (options) => holdfast.list(options),
    },
    {
      title: 'stats',
      says: '`await holdfast.stats({ … })` returns what was counted.',
      from: [['queue/stats.ts', 'StatsOptions']],
      call: (options) => holdfast.stats(options),
    },
    {
      title: 'Acts of a person',
      says: acts,
      from: [['queue/operate.ts', 'ActionOptions']],
      call: (options) => holdfast.cancel(1, options),
      known: ['actor', 'note'],
    },
    {
      title: 'retry',
      says: '`await holdfast.retry(id, { … })` makes a waiting task due now, and starts a new round of one that has ended.',
      from: [['queue/operate.ts', 'RetryOptions']],
      call: (options) => holdfast.retry(1, options),
    },
    {
      title: 'resolve',
      says: "`await holdfast.resolve(id, { as: 'succeeded' })` answers a task that needs a person.",
      from: [['queue/operate.ts', 'ResolveOptions']],
      call: (options) => holdfast.resolve(1, { as: 'retry', ...options }),
    },
    {
      title: 'sources.hold',
      says: "`await holdfast.sources.hold('api.example.com', { … })` starts no task of a source until it is released.",
      from: [['queue/sources.ts', 'HoldSourceOptions']],
      call: (options) => holdfast.sources.hold('api.example.com', options),
    },
    {
      title: 'redrives.start',
      says: '`await holdfast.redrives.start({ … })` puts ended tasks back, a few first. `redrives.preview` takes `filter` and `rate`.',
      from: [['queue/redrives.ts', 'RedriveOptions']],
      call: (options) => holdfast.redrives.start({ filter: {}, note: 'fixed', ...options }),
    },
    {
      title: 'redrives.start: filter',
      says: "The members of `filter`: which tasks are put back. The text of a filter says the same: `'state:dead reason:http.*'`.",
      from: [['queue/redrives.ts', 'RedriveFilterOptions']],
      call: (options) => holdfast.redrives.preview({ filter: options }),
    },
    {
      title: 'createDashboard',
      says: '`createDashboard(holdfast, { … })` of `holdfast/dashboard`: pages for people and their JSON API, as one fetch handler.',
      from: [['dashboard/dashboard.ts', 'DashboardOptions']],
      call: (options) => createDashboard(holdfast, { authorize: 'anyone', ...options }).close(),
      known: ['authorize', 'basePath', 'readOnly', 'environment', 'hosts', 'log'],
    },
    {
      title: 'openTestHoldfast',
      says: '`await openTestHoldfast({ … })` of `holdfast/testing`: the real engine, with a clock that the test moves.',
      from: [['testing/index.ts', 'TestOptions']],
      call: (options) => opened(openTestHoldfast, options),
    },
    {
      title: 'watchConfig',
      says: "`watchConfig('holdfast.yaml', registry, { … })` of `holdfast/config`: a change of the file applies to the next failure.",
      from: [['config/watch.ts', 'WatchOptions']],
      call: (options) => watchConfig('holdfast.yaml', new Registry(), options).close(),
    },
    {
      title: 'jsonLog',
      says: '`jsonLog({ … })` is a log of JSON lines, for `log` of `openHoldfast`.',
      from: [['telemetry/json-log.ts', 'JsonLogOptions']],
      call: (options) => jsonLog({ write: run, ...options }),
    },
  ];
}

/** Opens with one more option; if that is not refused, closes again. */
async function opened(open, options) {
  const one = await open({ store: sqlite(':memory:'), ...options });
  await one.close();
}
