// @ts-check
import { Octokit } from '@octokit/core';
import { defineTask } from 'holdfast';

const ISSUES = 'GET /repos/{owner}/{repo}/issues';

/**
 * Reads the issues of a repository, page by page; nothing if none has changed since. Each repository is a source of its own. What Octokit throws is thrown as it is:
 * status and headers tell Holdfast what it is, and when to come back.
 * @param {import('../documents.js').Documents} documents
 * @param {{ url?: string, token?: string, perPage?: number }} [options]
 */
export function githubRepository(documents, { url = 'https://api.github.com', token, perPage = 100 } = {}) {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const octokit = new Octokit({ baseUrl: url, log, ...(token !== undefined && { auth: token }) });
  return defineTask('github_repository', {
    /** @param {{ repository: string }} input */
    source: ({ repository }) => `github:${repository}`,
    /** @param {{ repository: string }} input */
    async run({ repository }, { source, signal }) {
      const before = await documents.of(source);
      const [owner = '', repo = ''] = repository.split('/');
      /** @param {number} page */
      const ask = (page) =>
        octokit.request(ISSUES, {
          owner,
          repo,
          state: 'all',
          sort: 'updated',
          per_page: perPage,
          page,
          request: { signal },
          headers: page === 1 && before.position !== undefined ? { 'if-none-match': before.position } : {},
        });
      const first = await ask(1).catch(unlessUnchanged);
      if (first === undefined) return documents.replace(source, before, before);
      const found = [];
      for (let page = 1, answer = first; ; answer = await ask(++page)) {
        found.push(
          ...answer.data.map(({ number, updated_at: version, title }) => ({ id: `#${number}`, version, title })),
        );
        if (!answer.headers.link?.includes('rel="next"')) break;
      }
      const position = first.headers.etag;
      return documents.replace(source, before, { documents: found, ...(position !== undefined && { position }) });
    },
  });
}

/**
 * Octokit throws for 304, which says that nothing has changed.
 * @param {unknown} error
 */
function unlessUnchanged(error) {
  if (Object(error).status === 304) return undefined;
  throw error;
}
