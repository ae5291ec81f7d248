// @ts-check
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

/**
 * What the server does instead of answering: a status with headers.
 * @typedef {{ status: number, message?: string, headers?: Readonly<Record<string, string>> }} Trouble
 */

/** A server on this machine that answers as the API of GitHub does: pages with links, ETags, limits, and the trouble that it was told. */
export class GithubServer {
  /** The issues of each repository, as titles. @type {Record<string, string[]>} */
  repositories = {};
  /** What happens next in each repository instead of an answer, in turn. @type {Record<string, Trouble[]>} */
  trouble = {};
  /** The requests so far, as `REPOSITORY PAGE STATUS`. @type {string[]} */
  asked = [];
  #server = createServer((request, response) => this.#answer(request, response));

  /** Listens on a free port, and answers its URL. */
  async open() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${port}`;
  }

  async close() {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   */
  #answer(request, response) {
    const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
    const repository = url.pathname.split('/').slice(2, 4).join('/');
    const page = Number(url.searchParams.get('page') ?? 1);
    /** @type {(status: number, body: unknown, headers?: Readonly<Record<string, string>>) => void} */
    const answer = (status, body, headers = {}) => {
      this.asked.push(`${repository} ${page} ${status}`);
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(status === 304 ? undefined : JSON.stringify(body));
    };
    const trouble = this.trouble[repository]?.shift();
    if (trouble) return answer(trouble.status, { message: trouble.message ?? 'As told' }, trouble.headers);
    const titles = this.repositories[repository];
    if (!titles) return answer(404, { message: 'Not Found' });
    const etag = `"${createHash('sha256').update(JSON.stringify(titles)).digest('hex').slice(0, 16)}"`;
    if (request.headers['if-none-match'] === etag) return answer(304, undefined, { etag });
    const size = Number(url.searchParams.get('per_page') ?? 30);
    const issues = titles.map((title, index) => ({ number: index + 1, title, updated_at: `${title}-1` }));
    url.searchParams.set('page', String(page + 1));
    const more = issues.length > page * size ? { link: `<${url}>; rel="next"` } : {};
    return answer(200, issues.slice((page - 1) * size, page * size), { etag, ...more });
  }
}
