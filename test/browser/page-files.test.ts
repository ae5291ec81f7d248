import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const page = fileURLToPath(new URL('../../dist/dashboard/page/', import.meta.url));
const files = readdirSync(page, { recursive: true, encoding: 'utf8' });

/** What a browser must load before it shows anything. */
const MOST_SCRIPT = 120_000;
const MOST_STYLE = 15_000;

test('the page is small enough for a bad connection', () => {
  expect(compressed('.js')).toBeGreaterThan(5_000);
  expect(compressed('.js')).toBeLessThan(MOST_SCRIPT);
  expect(compressed('.css')).toBeLessThan(MOST_STYLE);
});

test('the page may be served under any path, and has no script or style in its text', () => {
  const html = readFileSync(`${page}index.html`, 'utf8');
  expect(html.match(/<base href="\.\/">/g)).toHaveLength(1);
  expect(html.match(/(?<=\s(?:src|href)=")[^"]*/g)?.filter((address) => !address.startsWith('./'))).toEqual([]);
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
});

function compressed(end: string): number {
  const wanted = files.filter((file) => file.endsWith(end));
  return wanted.reduce((bytes, file) => bytes + gzipSync(readFileSync(`${page}${file}`)).length, 0);
}
