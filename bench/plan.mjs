// What is measured, and by which programs.

/**
 * The scenarios in the order in which they are measured. `floor` is the floor that they need; `store` the only one of which they
 * say anything; heavy ones take minutes.
 */
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
  { name: 'trickle across processes', store: 'postgres' },
  { name: 'processes', floor: 'batch' },
  { name: 'depth', heavy: true },
  { name: 'held 1', heavy: true },
  { name: 'held 100', heavy: true },
  { name: 'sources', floor: 'batch', heavy: true },
  { name: 'memory', heavy: true },
];

const ENQUEUES = PLAN.map(({ name }) => name).filter((name) => name.startsWith('enqueue'));

/** Whom each store is compared with, in what they can do, and, where it is slow, with how many tasks at most. */
const OTHERS = {
  sqlite: [
    {
      system: 'plainjob',
      most: 20_000,
      scenarios: ['enqueue one by one', 'enqueue bulk', 'drain 1', 'drain 10', 'drain 100'],
    },
  ],
  postgres: [
    {
      system: 'graphile-worker',
      scenarios: [
        ...ENQUEUES,
        ...['drain 1', 'drain 10', 'drain 100'],
        ...['idle in process', 'idle across processes', 'trickle across processes'],
      ],
    },
    { system: 'pg-boss', most: 20_000, scenarios: [...ENQUEUES, 'drain 100', 'fail'] },
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
    ...names.map((name) => program('holdfast', name, options)),
    ...OTHERS[store].flatMap(({ system, most = options.n, scenarios }) =>
      names
        .filter((name) => scenarios.includes(name))
        .map((name) => program(system, name, { ...options, n: Math.min(options.n, most) })),
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
