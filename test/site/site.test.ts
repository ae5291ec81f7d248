import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, useBrowser } from '../browser/browser.ts';

const site = fileURLToPath(new URL('../../site/.vitepress/dist', import.meta.url));
const screenshots = fileURLToPath(new URL('../../site/.vitepress/cache/screenshots', import.meta.url));
if (!existsSync(site)) throw new Error('The site is not built. Run: npm run docs');

const FILES = readdirSync(site, { recursive: true, encoding: 'utf8' });
const PAGES = FILES.filter((file) => file.endsWith('.html') && file !== '404.html');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** One page of each kind: the index, a long one with tables, code in several languages, drawings. */
const LOOKED_AT = [
  'index.html',
  'start.html',
  'concepts.html',
  'guides/policies.html',
  'reference/errors.html',
  'reference/api/index.html',
];

const textOf = (file: string): string => readFileSync(join(site, file), 'utf8');

describe('the built site', () => {
  test('has no link to a page or a heading that is not there', () => {
    expect(PAGES.length).toBeGreaterThan(60);
    const dead = PAGES.flatMap((page) =>
      [...textOf(page).matchAll(/<a [^>]*href="([^"]+)"/g)]
        .map(([, href]) => href as string)
        .filter((href) => !/^[a-z]+:/.test(href) && !holds(page, href))
        .map((href) => `${page}: ${href}`),
    );
    expect(dead).toEqual([]);
  });

  test('names nothing of another host that a browser would load', () => {
    const loaded = FILES.filter((file) => /\.(html|css)$/.test(file)).flatMap((file) =>
      [
        ...textOf(file).matchAll(
          /<(?:link|script|img|source)[^>]*(?:href|src|srcset)="(https?:|\/\/)[^"]*"|url\((https?:|\/\/)/g,
        ),
      ].map(([found]) => `${file}: ${found}`),
    );
    expect(loaded).toEqual([]);
  });
});

function holds(page: string, href: string): boolean {
  const [path = '', anchor] = href.split('#');
  let target = path === '' ? page : path.startsWith('/') ? path.slice(1) : posix.join(posix.dirname(page), path);
  if (target === '' || target.endsWith('/')) target = `${target}index.html`;
  if (!existsSync(join(site, target)) || statSync(join(site, target)).isDirectory()) return false;
  return !anchor || textOf(target).includes(`id="${decodeURIComponent(anchor)}"`);
}

describe('the site in a browser', () => {
  const open = useBrowser();
  let server: Server;
  let address: string;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const path = decodeURIComponent(new URL(request.url ?? '/', 'http://site').pathname);
      const file = path.endsWith('/') ? `${path}index.html` : path;
      if (!FILES.includes(file.slice(1))) return void response.writeHead(404).end();
      response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
      response.end(readFileSync(join(site, file)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    mkdirSync(screenshots, { recursive: true });
  });
  afterAll(() => server.close());

  test.each((['light', 'dark'] as const).flatMap((theme) => [360, 1280].map((width) => ({ theme, width }))))(
    'has nothing that axe finds, scrolls only down, and asks no other host: $theme, $width px',
    async ({ theme, width }) => {
      const { page, errors } = await open({ viewport: { width, height: 900 }, colorScheme: theme });
      const asked = new Set<string>();
      page.on('request', (request) => asked.add(new URL(request.url()).origin));
      for (const path of LOOKED_AT) {
        await page.goto(`${address}/${path}`, { waitUntil: 'networkidle' });
        await page.screenshot({ path: join(screenshots, `${path.replace(/\W/g, '-')}-${theme}-${width}.png`) });
        const kinds = new Set(
          (await axeViolations(page)).map((found) => found.replace(/.*?(?=Fix)/s, `${found.split(':')[0]}: `)),
        );
        expect([path, ...kinds]).toEqual([path]);
        const wider = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        expect([path, wider]).toEqual([path, 0]);
      }
      expect([...asked]).toEqual([address]);
      expect(errors).toEqual([]);
    },
  );

  test('finds a page by a word of its text', async () => {
    const { page } = await open();
    await page.goto(address, { waitUntil: 'networkidle' });
    await page.locator('#local-search button').click();
    await page.locator('.VPLocalSearchBox input').fill('putting ended tasks back');
    await page.locator('.VPLocalSearchBox a[href*="operations/redrive.html"]').first().click();
    await page.waitForURL(/operations\/redrive\.html/);
    await page.locator('h1', { hasText: 'Redrives' }).waitFor();
  });
});
