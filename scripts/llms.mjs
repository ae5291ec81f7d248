// The documentation for language models (llmstxt.org): llms.txt lists the pages, llms-full.txt has their text. Both are made from docs/README.md,
// which lists the pages. `npm run build` makes those of the package, and the site has its own.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

/** Pages that answer no question of a user: long tables of results, the decisions, the code. */
const LEFT_OUT = ['ARCHITECTURE.md', 'docs/internals/systems.md', 'docs/decisions/README.md'];

/** The sections of docs/README.md with their pages. */
function sections() {
  const [, ...parts] = readFileSync(join(root, 'docs/README.md'), 'utf8').split(/^## /m);
  const listed = parts.map((part) => ({
    title: part.replace(/\n.*/s, ''),
    pages: [...part.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\) +\| (.*?) +\|$/gm)]
      .map(([, title, link, says]) => ({ title, file: posix.join('docs', link), says }))
      .filter(({ file }) => !LEFT_OUT.includes(file)),
  }));
  return listed.filter(({ pages }) => pages.length > 0);
}

/** @param {(file: string) => string} linkTo the address of a page of the repository. */
function llmsTxt(linkTo = (file) => file) {
  const lists = sections().map(({ title, pages }) => {
    const rows = pages.map(({ title: page, file, says }) => `- [${page}](${linkTo(file)}): ${says}`);
    return `## ${title}\n\n${rows.join('\n')}\n`;
  });
  const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return [`# Holdfast\n`, `> ${description}\n`, ...lists].join('\n');
}

/** The text of all pages. Their links lead to where the page is in the repository. */
function llmsFullTxt() {
  const files = ['README.md', ...sections().flatMap(({ pages }) => pages.map(({ file }) => file))];
  const pages = files.map((file) => `<!-- ${file} -->\n\n${withLinksFromRoot(file).trim()}\n`);
  return pages.join('\n');
}

function withLinksFromRoot(file) {
  const text = readFileSync(join(root, file), 'utf8').replace(/^!\[.*\]\(.*\)$/gm, '');
  return text.replace(/\]\((?![a-z]+:|#)([^)#\s]+)/g, (_, link) => `](${posix.join(posix.dirname(file), link)}`);
}

/** @param {(file: string) => string} [linkTo] as in `llmsTxt`. */
export function writeLlms(folder, linkTo) {
  writeFileSync(join(folder, 'llms.txt'), llmsTxt(linkTo));
  writeFileSync(join(folder, 'llms-full.txt'), llmsFullTxt());
}
