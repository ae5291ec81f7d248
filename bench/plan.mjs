// What is measured, and by which programs.

/** The scenarios in the order in which they are measured. `floor` is the floor that they need; heavy ones take minutes. */
export const PLAN = [
  { name: 'enqueue one by one', floor: 'single', plainjob: true },
  { name: 'enqueue concurrent', floor: 'batch' },
  { name: 'enqueue bulk', floor: 'batch', plainjob: true },
  { name: 'drain 1', floor: 'batch', plainjob: true },
  { name: 'drain 10', floor: 'batch', plainjob: true },
  { name: 'drain 100', floor: 'batch', plainjob: true },
  { name: 'fail', floor: 'batch' },
  { name: 'idle in process' },
  { name: 'idle across processes' },
  { name: 'processes', floor: 'batch' },
  { name: 'depth', heavy: true },
  { name: 'sources', floor: 'batch', heavy: true },
  { name: 'memory', heavy: true },
];

/** plainjob commits for each task, several times. */
const MOST_FOR_PLAINJOB = 20_000;

/** The floor commits for each task in its batch of one. */
const MOST_ONE_BY_ONE = 5_000;

/** The programs of one round. Each group of scenarios has its floor, Holdfast and plainjob side by side. */
export function programsOf(wanted, options) {
  const groups = new Map();
  for (const scenario of wanted) {
    const [group] = scenario.name.split(' ');
    groups.set(group, [...(groups.get(group) ?? []), scenario]);
  }
  return [...groups.values()].flatMap((scenarios) => programsOfGroup(scenarios, options));
}

function programsOfGroup(scenarios, { dir, n, size, round }) {
  const floors = new Set(scenarios.map(({ floor }) => floor).filter(Boolean));
  return [
    ...[...floors].map((floor) => FLOORS[floor]({ dir, n })),
    ...scenarios.map(({ name }) => program('Holdfast', 'holdfast.mjs', name, { dir, n, size, round })),
    ...scenarios
      .filter(({ plainjob }) => plainjob)
      .map(({ name }) => program('plainjob', 'plainjob.mjs', name, { dir, n: Math.min(n, MOST_FOR_PLAINJOB) })),
  ];
}

function program(system, file, name, options) {
  return { what: `${system}, ${name}`, file, args: [name, JSON.stringify(options)] };
}

const FLOORS = {
  batch: ({ dir, n }) => ({
    what: 'the floor',
    file: 'floor.mjs',
    args: ['sqlite', '--dir', dir, '--n', String(n)],
  }),
  /** A commit for each task is what enqueuing one by one is measured by; of the rest it would say nothing. */
  single: ({ dir, n }) => ({
    what: 'the floor in batches of one',
    file: 'floor.mjs',
    args: ['sqlite', '--dir', dir, '--batch', '1', '--n', String(Math.min(n, MOST_ONE_BY_ONE))],
    adapt: (result) =>
      result.scenario === 'enqueue' ? { ...result, scenario: 'enqueue one by one', concurrency: 1 } : undefined,
  }),
};
