import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/longest-first.ts';
import { SummaryReporter } from './test/summary-reporter.ts';

/** Tests that spawn real processes, need `dist`, or wait for connections that break. */
const SLOW = [
  'test/process/**/*.test.ts',
  'test/docs/**/*.test.ts',
  'test/mistakes/compiler.test.ts',
  'test/postgres/cluster.test.ts',
  'test/store/postgres-{connections,opening,lost-answers,open-transactions,sizes,storm,wake}.test.ts',
];

/** Who is charged for what, asked of real processes: `npm run test:who-pays`. */
const WHO_PAYS = ['test/who-pays/**/*.test.ts'];

/** Real processes that mostly wait: for a server that is down, and for claims that run out. A part of `npm run test:processes`. */
const WAITING = ['test/process/{outage,redrive}.test.ts'];

/** Those of them that `npm test` runs: the others are `npm run test:processes`, for all together take too long. */
const SLICE = [
  'test/docs/{declarations,importing,links,package,policies,readme,reference}.test.ts',
  'test/mistakes/compiler.test.ts',
  'test/process/{durability,worker}.test.ts',
];

/** Node's own SQLite, which Node 20 does not have. A part of the tests that newer versions of Node run. */
const NODE_SQLITE = ['test/node-sqlite/**/*.test.ts'];

/**
 * What cannot depend on the version of Node, or says nothing new there: the store on PostgreSQL, rules over plain values, the source as text.
 * `npm run test:node22` and `test:node24` run the other fast tests, on Node's own SQLite.
 */
const ONE_VERSION = [
  'test/contract/postgres.test.ts',
  'test/store/postgres-*.test.ts',
  'test/{config,property,simulator,source}/**/*.test.ts',
  'test/failure/{adaptive,families,foresee,policy,presets,reasons-said}*.test.ts',
  'test/architecture.test.ts',
  'test/cli/usage.test.ts',
  // It starts Node as another user, who may not read the folder into which npx installs another version for root.
  'test/handlers/move.test.ts',
];

/** The dashboard in a real Chromium, on real stores: `npm run test:browser`. */
const BROWSER = ['test/browser/**/*.test.ts'];

/** The site of the documentation, which `npm run docs` builds before: `npm run test:site`. */
const SITE = ['test/site/**/*.test.ts'];

/** What `npm run check:fast` runs: rules and text, without a store, and nothing that takes a second by itself. */
const QUICK = ['test/{failure,config,cli,property}/**/*.test.ts', 'test/architecture.test.ts'];
const NOT_QUICK = [
  'test/failure/{hostile,foresee,reasons-said}.test.ts',
  'test/property/{classify,config,decide}.test.ts',
  'test/cli/{import,output-log,usage}.test.ts',
];

/**
 * CI gives a test a second try, for thousands of them meet real servers and processes on a machine that others use too.
 * Such a test is named at the end of the run (`passed at the second try: …`), so that somebody finds out why. A property
 * or a random history that failed gets none: what it found is true whatever the next seed says.
 */
const retry = process.env.CI === undefined ? 0 : { count: 1, condition: /^(?!Property failed)/ };

/** On PostgreSQL each statement is a message to a server: a test that moves its clock through hundreds of claims takes longer. */
const FAST_TIMEOUT = process.env.HOLDFAST_TEST_STORE === 'postgres' ? 90_000 : 20_000;

const setupFiles = ['test/seed.ts'];

export default defineConfig({
  test: {
    // For all projects: one server, which starts when the first test asks for it.
    globalSetup: ['test/postgres/global-setup.ts'],
    reporters: ['default', new SummaryReporter()],
    // Most of them wait for a disk, a server or a process: two run beside each other even where there are two processors.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'quick',
          setupFiles,
          include: QUICK,
          exclude: [...NOT_QUICK, '**/node_modules/**'],
          // They change nothing that others read, so they share what they import.
          isolate: false,
          testTimeout: 20_000,
          hookTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'fast',
          setupFiles,
          retry,
          include: ['test/**/*.test.ts'],
          // The package of test/errors/live brings tests of others along, once it is installed.
          exclude: [...SLOW, ...WHO_PAYS, ...NODE_SQLITE, ...BROWSER, ...SITE, '**/node_modules/**'],
          testTimeout: FAST_TIMEOUT,
          hookTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'slow',
          setupFiles,
          retry,
          include: SLICE,
          globalSetup: ['test/build-dist.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // After the fast ones, so that what measures time in real processes does not share the processor with them.
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'processes',
          setupFiles,
          retry,
          include: SLOW,
          exclude: [...SLICE, ...WAITING, '**/node_modules/**'],
          globalSetup: ['test/build-dist.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // After the fast ones, so that what measures time in real processes does not share the processor with them.
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'waiting',
          setupFiles,
          retry,
          include: WAITING,
          globalSetup: ['test/build-dist.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'browser',
          setupFiles,
          retry,
          include: BROWSER,
          globalSetup: ['test/build-dist.ts'],
          expect: { poll: { timeout: 10_000 } },
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'site',
          setupFiles,
          retry,
          include: SITE,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'versions',
          setupFiles,
          retry,
          // They are the same tests again, so they share what they import: that takes a third less time.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...SLOW, ...WHO_PAYS, ...ONE_VERSION, ...BROWSER, ...SITE, '**/node_modules/**'],
          globalSetup: ['test/build-dist.ts'],
          testTimeout: 20_000,
          hookTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'who-pays',
          setupFiles,
          retry,
          include: WHO_PAYS,
          globalSetup: ['test/build-dist.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
