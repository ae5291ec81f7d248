import { createDashboard, type Dashboard, type DashboardOptions } from '../../src/dashboard/dashboard.ts';
import type { Holdfast } from '../../src/queue/holdfast.ts';

/** An answer of the dashboard, read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Its JSON, if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at any member
  readonly json: any;
  readonly text: string;
}

export interface Calls {
  readonly dashboard: Dashboard;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  /** An act, as a page or a program makes it. */
  act(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

export const ORIGIN = 'http://127.0.0.1:4815';

/** Calls the API of a dashboard without a server. */
export function callsOf(
  holdfast: Holdfast,
  options: Partial<DashboardOptions> & { readonly pages?: string } = {},
): Calls {
  const dashboard = createDashboard(holdfast, { authorize: () => 'ann', ...options });
  const ask = async (path: string, init: RequestInit): Promise<Answer> => {
    const url = path.startsWith('/') ? `${ORIGIN}${path}` : `${ORIGIN}/api/v1/${path}`;
    const answer = await dashboard.fetch(new Request(url, init));
    const text = await answer.text();
    const isJson = /json/.test(answer.headers.get('content-type') ?? '');
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: isJson && text !== '' ? JSON.parse(text) : undefined,
    };
  };
  return {
    dashboard,
    get: (path, headers = {}) => ask(path, { headers }),
    act: (path, body = {}, headers = {}) =>
      ask(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json', 'x-holdfast': '1', ...headers },
      }),
  };
}
