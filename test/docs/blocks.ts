import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './packed.ts';

/** Every page that tells how Holdfast is now: decisions and the changelog tell of what was. */
export const PAGES: readonly string[] = execFileSync(
  'git',
  ['ls-files', '*.md', ':!docs/decisions', ':!CHANGELOG.md', ':!test', ':!**/samples/**'],
  { cwd: root, encoding: 'utf8' },
)
  .trim()
  .split('\n');

/** A block of code in a page. */
export interface Block {
  readonly page: string;
  /** The line of its first line of code. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** The file that it is, if its first line is a comment with a name. */
  readonly file: string | undefined;
}

const FENCED = /^```(\w*)\n(.*?)^```$/gms;

export function blocksIn(page: string): readonly Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(FENCED)].map(({ index, 1: language = '', 2: code = '' }) => ({
    page,
    line: text.slice(0, index).split('\n').length + 1,
    language,
    code,
    file: /^(?:\/\/|#) ([\w./-]+\.[a-z]+)\n/.exec(code)?.[1],
  }));
}

/** The blocks of all pages in these languages. */
export function blocksOf(...languages: readonly string[]): readonly Block[] {
  return PAGES.flatMap(blocksIn).filter(({ language }) => languages.includes(language));
}

/** Where a block is, as an editor opens it. */
export const at = ({ page, line }: Block): string => `${page}:${line}`;
