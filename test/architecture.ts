import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseAst } from 'vitest/node';

/*
 * Imports run one way, from the bottom up:
 *
 *   base (files beside index.ts) ◄ failure ◄ source ◄ store ◄ sqlite, postgres
 *                                                        ◄ telemetry ◄ worker ◄ queue
 *                                                        ◄ views (types of queue too) ◄ queue
 *   handlers: base and failure only
 *   documents: queue and views          dashboard: documents
 *   config, simulator, testing: on top of all of it          front (index.ts)
 *   cli: on top of those
 *   page (top-level `dashboard`): base, failure, source and views, for it runs in a browser
 */
const LAYERS = {
  base: {
    knows: ['base'],
    because: 'the base knows only itself: everything else stands on it',
  },
  failure: {
    knows: ['base', 'failure'],
    because: 'failure knows only the base: it decides over plain values',
  },
  source: {
    knows: ['base', 'failure', 'source'],
    because: 'source knows only the base and failure: it decides over plain values',
  },
  schedule: {
    knows: ['base', 'schedule'],
    types: ['store'],
    because:
      'schedule knows only the base, and of the store seam only types (`import type`): it counts times over plain values',
  },
  store: {
    knows: ['base', 'store'],
    types: ['failure', 'source'],
    because:
      'the store seam knows the base, and of failure and source only types (`import type`): it names facts and weighs nothing',
  },
  sqlite: {
    knows: ['base', 'store', 'sqlite'],
    types: ['failure', 'source'],
    because:
      'a store knows the base, the seam, and of failure and source only types (`import type`): it keeps facts and weighs nothing',
  },
  postgres: {
    knows: ['base', 'store', 'postgres'],
    types: ['failure', 'source'],
    because:
      'a store knows the base, the seam, and of failure and source only types (`import type`): it keeps facts and weighs nothing',
  },
  telemetry: {
    knows: ['base', 'telemetry'],
    types: ['failure', 'source', 'store'],
    because:
      'telemetry knows the base, and of failure, source and the store seam only types (`import type`): it tells what happened and changes nothing',
  },
  worker: {
    knows: ['base', 'failure', 'source', 'schedule', 'store', 'telemetry', 'worker'],
    because:
      'worker knows the base, failure, source, schedule, the store seam and telemetry: it works on any store, for whoever fills it',
  },
  views: {
    knows: ['base', 'failure', 'source', 'views'],
    types: ['store', 'queue'],
    because:
      'views know the base, failure and source, and of the store seam and queue only types (`import type`): they make text and JSON from values',
  },
  queue: {
    knows: ['base', 'failure', 'source', 'schedule', 'store', 'telemetry', 'worker', 'views', 'queue'],
    because:
      'queue knows the base, failure, source, schedule, the store seam, telemetry, worker and views: it works on any store',
  },
  handlers: {
    knows: ['base', 'failure', 'handlers'],
    because: 'handlers know only the base and failure: they are what a user could have written',
  },
  documents: {
    knows: ['base', 'failure', 'source', 'worker', 'views', 'queue', 'documents'],
    types: ['store'],
    because:
      'documents know the base, failure, source, worker, views and queue, and of the store seam only types (`import type`): they ask a store through queue',
  },
  dashboard: {
    knows: ['base', 'failure', 'views', 'queue', 'documents', 'config', 'dashboard'],
    types: ['store', 'worker'],
    because:
      'dashboard knows the base, failure, views, queue, documents and config, and of the store seam and worker only types (`import type`): it answers with documents',
  },
  config: { knowsNot: ['cli'], because: 'only cli knows cli: it stands on top' },
  simulator: { knowsNot: ['cli'], because: 'only cli knows cli: it stands on top' },
  testing: { knowsNot: ['cli'], because: 'only cli knows cli: it stands on top' },
  front: {
    knowsNot: ['cli', 'testing', 'sqlite', 'postgres'],
    because: 'the front door knows neither cli nor testing nor a database: who imports holdfast need not load them',
  },
  cli: { knowsNot: [], because: '' },
} as const satisfies Record<string, Law>;

type Law = { readonly because: string } & (
  | { readonly knows: readonly string[]; readonly types?: readonly string[] }
  | { readonly knowsNot: readonly string[] }
);
type Layer = keyof typeof LAYERS;

const FRONT = 'src/index.ts';
/** The programs: of the command line, and of the child processes of workers. */
const ENTRY_OF_CHILDREN = 'src/worker/child/main.ts';
const ENTRIES = ['src/cli/main.ts', ENTRY_OF_CHILDREN];

/** What the command line, the documents and the dashboard may import of the engine. Everything else stands behind these files. */
const ENTRIES_FOR_CLI = [
  ...[
    'administration',
    'enqueue',
    'failures',
    'holdfast',
    'import',
    'inspect',
    'open',
    'operate',
    'operations',
    'policy-cache',
    'redrives',
    'schedules',
    'sources',
    'stats',
    'task-view',
  ].map((name) => `src/queue/${name}.ts`),
  ...[
    'clock-trouble',
    'configuration',
    'define-task',
    'policy-differences',
    'retention-options',
    'strays',
    'worker',
  ].map((name) => `src/worker/${name}.ts`),
  'src/store/sqlite/index.ts',
  // A backup is a file before it is a store.
  'src/store/sqlite/backup.ts',
  // An old queue may be a file of SQLite, which is no store.
  'src/store/sqlite/library.ts',
  'src/store/postgres/index.ts',
];

/** Files of the store seam, of which they know types. */
const SEAM = ['src/store/store.ts', 'src/store/changes.ts', 'src/store/insight.ts', 'src/store/redrives.ts'];

/** Values of time, chance and the world outside, which the pure layers are given as arguments. */
const IMPURE = [
  'Date.now',
  'new Date',
  'Math.random',
  'performance',
  'process',
  'console',
  'setTimeout',
  'setInterval',
];

/** Reads only which script this process runs. */
const OWN_PROGRAM = 'src/program.ts';

/** What only the command line touches. */
const TERMINAL = [
  'console',
  ...['stdin', 'stdout', 'stderr', 'env', 'argv', 'exit', 'exitCode'].map((name) => `process.${name}`),
];

/** How a store orders its claims is its own matter. */
const CLAIM_ORDER = /\b(lanes?|class id|rank)\b/i;

/** Modules whose functions open something. */
const OPENERS =
  /^(node:)?(fs|fs\/promises|child_process|worker_threads|net|tls|http|https|dgram)$|^(better-sqlite3|pg)$/;

export interface Module {
  readonly file: string;
  readonly text: string;
  readonly body: readonly Node[];
  readonly imports: readonly Import[];
}

interface Import {
  /** A path such as `src/task.ts`, or the name of a package. */
  readonly target: string;
  readonly outside: boolean;
  readonly typeOnly: boolean;
  readonly names: readonly string[];
}

export function wrongImports({ file, imports }: Module): string[] {
  const layer = layerOf(file);
  if (layer === undefined) return [`${file} stands in no layer of test/architecture.ts: give it a place there.`];

  return imports.flatMap((each) => {
    const objection = each.outside ? objectionToPackage(layer, each) : objectionToFile(layer, each);
    return objection === undefined ? [] : [`${file} imports ${objection}.`];
  });
}

function objectionToFile(layer: Layer, { target, typeOnly }: Import): string | undefined {
  if (!target.startsWith('src/')) return `${target}, but what lies outside src is not shipped`;
  const other = layerOf(target);
  if (other === undefined) return `${target}, which stands in no layer of test/architecture.ts`;

  const law: Law = LAYERS[layer];
  const allowed =
    'knowsNot' in law
      ? !law.knowsNot.includes(other)
      : law.knows.includes(other) || (typeOnly && law.types?.includes(other));
  return allowed ? undefined : `${target}, but ${law.because}`;
}

function objectionToPackage(layer: Layer, { target, typeOnly, names }: Import): string | undefined {
  if (/^holdfast(\/|$)/.test(target))
    return `${target}, but inside src files are named by path, which shows their layer`;
  const { because } = LAYERS[layer];
  if (layer === 'base') return typeOnly ? undefined : `${target}, but ${because}`;
  if (layer !== 'failure' && layer !== 'source') return undefined;
  // Expressions in linear time: a function over text like any other.
  if (target === 're2js' && layer === 'failure') return undefined;
  if (target !== 'node:crypto') return `${target}, but ${because}`;
  const others = names.filter((name) => name !== 'createHash');
  return others.length === 0 ? undefined : `${others.join(', ')} of node:crypto, but ${because}`;
}

/** Of the page of the dashboard, which a browser runs: nothing there may need Node, a store or a worker. */
export function wrongImportsOfPage({ file, imports }: Module): string[] {
  return imports.flatMap(({ target, outside, typeOnly }) => {
    if (outside)
      return PAGE_PACKAGES.test(target) ? [] : [`${file} imports ${target}, but the page knows only preact and d3.`];
    if (target.startsWith('dashboard/')) return [];
    const layer = target.startsWith('src/') ? layerOf(target) : undefined;
    const layers: readonly (Layer | undefined)[] = typeOnly ? PAGE_KNOWS_TYPES : PAGE_KNOWS;
    if (layer && layers.includes(layer)) return [];
    return [
      `${file} imports ${target}, but the page knows ${PAGE_KNOWS.join(', ')}, and types of ${PAGE_KNOWS_TYPES.join(', ')}.`,
    ];
  });
}

const PAGE_KNOWS: readonly Layer[] = ['base', 'failure', 'source', 'schedule', 'views'];
const PAGE_KNOWS_TYPES: readonly Layer[] = [...PAGE_KNOWS, 'store', 'queue'];
const PAGE_PACKAGES = /^(preact|@preact\/signals|d3-scale|d3-shape)(\/|$)/;

/** Every circle of imports, types included, as a sentence: a reader could start at none of its files. */
export function circlesOf(modules: readonly Pick<Module, 'file' | 'imports'>[]): string[] {
  const targets = new Map(modules.map(({ file, imports }) => [file, imports.map(({ target }) => target)]));
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) {
      circles.push(
        `${[...path.slice(at), file].join(' imports ')}: move what both need to a file that neither imports from.`,
      );
      return;
    }
    if (done.has(file)) return;
    for (const target of new Set(targets.get(file) ?? [])) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of targets.keys()) visit(file, []);
  return circles;
}

export function impurities(module: Module): string[] {
  const layer = layerOf(module.file);
  if (layer !== 'failure' && layer !== 'source') return [];
  return usesOf(module, IMPURE).map(
    (use) => `${module.file} uses ${use}, but ${layer} decides over plain values: time and chance are arguments.`,
  );
}

export function terminalUses(module: Module): string[] {
  if (module.file.startsWith('src/cli/') || module.file === ENTRY_OF_CHILDREN || module.file === OWN_PROGRAM) return [];
  return usesOf(module, TERMINAL).map(
    (use) => `${module.file} uses ${use}, but only src/cli prints, reads the environment or exits.`,
  );
}

/** Imports of the command line, the documents and the dashboard past the listed files, and uses of the store behind a `holdfast`. */
export function reachesPastFacade({ file, body, imports }: Module): string[] {
  const layer = layerOf(file);
  if (layer !== 'cli' && layer !== 'documents' && layer !== 'dashboard') return [];
  const imported = imports
    .filter(({ target }) => /^src\/(queue|worker|store)\//.test(target) && !ENTRIES_FOR_CLI.includes(target))
    .filter(({ target, typeOnly }) => !(typeOnly && SEAM.includes(target)))
    .map(({ target }) => `imports ${target}`);
  const used = nodesIn(body).some((node) => dotted(node) === 'holdfast.store' || memberNames(node).includes('upkeep'));
  return [...imported, ...(used ? ['uses the store of a Holdfast'] : [])].map(
    (what) => `${file} ${what}, but ${layer} asks a Holdfast or its administration: see ENTRIES_FOR_CLI.`,
  );
}

/** `upkeep` of `store.upkeep` and of `{ upkeep }`. */
function memberNames(node: Node): string[] {
  if (node.type === 'MemberExpression') return [nameOf(node.property as Node)];
  if (node.type === 'ObjectPattern') return (node.properties as Node[]).map(({ key }) => nameOf(key as Node));
  return [];
}

export function leakedClaimOrder({ file, body }: Module): string[] {
  if (/^src\/store\/(sqlite|postgres)\//.test(file)) return [];
  const names = nodesIn(body).flatMap((node) => wordsOf(node).filter((word) => CLAIM_ORDER.test(apart(word))));
  return [...new Set(names)].map(
    (name) => `${file} names ${name}, but only src/store/sqlite and src/store/postgres know how claims are ordered.`,
  );
}

/** Names in code, and the words of its strings: SQL is there. Comments are for people. */
function wordsOf(node: Node): string[] {
  if (node.type === 'Identifier' || node.type === 'PrivateIdentifier') return [String(node.name)];
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value.match(/\w+/g) ?? [];
  if (node.type === 'TemplateElement') return (node.value as { raw: string }).raw.match(/\w+/g) ?? [];
  return [];
}

/** `nextLaneId` and `next_lane_id` as `next lane id`. */
function apart(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ');
}

export function effectsOfImporting({ file, text, body, imports }: Module): string[] {
  if (ENTRIES.includes(file)) return [];
  const openers = new Set(imports.filter(({ target }) => OPENERS.test(target)).flatMap(({ names }) => names));

  return body
    .flatMap((statement) => {
      if (!DECLARATION.test(statement.type) && !statement.directive) return [statement];
      return nodesIn(statement, runsLater).filter(
        (node) =>
          node.type === 'AwaitExpression' ||
          ((node.type === 'CallExpression' || node.type === 'NewExpression') &&
            openers.has(rootOf(node.callee as Node))),
      );
    })
    .map(({ start, end }) => {
      const [firstLine] = text.slice(start, end).split('\n');
      return `${file} runs \`${firstLine}\` when it is imported, but importing opens and does nothing: move it into a function.`;
    });
}

const DECLARATION = /^(TS.*|Import.*|Export.*|(Variable|Function|Class)Declaration)$/;

function runsLater(node: Node): boolean {
  return /Function/.test(node.type) || (node.type === 'PropertyDefinition' && !node.static);
}

/** `fs` of `fs.promises.open`. */
function rootOf(node: Node): string {
  return node.type === 'MemberExpression' ? rootOf(node.object as Node) : String(node.name);
}

function usesOf({ body, imports }: Module, forbidden: readonly string[]): string[] {
  const nodes = nodesIn(body);
  const members = new Set(nodes.map(memberName));
  const uses = nodes.filter((node) => !members.has(node)).flatMap(useOf);
  const imported = imports.filter(({ target }) => /^(node:)?process$/.test(target)).flatMap(({ names }) => names);
  const all = new Set([...uses, ...imported.map((name) => `process.${name}`)]);
  return forbidden.filter((name) => all.has(name));
}

/** `process.env` for that, for `globalThis.process['env']`, and for `const { env } = process`. */
function useOf(node: Node): string[] {
  switch (node.type) {
    case 'Identifier':
    case 'MemberExpression':
      return [dotted(node)];
    case 'NewExpression':
      return [`new ${dotted(node.callee as Node)}`];
    case 'VariableDeclarator': {
      const { id, init } = node as { id?: Node; init?: Node };
      if (id?.type !== 'ObjectPattern' || !init) return [];
      return (id.properties as Node[]).map(({ key }) => `${dotted(init)}.${nameOf(key as Node)}`);
    }
    default:
      return [];
  }
}

function dotted(node: Node): string {
  if (node.type !== 'MemberExpression') return nameOf(node);
  return `${dotted(node.object as Node)}.${nameOf(node.property as Node)}`.replace(/^globalThis\./, '');
}

function nameOf(node: Node | undefined): string {
  return String(node?.name ?? node?.value);
}

/** The node that only names a member of something, as `process` does in `{ process: 1 }` and `facts.process`. */
function memberName(node: Node): unknown {
  if (node.computed) return undefined;
  if (node.type === 'MemberExpression') return node.property;
  if (node.type === 'TSQualifiedName') return node.right;
  if (node.type === 'ImportSpecifier') return node.imported;
  return node.key;
}

function layerOf(file: string): Layer | undefined {
  if (file === FRONT) return 'front';
  const [, folder, inner, deeper] = file.split('/');
  if (inner === undefined) return 'base';
  if (folder === 'store' && deeper !== undefined && (inner === 'sqlite' || inner === 'postgres')) return inner;
  if (folder === 'base' || folder === 'front') return undefined;
  return Object.keys(LAYERS).find((layer): layer is Layer => layer === folder);
}

export function readSource(folder = 'src'): [file: string, text: string][] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
    .sort()
    .map((file) => [file, readFileSync(file, 'utf8')]);
}

export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export function readModule(file: string, text: string): Module {
  const body = parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }, file).body as unknown as readonly Node[];
  return { file, text, body, imports: nodesIn(body).flatMap((node) => importOf(file, node)) };
}

function importOf(file: string, node: Node): Import[] {
  const source = node.source as { readonly value: unknown } | null | undefined;
  if (typeof source?.value !== 'string') return [];
  const outside = !source.value.startsWith('.');
  const specifiers = (node.specifiers as Node[] | undefined) ?? [];
  return [
    {
      target: outside ? source.value : posix.join(posix.dirname(file), source.value),
      outside,
      typeOnly: node.type === 'TSImportType' || (node.importKind ?? node.exportKind) === 'type',
      names: specifiers.map(({ type, imported, local }) =>
        type === 'ImportNamespaceSpecifier' ? '*' : nameOf((imported ?? local) as Node),
      ),
    },
  ];
}

/** Every node of a tree, itself first, without those below a node that `skip` names. */
export function nodesIn(tree: unknown, skip: (node: Node) => boolean = () => false): Node[] {
  if (Array.isArray(tree)) return tree.flatMap((each) => nodesIn(each, skip));
  if (!isNode(tree)) return [];
  return skip(tree) ? [tree] : [tree, ...Object.values(tree).flatMap((each) => nodesIn(each, skip))];
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}
