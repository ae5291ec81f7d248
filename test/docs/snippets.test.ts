import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ASSUMED } from './assumed.ts';
import { type Block, blocksIn, PAGES } from './blocks.ts';
import { root, run } from './packed.ts';

/** Pages that are not compiled here. The recipes are compiled and run by recipes.test.ts, with the frameworks that they import. */
const ELSEWHERE = /^docs\/guides\/recipes\/|^CONTRIBUTING\.md$/;
/** There, `ts` is the code of another library, and `js` is ours. */
const COMING_FROM = 'docs/guides/coming-from/';

const TSCONFIG = {
  compilerOptions: {
    noEmit: true,
    strict: true,
    target: 'ES2023',
    lib: ['ES2023', 'ESNext.Disposable', 'DOM'],
    module: 'NodeNext',
    types: ['node'],
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  },
  include: ['**/*.ts', '**/*.mts'],
};

/**
 * The blocks of a page as one module in which each block may use what those above it import and declare, and may declare it anew. What no
 * block declares is in `ASSUMED`. Each line keeps its number, so that the compiler names the line of the page.
 */
function moduleOf(blocks: readonly Block[]): string {
  const imports = new Map<string, Set<string>>();
  const others = new Set<string>();
  const lines: string[] = [];
  for (const { code, line } of blocks) {
    while (lines.length < line - 2) lines.push('');
    const rest = code
      .replace(/^import (.*?) from '(.*?)';$/gms, (statement: string, what: string, from: string) => {
        const [, names] = /^\{(.*)\}$/s.exec(what) ?? [];
        if (names === undefined) others.add(statement);
        else {
          const known = imports.get(from) ?? new Set();
          for (const name of names.split(',')) known.add(name.trim());
          imports.set(from, known);
        }
        return statement.replace(/[^\n]/g, '');
      })
      .replace(/^export (?=const|function|class|async|interface|type)/gm, '');
    lines.push('{', ...rest.trimEnd().split('\n'));
  }
  const named = [...imports].map(
    ([from, names]) => `import { ${[...names].filter(Boolean).join(', ')} } from '${from}';`,
  );
  return `${[...others, ...named].join(' ')}${lines.join('\n')}\n${'}'.repeat(blocks.length)}\nexport {};\n`;
}

describe('the code of the pages', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-snippets-'));
    await mkdir(join(folder, 'node_modules'));
    for (const name of await readdir(join(root, 'node_modules'))) {
      if (!name.startsWith('.')) await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
    }
    await symlink(root, join(folder, 'node_modules/holdfast'));
    await write('package.json', JSON.stringify({ private: true, type: 'module' }));
    await write('tsconfig.json', JSON.stringify(TSCONFIG));
    await write('assumed.d.ts', ASSUMED);
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function write(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }

  test('is taken by strict TypeScript, against the declarations of the package', async () => {
    let compiled = 0;
    for (const page of PAGES.filter((each) => !ELSEWHERE.test(each))) {
      const languages = page.startsWith(COMING_FROM) ? ['js'] : ['ts', 'js'];
      const blocks = blocksIn(page).filter(({ language }) => languages.includes(language));
      const files = blocks.filter(({ file }) => file?.endsWith('.ts'));
      const snippets = blocks.filter(({ file }) => file === undefined);
      for (const { file, code } of files) await write(join(page, file as string), code);
      if (snippets.length > 0) await write(`${page}.mts`, moduleOf(snippets));
      compiled += files.length + snippets.length;
    }
    expect(compiled).toBeGreaterThan(40);
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const said = await run(process.execPath, [tsc], { cwd: folder }).catch((error: { stdout: string }) => error);
    expect(said.stdout.replaceAll('.md.mts', '.md')).toBe('');
  });
});

/** Scripts of the reader's own program. */
const OF_THE_READER = ['worker'];

test('each npm script that a page names is in package.json', async () => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: object };
  const missing: string[] = [];
  for (const page of PAGES) {
    const text = await readFile(join(root, page), 'utf8');
    for (const [call, name = ''] of text.matchAll(/\bnpm run ([a-z][a-z0-9:-]*)/g)) {
      if (!(name in scripts) && !OF_THE_READER.includes(name)) missing.push(`${page}: ${call}`);
    }
  }
  expect(missing).toEqual([]);
});
