// Copies the pages of the repository to site/pages, from where VitePress builds the site. docs/ is the root of the site.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeLlms } from '../scripts/llms.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const to = join(root, 'site/pages');

/** Pages outside of docs/ to which its pages link. */
const OTHERS = [
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  'test/errors/live/COVERAGE.md',
  ...['', 'analysis/', 'app/', 'ingestion/', 'runs/', 'tidy/', 'worker-engine/'].map((of) => `examples/${of}README.md`),
];

/** Where a file of the repository is in the site. */
const inSite = (file) => file.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md');

/** The files of the site, by their paths in the repository. */
export function filesOfSite() {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && /\.(md|svg|png|jpg)$/.test(file.name))
    .map((file) => posix.join('docs', file.parentPath.slice(join(root, 'docs').length), file.name));
  return [...docs, ...OTHERS];
}

/** The menu is the index page: a group for each of its headings, an entry for each row of its tables. */
export function menu() {
  const [, ...sections] = readFileSync(join(root, 'docs/README.md'), 'utf8').split(/^## /m);
  const groups = sections.map((section) => ({
    text: section.replace(/[:\n].*/s, ''),
    items: [...section.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, text, link]) => ({
      text,
      link: `/${inSite(posix.join('docs', link)).replace(/(index)?\.md$/, '')}`,
    })),
  }));
  // TypeDoc makes its pages from the source, with the settings of typedoc.json.
  groups.find(({ text }) => text === 'Reference').items.push({ text: 'API', link: '/reference/api/' });
  return groups;
}

export function copyPages() {
  const files = filesOfSite();
  rmSync(to, { recursive: true, force: true });
  for (const file of files) {
    const copy = join(to, inSite(file));
    mkdirSync(dirname(copy), { recursive: true });
    if (file.endsWith('.md')) writeFileSync(copy, withLinksOfSite(file, files));
    else cpSync(join(root, file), copy);
  }
  cpSync(join(root, 'site/public'), join(to, 'public'), { recursive: true });
  writeLlms(join(to, 'public'), (file) => inSite(file).replace(/(index)?\.md$/, ''));
}

/**
 * The text of a page with links that hold in the site. A link to a source file or a folder becomes text that names it: the site
 * has no copy of the repository.
 */
function withLinksOfSite(page, files) {
  const text = readFileSync(join(root, page), 'utf8');
  const at = dirname(inSite(page));
  const pathOf = (href) => posix.join(posix.dirname(page), href).replace(/\/$/, '');
  const parts = text.split(/^(`{3,}.*?^`{3,}$)/ms);
  const linked = parts.map((part, i) =>
    i % 2 === 1
      ? part
      : part
          .replace(/(?<!!)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)/g, (link, label, href, anchor = '') => {
            if (/^[a-z]+:/.test(href)) return link;
            const target = files.find((file) => file === pathOf(href) || file === `${pathOf(href)}/README.md`);
            if (target !== undefined) return `[${label}](${posix.relative(at, inSite(target)) || '.'}${anchor})`;
            return label;
          })
          .replace(
            /\b(src|srcset)="(?![a-z]+:)([^"]+)"/g,
            (_, name, href) => `${name}="${posix.relative(at, inSite(pathOf(href)))}"`,
          )
          .replace(
            /(!\[[^\]]*\])\((?![a-z]+:)([^)\s]+)\)/g,
            (_, alt, href) => `${alt}(./${posix.relative(at, inSite(pathOf(href)))})`,
          ),
  );
  return linked.join('');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) copyPages();
