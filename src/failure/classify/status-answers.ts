import type { Answer } from './meaning.ts';

/** What a status means by itself. A status that is not in the table is judged by its first digit. */
const BY_STATUS: Readonly<Record<number, Answer>> = {
  401: 'auth.invalid',
  402: { reason: 'quota.exhausted', ifWait: 'quota.exhausted rate_limited' },
  403: 'auth.forbidden',
  404: 'http.404',
  407: 'auth.invalid',
  408: 'http.408',
  409: 'http.409',
  410: 'http.404',
  412: 'conflict',
  413: 'too_large',
  421: 'http.421',
  420: 'throttled',
  423: 'http.423',
  425: 'http.425',
  429: 'http.429',
  // Shopify.
  430: 'throttled',
  431: 'too_large',
  // Cosmos DB: retry.
  449: 'http.4xx transient',
  // nginx: the client disconnected before the response.
  499: { reason: 'http.4xx', kind: 'unknown', ambiguous: true },
  501: { reason: 'http.5xx', kind: 'permanent', ambiguous: false },
  // The request was not accepted: the server is overloaded, or the proxy has no server.
  503: { reason: 'http.5xx', ambiguous: false },
  // Limits of bandwidth and load at several hosts and services.
  509: 'throttled',
  529: 'throttled',
  521: { reason: 'http.5xx', ambiguous: false },
  523: { reason: 'http.5xx', ambiguous: false },
  525: { reason: 'http.5xx', ambiguous: false },
};

export function byStatus(status: number): Answer {
  const exact = BY_STATUS[status];
  if (exact !== undefined) return exact;
  if (status >= 500) return 'http.5xx';
  return status >= 400 ? 'http.4xx' : 'http.3xx';
}
