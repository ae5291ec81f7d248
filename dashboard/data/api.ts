import { key } from './session.ts';

/** The answer that the server gives instead of a document: what is wrong, why, and what to do. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly hints: readonly string[];

  constructor(status: number, code: string, message: string, hints: readonly string[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.hints = hints;
  }
}

/** What was thrown as a problem that can be shown. */
export function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, 'page', String(error));
}

/** A document of the API. @throws Problem. */
export async function get<Document>(path: string, signal?: AbortSignal): Promise<Document> {
  return answerOf(await sent(path, { ...(signal && { signal }) }));
}

/** Does something. @throws Problem. */
export async function post<Document>(path: string, body: object): Promise<Document> {
  const headers = { 'content-type': 'application/json' };
  return answerOf(await sent(path, { method: 'POST', headers, body: JSON.stringify(body) }));
}

async function sent(path: string, init: RequestInit & { headers?: Record<string, string> }): Promise<Response> {
  const headers = { ...init.headers, 'x-holdfast': key };
  try {
    return await fetch(new URL(`api/v1/${path}`, document.baseURI), { ...init, headers });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new Problem(0, 'unreachable', 'The dashboard does not answer.', [
      'Is its process still running? The page tries again by itself.',
    ]);
  }
}

async function answerOf<Document>(response: Response): Promise<Document> {
  if (response.ok) return (await response.json()) as Document;
  const body: unknown = await response.json().catch(() => undefined);
  const { detail, title, code, hints } = (body ?? {}) as Partial<Record<string, unknown>>;
  const message = typeof detail === 'string' ? detail : typeof title === 'string' ? title : response.statusText;
  const said = Array.isArray(hints) ? hints.filter((hint) => typeof hint === 'string') : [];
  throw new Problem(response.status, typeof code === 'string' ? code : 'unknown', message, said);
}
