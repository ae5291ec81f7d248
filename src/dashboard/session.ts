import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Authorize, DashboardUser } from './dashboard.ts';
import { text } from './page.ts';

export interface TokenOptions {
  /** Whoever shows the token. */
  readonly user: DashboardUser;
  /** Shown by `authorization: Bearer …`, and in links that work any number of times. Default: links that work once. */
  readonly token?: string | undefined;
  /** Called with the next link when one was used. */
  readonly onUsed?: (query: string) => void;
}

const COOKIE = 'holdfast_session';

/**
 * Lets in whoever opens a link with a token. The browser then has a cookie that no script and no other site can use, and that ends with
 * this process. It keeps other users of the same machine away.
 */
export function tokenLogin({ user, token, onUsed }: TokenOptions): { readonly authorize: Authorize; query(): string } {
  const session = secret();
  let once = secret();
  const query = () => `?token=${encodeURIComponent(token ?? once)}`;
  const authorize: Authorize = (request) => {
    const url = new URL(request.url);
    const shown = url.searchParams.get('token');
    if (shown !== null && request.method === 'GET') {
      if (!same(shown, token ?? once)) return text(401, USED);
      if (token === undefined) {
        once = secret();
        onUsed?.(query());
      }
      url.searchParams.delete('token');
      // `//evil.example` would lead to another server.
      return entered(`${url.pathname.replace(/^\/+/, '/')}${url.search}`, session);
    }
    const bearer = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
    if (bearer !== undefined) return token !== undefined && same(bearer, token) ? user : undefined;
    return cookiesOf(request).some((value) => same(value, session)) ? user : undefined;
  };
  return { authorize, query };
}

const USED =
  'This link was used already, or belongs to another process. The terminal that runs `holdfast ui` shows a new one.';

function secret(): string {
  return randomBytes(24).toString('base64url');
}

/** In the same time for all texts. */
function same(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

/** Ports share cookies, so there may be one of another dashboard. */
function cookiesOf(request: Request): string[] {
  return (request.headers.get('cookie') ?? '').split(';').flatMap((pair) => {
    const [name, value = ''] = pair.trim().split('=');
    return name === COOKIE ? [value] : [];
  });
}

function entered(location: string, session: string): Response {
  return new Response(null, {
    status: 303,
    headers: {
      location,
      'set-cookie': `${COOKIE}=${session}; HttpOnly; SameSite=Strict; Path=/`,
      'cache-control': 'no-store',
    },
  });
}
