import { describe, expect, test } from 'vitest';
import {
  circlesOf,
  effectsOfImporting,
  impurities,
  leakedClaimOrder,
  type Module,
  reachesPastFacade,
  readModule,
  readSource,
  terminalUses,
  wrongImports,
  wrongImportsOfPage,
} from './architecture.ts';

describe('the source', () => {
  const modules = readSource().map(([file, text]) => readModule(file, text));

  test('is read at all', () => {
    expect(modules.map((module) => module.file)).toContain('src/task.ts');
  });

  test('imports one way', () => {
    expect(modules.flatMap(wrongImports)).toEqual([]);
  });

  test('has no circle of imports', () => {
    expect(circlesOf(modules)).toEqual([]);
  });

  test('reaches no store from cli but through the façade', () => {
    expect(modules.flatMap(reachesPastFacade)).toEqual([]);
  });

  test('decides failures without a clock, dice, log or process', () => {
    expect(modules.flatMap(impurities)).toEqual([]);
  });

  test('names the order of claims only inside a store', () => {
    expect(modules.flatMap(leakedClaimOrder)).toEqual([]);
  });

  test('prints, reads the environment and exits only in cli', () => {
    expect(modules.flatMap(terminalUses)).toEqual([]);
  });

  test('opens nothing when it is imported', () => {
    expect(modules.flatMap(effectsOfImporting)).toEqual([]);
  });
});

/** A module, and a part of each sentence that the check must say about it. */
type Example = readonly [file: string, text: string, breaches: readonly string[]];

describe('the page of the dashboard', () => {
  const modules = readSource('dashboard')
    .filter(([file]) => file !== 'dashboard/vite.config.ts')
    .map(([file, text]) => readModule(file, text));

  test('needs nothing that a browser does not have', () => {
    expect(modules.map(({ file }) => file)).toContain('dashboard/main.tsx');
    expect(modules.flatMap(wrongImportsOfPage)).toEqual([]);
  });

  test('has no circle of imports', () => {
    expect(circlesOf(modules)).toEqual([]);
  });
});

describe('the checks', () => {
  const imports: readonly Example[] = [
    [
      'src/failure/decide.ts',
      `import { claim } from '../store/store.ts';`,
      [
        'src/failure/decide.ts imports src/store/store.ts, but failure knows only the base: it decides over plain values.',
      ],
    ],
    [
      'src/failure/decide.ts',
      `export type * from '../store/store.ts';`,
      ['imports src/store/store.ts, but failure knows only the base'],
    ],
    [
      'src/failure/decide.ts',
      `type Row = import('../store/store.ts').Row;`,
      ['imports src/store/store.ts, but failure knows only the base'],
    ],
    [
      'src/failure/decide.ts',
      `const store = () => import('../store/store.ts');`,
      ['imports src/store/store.ts, but failure'],
    ],
    [
      'src/failure/decide.ts',
      `import { gate } from '../source/gate.ts';`,
      ['imports src/source/gate.ts, but failure knows only the base'],
    ],
    ['src/failure/classify/fs.ts', `import { Failure } from '../outcome.ts'; import { x } from '../../task.ts';`, []],
    ['src/failure/digest.ts', `import { createHash } from 'node:crypto';`, []],
    [
      'src/failure/digest.ts',
      `import { createHash, randomInt } from 'node:crypto';`,
      ['imports randomInt of node:crypto, but failure'],
    ],
    ['src/failure/digest.ts', `import * as crypto from 'node:crypto';`, ['imports * of node:crypto, but failure']],
    [
      'src/failure/digest.ts',
      `import { readFileSync } from 'node:fs';`,
      ['imports node:fs, but failure knows only the base'],
    ],
    ['src/source/gate.ts', `import { decide } from '../failure/decide.ts';`, []],
    [
      'src/source/gate.ts',
      `import { claim } from '../store/store.ts';`,
      ['imports src/store/store.ts, but source knows only'],
    ],
    [
      'src/task.ts',
      `import type { Outcome } from './failure/outcome.ts';`,
      ['imports src/failure/outcome.ts, but the base knows only itself'],
    ],
    [
      'src/task.ts',
      `import type { Policy } from './failure/policy.ts';`,
      ['imports src/failure/policy.ts, but the base knows only itself'],
    ],
    ['src/task.ts', `import type { StandardSchemaV1 } from '@standard-schema/spec';`, []],
    ['src/task.ts', `import { z } from 'zod';`, ['imports zod, but the base knows only itself']],
    [
      'src/store/store.ts',
      `import type { Decision } from '../failure/decide.ts'; import type { Gate } from '../source/gate.ts';`,
      [],
    ],
    [
      'src/store/store.ts',
      `import { decide } from '../failure/decide.ts';`,
      ['imports src/failure/decide.ts, but the store seam knows the base, and'],
    ],
    [
      'src/store/store.ts',
      `import { sqlite } from './sqlite/index.ts';`,
      ['imports src/store/sqlite/index.ts, but the store seam'],
    ],
    ['src/store/sqlite/claim.ts', `import Database from 'better-sqlite3'; import { Claim } from '../store.ts';`, []],
    [
      'src/store/sqlite/claim.ts',
      `import { decide } from '../../failure/decide.ts';`,
      ['imports src/failure/decide.ts, but a store knows the base'],
    ],
    [
      'src/store/sqlite/claim.ts',
      `import { type Why } from '../../failure/decide.ts';`,
      ['but a store knows the base, the seam, and of failure'],
    ],
    [
      'src/store/sqlite/claim.ts',
      `import type { Pool } from '../postgres/pool.ts';`,
      ['imports src/store/postgres/pool.ts, but a store'],
    ],
    [
      'src/store/postgres/claim.ts',
      `import { wal } from '../sqlite/wal.ts';`,
      ['imports src/store/sqlite/wal.ts, but a store'],
    ],
    [
      'src/store/postgres/claim.ts',
      `import type { Worker } from '../../worker/worker.ts';`,
      ['imports src/worker/worker.ts, but a store'],
    ],
    [
      'src/queue/enqueue.ts',
      `import type { Lease } from '../worker/lease.ts'; import type { Store } from '../store/store.ts';`,
      [],
    ],
    ['src/queue/enqueue.ts', `export { run } from '../worker/run.ts';`, []],
    [
      'src/queue/enqueue.ts',
      `import { move } from '../handlers/move.ts';`,
      ['imports src/handlers/move.ts, but queue knows the base, failure'],
    ],
    [
      'src/queue/enqueue.ts',
      `import type { Row } from '../store/sqlite/row.ts';`,
      ['imports src/store/sqlite/row.ts, but queue'],
    ],
    [
      'src/worker/run.ts',
      `export * from '../queue/enqueue.ts';`,
      ['imports src/queue/enqueue.ts, but worker knows the base, failure'],
    ],
    ['src/worker/run.ts', `import '../store/postgres/index.ts';`, ['imports src/store/postgres/index.ts, but worker']],
    [
      'src/handlers/mv.ts',
      `import { RetryLater } from '../failure/signals.ts'; import { rename } from 'node:fs/promises';`,
      [],
    ],
    [
      'src/handlers/mv.ts',
      `import type { Task } from '../queue/inspect.ts';`,
      ['imports src/queue/inspect.ts, but handlers know only'],
    ],
    ['src/views/task-text.ts', `import type { Task } from '../queue/task-view.ts';`, []],
    [
      'src/views/task-text.ts',
      `import { taskFrom } from '../queue/task-view.ts';`,
      ['imports src/queue/task-view.ts, but views know the base'],
    ],
    ['src/testing/kit.ts', `import { sqlite } from '../store/sqlite/index.ts';`, []],
    [
      'src/telemetry/spans.ts',
      `import { main } from '../cli/main.ts';`,
      ['imports src/cli/main.ts, but telemetry knows the base'],
    ],
    ['src/index.ts', `export { work } from './worker/work.ts';`, []],
    [
      'src/index.ts',
      `export { sqlite } from './store/sqlite/index.ts';`,
      ['imports src/store/sqlite/index.ts, but the front door'],
    ],
    ['src/index.ts', `export { kit } from './testing/index.ts';`, ['imports src/testing/index.ts, but the front door']],
    ['src/index.ts', `export { main } from './cli/main.ts';`, ['imports src/cli/main.ts, but the front door']],
    ['src/cli/main.ts', `import { x } from '../index.ts'; import { y } from '../store/sqlite/index.ts';`, []],
    [
      'src/cli/main.ts',
      `import { version } from '../../package.json';`,
      ['imports package.json, but what lies outside src is not shipped'],
    ],
    [
      'src/cli/main.ts',
      `import { sqlite } from 'holdfast/sqlite';`,
      ['imports holdfast/sqlite, but inside src files are named by path'],
    ],
    ['src/cli/main.ts', `import { x } from '../utils/x.ts';`, ['imports src/utils/x.ts, which stands in no layer']],
    ['src/utils/x.ts', '', ['src/utils/x.ts stands in no layer of test/architecture.ts: give it a place there.']],
    [
      'src/queue/a.ts',
      `// import { x } from '../cli/main.ts';\nconst s = "import x from '../cli/main.ts'";\n/* import '../cli/main.ts' */`,
      [],
    ],
  ];

  test('see imports that go the wrong way, and no others', () => {
    expectBreaches(wrongImports, imports);
  });

  test('see what a browser does not have', () => {
    expectBreaches(wrongImportsOfPage, [
      ['dashboard/pages/a.tsx', `import { render } from 'preact'; import { ago } from '../../src/views/times.ts';`, []],
      ['dashboard/pages/a.tsx', `import type { Task } from '../../src/queue/task-view.ts'; import '../a.css';`, []],
      ['dashboard/a.ts', `import { join } from 'node:path';`, ['imports node:path, but the page knows only preact']],
      [
        'dashboard/a.ts',
        `import { Task } from '../src/queue/task-view.ts';`,
        ['imports src/queue/task-view.ts, but the'],
      ],
      ['dashboard/a.ts', `import { x } from '../test/x.ts';`, ['imports test/x.ts, but the page knows']],
    ]);
  });

  test('see a circle of imports, of types too', () => {
    const circle = [
      readModule('src/failure/a.ts', `import { b } from './b.ts'; import { d } from './d.ts';`),
      readModule('src/failure/b.ts', `import { c } from './c.ts';`),
      readModule('src/failure/c.ts', `import type { A } from './a.ts'; import { d } from './d.ts';`),
      readModule('src/failure/d.ts', `import 'node:fs';`),
    ];
    expect(circlesOf(circle)).toEqual([
      'src/failure/a.ts imports src/failure/b.ts imports src/failure/c.ts imports src/failure/a.ts: move what both need to a file that neither imports from.',
    ]);
    expect(circlesOf(circle.slice(1))).toEqual([]);
  });

  const BEHIND = 'but cli asks a Holdfast or its administration';
  const past: readonly Example[] = [
    [
      'src/cli/commands/list.ts',
      `import { removeOld } from '../../queue/pruning.ts';`,
      [`src/cli/commands/list.ts imports src/queue/pruning.ts, ${BEHIND}`],
    ],
    [
      'src/cli/a.ts',
      `import { sqlite } from '../store/sqlite/claim.ts';`,
      [`imports src/store/sqlite/claim.ts, ${BEHIND}`],
    ],
    ['src/cli/a.ts', `import { parts } from '../store/store.ts';`, [`imports src/store/store.ts, ${BEHIND}`]],
    ['src/cli/a.ts', `import type { Counts } from '../store/store.ts'; import { x } from '../queue/open.ts';`, []],
    ['src/cli/a.ts', 'holdfast.store.records.find(1);', [`uses the store of a Holdfast, ${BEHIND}`]],
    ['src/cli/a.ts', 'const f = ({ store: { upkeep } }) => upkeep.now();', [`uses the store of a Holdfast, ${BEHIND}`]],
    ['src/cli/a.ts', 'const { store } = location; holdfast.now();', []],
    ['src/testing/a.ts', 'holdfast.store.upkeep.now();', []],
  ];

  test('see what cli takes from behind the façade', () => {
    expectBreaches(reachesPastFacade, past);
  });

  const PURE = 'but failure decides over plain values: time and chance are arguments';
  const impure: readonly Example[] = [
    ['src/failure/decide.ts', 'const now = () => Date.now();', [`src/failure/decide.ts uses Date.now, ${PURE}.`]],
    ['src/failure/decide.ts', 'const now = () => globalThis.Date.now();', [`uses Date.now, ${PURE}`]],
    ['src/failure/decide.ts', 'const at = () => new Date(0);', [`uses new Date, ${PURE}`]],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a module
    ['src/failure/backoff.ts', 'const roll = () => `${Math.random()}`;', [`uses Math.random, ${PURE}`]],
    ['src/failure/backoff.ts', 'const at = () => performance.now();', [`uses performance, ${PURE}`]],
    ['src/failure/backoff.ts', 'const { pid } = process;', [`uses process, ${PURE}`]],
    ['src/failure/backoff.ts', 'const f = () => console.log(1);', [`uses console, ${PURE}`]],
    [
      'src/source/pace.ts',
      'const f = () => setTimeout(f, 1);',
      ['uses setTimeout, but source decides over plain values'],
    ],
    ['src/failure/backoff.ts', 'const at = Date.parse("2026"); const x = { process: 1 }; x.process;', []],
    ['src/failure/backoff.ts', '// Date.now()\nconst s = "Math.random()";', []],
    ['src/worker/run.ts', 'const now = () => Date.now();', []],
  ];

  test('see a decision that reads time, chance or the world', () => {
    expectBreaches(impurities, impure);
  });

  const OWN = 'but only src/store/sqlite and src/store/postgres know how claims are ordered';
  const claimOrder: readonly Example[] = [
    ['src/worker/run.ts', 'const lane = 1;', [`src/worker/run.ts names lane, ${OWN}.`]],
    ['src/worker/run.ts', 'const a = { laneOf: 1 }; a.LANES;', [`names laneOf, ${OWN}`, `names LANES, ${OWN}`]],
    [
      'src/store/store.ts',
      'interface Row { classId: number; next_rank: number }',
      [`names classId, ${OWN}`, `names next_rank, ${OWN}`],
    ],
    ['src/queue/sql.ts', 'const q = "select class_id from task";', [`names class_id, ${OWN}`]],
    ['src/queue/sql.ts', 'const q = `select rank from task`;', [`names rank, ${OWN}`]],
    ['src/store/sqlite/claim.ts', 'const lane = "rank"; const classId = 1;', []],
    ['src/worker/run.ts', 'class Planes { frank = className; } // lane, rank', []],
  ];

  test('see the order of claims named outside a store', () => {
    expectBreaches(leakedClaimOrder, claimOrder);
  });

  const ONLY_CLI = 'but only src/cli prints, reads the environment or exits';
  const terminal: readonly Example[] = [
    ['src/worker/run.ts', 'const f = () => console.warn(1);', [`src/worker/run.ts uses console, ${ONLY_CLI}.`]],
    ['src/worker/run.ts', 'const f = () => process.stdout.write("");', [`uses process.stdout, ${ONLY_CLI}`]],
    ['src/worker/run.ts', 'const f = () => globalThis.process.stderr;', [`uses process.stderr, ${ONLY_CLI}`]],
    ['src/testing/kit.ts', 'const { env } = process;', [`uses process.env, ${ONLY_CLI}`]],
    ['src/index.ts', 'import { argv } from "node:process"; argv;', [`uses process.argv, ${ONLY_CLI}`]],
    ['src/queue/a.ts', 'const f = () => process.exit(1);', [`uses process.exit, ${ONLY_CLI}`]],
    ['src/queue/a.ts', 'const f = () => process["env"];', [`uses process.env, ${ONLY_CLI}`]],
    ['src/queue/a.ts', 'const pid = process.pid; const log = { console: 1 }; // process.env', []],
    ['src/cli/main.ts', 'const f = () => console.log(process.env);', []],
  ];

  test('see prints, environment and exits outside cli', () => {
    expectBreaches(terminalUses, terminal);
  });

  const OPENS = 'but importing opens and does nothing: move it into a function';
  const effects: readonly Example[] = [
    ['src/queue/a.ts', 'start();', [`src/queue/a.ts runs \`start();\` when it is imported, ${OPENS}.`]],
    ['src/queue/a.ts', 'if (x) {\n  start();\n}', [`runs \`if (x) {\` when it is imported, ${OPENS}`]],
    ['src/queue/a.ts', 'export const x = await load();', [`runs \`await load()\` when it is imported, ${OPENS}`]],
    [
      'src/queue/a.ts',
      'import { openSync } from "node:fs"; export const fd = openSync("x");',
      ['runs `openSync("x")` when'],
    ],
    [
      'src/queue/a.ts',
      'import fs from "node:fs"; const v = JSON.parse(fs.readFileSync("x"));',
      ['runs `fs.readFileSync("x")` when'],
    ],
    [
      'src/queue/a.ts',
      'import Database from "better-sqlite3"; class A { static db = new Database("x"); }',
      ['runs `new Database("x")` when'],
    ],
    [
      'src/queue/a.ts',
      'import { openSync } from "node:fs"; const f = () => openSync("x"); class A { fd = openSync("x"); }',
      [],
    ],
    [
      'src/queue/a.ts',
      '"use strict"; const x = Object.freeze({}); function f() { start(); } async function g() { await f(); }',
      [],
    ],
    ['src/cli/main.ts', 'await main();', []],
    ['src/cli/show.ts', 'show();', ['runs `show();` when it is imported']],
  ];

  test('see what a module does while it is imported', () => {
    expectBreaches(effectsOfImporting, effects);
  });

  function expectBreaches(check: (module: Module) => string[], examples: readonly Example[]): void {
    for (const [file, text, breaches] of examples) {
      const expected = breaches.map((part) => expect.stringContaining(part));
      expect.soft(check(readModule(file, text)), `${file}: ${text}`).toEqual(expected);
    }
  }
});
