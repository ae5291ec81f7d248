import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** A file of the built pages. */
interface PageFile {
  readonly bytes: Buffer;
  readonly zipped: Buffer | undefined;
  readonly type: string;
  readonly etag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

/** Files below this folder have a hash of their content in their name. */
const HASHED = 'assets/';

const INDEX = 'index.html';
const BASE = '<base href="./">';

/** The folder of the built pages beside this file. */
export function builtPages(): string {
  return fileURLToPath(new URL('./page', import.meta.url));
}

/**
 * Answers with the files of a folder. They are read once, and only they can be asked for, so no path leads out of the folder. Any other
 * path that does not name a file is a page: it gets `index.html`, with the address of the dashboard as its base.
 */
export class Pages {
  readonly #folder: string;
  #files: ReadonlyMap<string, PageFile> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** `path` is below the base path, without its first slash. */
  answer(request: Request, path: string, basePath: string | undefined): Response {
    this.#files ??= readFiles(this.#folder);
    const file = this.#files.get(path);
    if (file && path !== INDEX) return fileResponse(request, path, file);
    const index = this.#files.get(INDEX);
    if (!index) return text(503, 'The pages of the dashboard are not built. In a checkout, run: npm run build');
    if (isFile(path)) return text(404, 'There is no such file.');
    return indexResponse(index, path, basePath);
  }
}

/** The address of a page may end with a name that has a dot, such as that of a host. */
function isFile(path: string): boolean {
  return path !== INDEX && (path.startsWith(HASHED) || (!path.includes('/') && extname(path) !== ''));
}

function readFiles(folder: string): ReadonlyMap<string, PageFile> {
  let found: string[];
  try {
    found = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
    throw error;
  }
  return new Map(found.map((path) => [path.replaceAll('\\', '/'), readPageFile(join(folder, path))]));
}

function readPageFile(path: string): PageFile {
  const bytes = readFileSync(path);
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  const zipped = /^(text|image\/svg|application\/(json|manifest))/.test(type) ? gzipSync(bytes) : undefined;
  return { bytes, zipped, type, etag: etagOf(bytes) };
}

export function etagOf(content: string | Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
}

/** Whether the client has this version already. */
export function isKnown(request: Request, etag: string): boolean {
  const known = request.headers.get('if-none-match');
  return known?.split(',').some((one) => one.trim().replace(/^W\//, '') === etag) ?? false;
}

function fileResponse(request: Request, path: string, { bytes, zipped, type, etag }: PageFile): Response {
  const age = path.startsWith(HASHED) ? 'public, max-age=31536000, immutable' : 'no-cache';
  const headers: Record<string, string> = { 'content-type': type, etag, 'cache-control': age, vary: 'accept-encoding' };
  if (isKnown(request, etag)) return new Response(null, { status: 304, headers });
  const takesZipped = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '');
  const body = takesZipped && zipped ? zipped : bytes;
  if (body === zipped) headers['content-encoding'] = 'gzip';
  return new Response(request.method === 'HEAD' ? null : new Uint8Array(body), { headers });
}

/** Without a known base path, the base is relative: as many folders up as the path is deep. */
function indexResponse({ bytes, type }: PageFile, path: string, basePath: string | undefined): Response {
  const base = basePath ?? (path.includes('/') ? '../'.repeat(path.split('/').length - 1) : './');
  const html = bytes.toString('utf8').replace(BASE, `<base href="${escaped(base)}">`);
  return new Response(html, { headers: { 'content-type': type, 'cache-control': 'no-store' } });
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}

/** An answer for a person without a page. */
export function text(status: number, body: string): Response {
  return new Response(`${body}\n`, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
}
