import { isIP } from 'node:net';
import { ApiProblem } from './problems.ts';

/** On every answer. Pages run only their own scripts and styles, talk only to their own server, and stand in no frame. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** The header that every act carries. Another site cannot send it without being asked first, and nobody allows it. */
export const ACT_HEADER = 'x-holdfast';

/**
 * Refuses a request that a page of another site made. A browser says so itself in `Sec-Fetch-Site`; an old one sends at least `Origin`
 * with an act. Other programs send neither.
 * @throws ApiProblem.
 */
export function refuseOtherSites(request: Request): void {
  const site = request.headers.get('sec-fetch-site');
  const origin = request.headers.get('origin');
  const foreign =
    site === null ? origin !== null && !isOwnOrigin(origin, request) : site !== 'same-origin' && site !== 'none';
  if (!foreign) return;
  throw new ApiProblem('cross_site', 'A page of another site made this request, so it was refused.', [
    'open the dashboard itself, or call the API from a program',
  ]);
}

function isOwnOrigin(origin: string, request: Request): boolean {
  try {
    return new URL(origin).host === (request.headers.get('host') ?? new URL(request.url).host);
  } catch {
    // `null`, as of a sandboxed frame.
    return false;
  }
}

/** Refuses an act that a form of another site could have sent. @throws ApiProblem. */
export function refuseForms(request: Request): void {
  const type = request.headers.get('content-type') ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new ApiProblem(
      'not_json',
      `An act needs content-type: application/json, got ${type === '' ? 'none' : 'another one'}.`,
    );
  }
  if (request.headers.get(ACT_HEADER) === null) {
    throw new ApiProblem(
      'cross_site',
      `An act needs the header ${ACT_HEADER}: 1, which a page of another site cannot send.`,
    );
  }
}

/**
 * Refuses a host that is not listed, without its port. A name that an attacker points at the address of this machine would otherwise
 * make the dashboard a part of the attacker's own site (DNS rebinding). `anyAddress`: also any IP address, which nobody can point elsewhere.
 * @throws ApiProblem.
 */
export function refuseOtherHosts(request: Request, allowed: readonly string[] | undefined, anyAddress = false): void {
  if (!allowed) return;
  const host = hostnameOf(request.headers.get('host') ?? new URL(request.url).host);
  if (host !== undefined && (allowed.includes(host) || (anyAddress && isIP(host) !== 0))) return;
  throw new ApiProblem('wrong_host', 'The dashboard does not answer under this host name.', [
    `it answers under: ${allowed.join(', ')}`,
  ]);
}

/** `[::1]:80` is `::1`. */
function hostnameOf(host: string): string | undefined {
  try {
    return new URL(`http://${host}`).hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  } catch {
    return undefined;
  }
}

/** The body as text. @throws ApiProblem as soon as it is longer than `most` bytes. */
export async function limitedBody(request: Request, most: number): Promise<string> {
  const tooLarge = () => new ApiProblem('body_too_large', `A body has at most ${most} bytes.`);
  if (Number(request.headers.get('content-length') ?? 0) > most) throw tooLarge();
  if (!request.body) return '';
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of request.body as unknown as AsyncIterable<Uint8Array>) {
    size += part.byteLength;
    if (size > most) throw tooLarge();
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
