import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { expect, test } from 'vitest';
import { anchorOf } from '../../site/anchor.mjs';
import { root } from './packed.ts';

/** Every page of the repository. */
const PAGES = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((page) => page !== '' && existsSync(join(root, page)));

const read = (page: string): string => readFileSync(join(root, page), 'utf8');
const withoutCode = (text: string): string => text.replace(/^(`{3,}).*?^\1/gms, '').replace(/`[^`\n]*`/g, '`…`');

/** The anchors of a page's headings, as GitHub and the site make them. */
function anchorsIn(page: string): readonly string[] {
  const seen = new Map<string, number>();
  return [
    ...read(page)
      .replace(/^(`{3,}).*?^\1/gms, '')
      .matchAll(/^#{1,6} (.*)$/gm),
  ].map(([, heading = '']) => {
    const anchor = anchorOf(heading);
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

function deadLinksOf(page: string): readonly string[] {
  const links = [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"/g)];
  return links
    .map(([, link, attribute]) => (link ?? attribute) as string)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : posix.join(posix.dirname(page), path);
      if (!existsSync(join(root, target))) return true;
      if (anchor === undefined || statSync(join(root, target)).isDirectory()) return false;
      return !anchorsIn(target).includes(anchor);
    });
}

test('each link inside the repository leads to a file and to a heading that there is', () => {
  expect(PAGES.length).toBeGreaterThan(50);
  const dead = PAGES.flatMap((page) => deadLinksOf(page).map((link) => `${page}: ${link}`));
  expect(dead).toEqual([]);
});

test('each decision is in the index of decisions, under its title', () => {
  const index = read('docs/decisions/README.md');
  const records = PAGES.filter((page) => /^docs\/decisions\/\d/.test(page));
  const missing = records.filter((page) => {
    const title = /^# (.*)$/m.exec(read(page))?.[1];
    return !index.includes(`[${title}](${posix.basename(page)})`);
  });
  expect(missing).toEqual([]);
});

test('each page under docs/ that code, tests or messages name is there', () => {
  const files = execFileSync('git', ['grep', '-lE', 'docs/[a-z]', '--', ':!*.jsonl', ':!package-lock.json'], {
    cwd: root,
    encoding: 'utf8',
  });
  const missing = files
    .trim()
    .split('\n')
    .filter((file) => existsSync(join(root, file)))
    .flatMap((file) =>
      [...read(file).matchAll(/(?<![\w/.-])(?:\.\.\/)*(docs\/[\w/-]+\.(?:md|svg))/g)]
        .map(([, page]) => page as string)
        .filter((page) => !existsSync(join(root, page)))
        .map((page) => `${file}: ${page}`),
    );
  expect(missing).toEqual([]);
});
