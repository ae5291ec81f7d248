import { readdir, readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { root, run } from './packed.ts';

/** Most bytes of the package as npm downloads it. A change that makes it larger says so by raising this number. */
const MOST_BYTES = 2_500_000;

/** Parts of the repository that only its pages for contributors link to. The package has none of them. */
const ONLY_IN_THE_REPOSITORY = /^(src|test|bench|scripts|examples\/(?!app\/|mappings))/;

describe('the package', () => {
  let files: ReadonlySet<string>;
  let bytes: number;

  beforeAll(async () => {
    const { stdout } = await run('npm', ['pack', '--json', '--dry-run'], { cwd: root, maxBuffer: 10_000_000 });
    const [packed] = JSON.parse(stdout) as [{ files: readonly { path: string }[]; size: number }];
    files = new Set(packed.files.map(({ path }) => path));
    bytes = packed.size;
  });

  test('has every page of docs', async () => {
    const pages = await readdir(join(root, 'docs'), { recursive: true });
    expect(pages.filter((page) => /\.(md|svg)$/.test(page) && !files.has(`docs/${page}`))).toEqual([]);
  });

  test('has everything to which its README links', async () => {
    expect((await linksOf('README.md')).filter((path) => !holds(path))).toEqual([]);
  });

  test('has the other pages to which its pages link', async () => {
    const pages = [...files].filter((file) => /^(docs\/|[A-Z]+\.md$).*\.?md$/.test(file));
    expect(pages.length).toBeGreaterThan(30);
    const broken: string[] = [];
    for (const page of pages) {
      for (const path of await linksOf(page)) {
        if (!holds(path) && !ONLY_IN_THE_REPOSITORY.test(path)) broken.push(`${page} → ${path}`);
      }
    }
    expect(broken).toEqual([]);
  });

  test('has the pages for language models, and all to which their list links', async () => {
    const list = await linksOf('llms.txt');
    expect(list.length).toBeGreaterThan(25);
    expect(list.filter((path) => !holds(path))).toEqual([]);
    const all = await readFile(join(root, 'llms-full.txt'), 'utf8');
    expect(list.filter((path) => !all.includes(`<!-- ${path} -->`))).toEqual([]);
    expect(files).toContain('llms-full.txt');
  });

  test('is small', () => {
    console.log(`the package: ${(bytes / 1_000).toFixed(0)} kB in ${files.size} files`);
    expect(bytes).toBeLessThan(MOST_BYTES);
  });

  function holds(path: string): boolean {
    return files.has(path) || [...files].some((file) => file.startsWith(`${path.replace(/\/$/, '')}/`));
  }
});

/** The files of the repository to which a page links. */
async function linksOf(page: string): Promise<readonly string[]> {
  const text = await readFile(join(root, page), 'utf8');
  const targets = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)|(?:src|srcset|href)="([^"#]+)"/g)];
  return targets
    .map(([, link, attribute]) => (link ?? attribute) as string)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => posix.normalize(posix.join(posix.dirname(page), target)));
}
