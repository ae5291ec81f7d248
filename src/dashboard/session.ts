import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Authorize, DashboardUser } from './dashboard.ts';
import { ACT_HEADER } from './guards.ts';
import { text } from './page.ts';

export interface TokenOptions {
  /** Whoever shows the token. */
  readonly user: DashboardUser;
  /** Shown by `authorization: Bearer …`, and in links that work any number of times. Default: links that work once. */
  readonly token?: string | undefined;
  /** Called with the next link when one was used. */
  readonly onUsed?: (query: string) => void;
}

/** Before the key in the fragment of an address, as `dashboard/data/session.ts` reads it. */
const KEY_IN_FRAGMENT = 'key=';

const COOKIE = 'holdfast_session';

/** What needs no key: the shipped files of the pages, and the live view, which says only that something changed. */
const NEEDS_KEY = /^\/+api\/(?!v1\/events$)/;

/**
 * Lets in whoever opens a link with a token. The browser then has a cookie that no script and no other site can use, and that ends with
 * this process. It keeps other users of the same machine away. A browser shows its cookies to all ports of a machine, also to a server
 * of another user, so the API needs a key besides: the link leads to a fragment with it, and the page keeps it where only pages
 * of this port can read it.
 */
export function tokenLogin({ user, token, onUsed }: TokenOptions): { readonly authorize: Authorize; query(): string } {
  const session = secret();
  const key = secret();
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
      return entered(`${url.pathname.replace(/^\/+/, '/')}${url.search}#${KEY_IN_FRAGMENT}${key}`, {
        cookie: `${COOKIE}_${url.port}=${session}`,
      });
    }
    const bearer = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
    if (bearer !== undefined) return token !== undefined && same(bearer, token) ? user : undefined;
    if (!cookiesOf(request).some((value) => same(value, session))) return undefined;
    if (NEEDS_KEY.test(url.pathname) && !same(request.headers.get(ACT_HEADER) ?? '', key)) return undefined;
    return user;
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

/** Ports share cookies, so there may be one of another dashboard: each has its port in its name. */
function cookiesOf(request: Request): string[] {
  return (request.headers.get('cookie') ?? '').split(';').flatMap((pair) => {
    const [name, value = ''] = pair.trim().split('=');
    return name?.startsWith(COOKIE) ? [value] : [];
  });
}

function entered(location: string, { cookie }: { readonly cookie: string }): Response {
  return new Response(null, {
    status: 303,
    headers: {
      location,
      'set-cookie': `${cookie}; HttpOnly; SameSite=Strict; Path=/`,
      'cache-control': 'no-store',
    },
  });
}
