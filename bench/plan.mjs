// What is measured, and by which programs.

/** The scenarios in the order in which they are measured. `floor` is the floor that they need; heavy ones take minutes, at this `size` or that of the run. */
export const PLAN = [
  { name: 'enqueue one by one', floor: 'single' },
  { name: 'enqueue concurrent', floor: 'batch' },
  { name: 'enqueue bulk', floor: 'batch' },
  { name: 'drain 1', floor: 'batch' },
  { name: 'drain 10', floor: 'batch' },
  { name: 'drain 100', floor: 'batch' },
  { name: 'fail', floor: 'batch' },
  { name: 'idle in process' },
  { name: 'idle across processes' },
  { name: 'trickle 10' },
  { name: 'trickle 30' },
  { name: 'trickle 100' },
  { name: 'processes', floor: 'batch' },
  { name: 'depth', heavy: true },
  { name: 'held 1', heavy: true },
  { name: 'held 100', heavy: true },
  { name: 'sources', floor: 'batch', heavy: true },
  { name: 'memory', heavy: true, size: 1_000_000 },
  { name: 'cli', heavy: true },
];

const ENQUEUES = PLAN.map(({ name }) => name).filter((name) => name.startsWith('enqueue'));
const DRAINS = ['drain 1', 'drain 10', 'drain 100'];
const STARTS = ['idle in process', 'idle across processes', 'trickle 10', 'trickle 30', 'trickle 100'];

/** Whom each store is compared with, in what they can do, and, where it is slow, with how many tasks at most. */
const OTHERS = {
  sqlite: [{ system: 'plainjob', most: 20_000, scenarios: ['enqueue one by one', 'enqueue bulk', ...DRAINS] }],
  postgres: [
    { system: 'graphile-worker', scenarios: [...ENQUEUES, ...DRAINS, 'fail', ...STARTS] },
    { system: 'graphile-worker', settings: { isDefault: true }, most: 10_000, scenarios: [...DRAINS, 'fail'] },
    { system: 'pg-boss', most: 20_000, scenarios: [...ENQUEUES, 'drain 100', 'fail'] },
    {
      system: 'bullmq',
      needs: 'redis-server',
      most: 20_000,
      scenarios: [...ENQUEUES, ...DRAINS, 'fail', ...STARTS],
    },
  ],
};

/** The stores that can be measured. */
export const STORES = Object.keys(OTHERS);

/** The floor commits for each task in its batch of one. */
const MOST_ONE_BY_ONE = 5_000;

/** The programs of one round. Each group of scenarios has its floor, Holdfast and the others side by side. */
export function programsOf(wanted, options) {
  const groups = new Map();
  for (const scenario of wanted) {
    const [group] = scenario.name.split(' ');
    groups.set(group, [...(groups.get(group) ?? []), scenario]);
  }
  return [...groups.values()].flatMap((scenarios) => programsOfGroup(scenarios, options));
}

function programsOfGroup(scenarios, { store, ...options }) {
  const names = scenarios.map(({ name }) => name);
  const floors = new Set(scenarios.map(({ floor }) => floor).filter(Boolean));
  return [
    ...[...floors].map((floor) => FLOORS[floor](store, options)),
    ...scenarios.map(({ name, size }) => program('holdfast', name, { ...options, size })),
    ...OTHERS[store].flatMap(({ system, settings, needs, most = options.n, scenarios: able }) =>
      names
        .filter((name) => able.includes(name))
        .map((name) => ({
          ...program(system, name, { ...options, ...settings, n: Math.min(options.n, most) }),
          needs,
        })),
    ),
  ];
}

function program(system, name, options) {
  return { what: `${system}, ${name}`, file: `${system}.mjs`, args: [name, JSON.stringify(options)] };
}

const FLOORS = {
  batch: (store, { n, ...options }) => ({
    what: 'the floor',
    file: 'floor.mjs',
    args: [store, ...placeOf(options), '--n', String(n)],
  }),
  /** A commit for each task is what enqueuing one by one is measured by; of the rest it would say nothing. */
  single: (store, { n, ...options }) => ({
    what: 'the floor in batches of one',
    file: 'floor.mjs',
    args: [store, ...placeOf(options), '--batch', '1', '--n', String(Math.min(n, MOST_ONE_BY_ONE))],
    adapt: (result) =>
      result.scenario === 'enqueue' ? { ...result, scenario: 'enqueue one by one', concurrency: 1 } : undefined,
  }),
};

function placeOf({ dir, url }) {
  return url ? ['--url', url] : ['--dir', dir];
}
