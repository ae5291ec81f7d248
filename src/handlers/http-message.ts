import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { SentHeader } from './http-headers.ts';
import type { HttpInput } from './http-input.ts';

/** How much of a body a failure's message shows, in characters. */
const SAID = 200;

// What is sent

export function bodyOf({ body }: HttpInput): Buffer | undefined {
  if (body === undefined) return undefined;
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.base64, 'base64');
}

export function withDefaults(headers: readonly SentHeader[], body: Buffer | undefined): SentHeader[] {
  const defaults: Record<string, string> = { Accept: '*/*', 'User-Agent': 'holdfast' };
  if (body !== undefined) {
    defaults['Content-Type'] = typeOf(body);
    // Without it, Node does not frame the body of a GET or DELETE, and the server reads it as a second request.
    defaults['Content-Length'] = String(body.length);
  }
  const given = new Set(headers.map(({ name }) => name.toLowerCase()));
  const added = Object.entries(defaults).filter(([name]) => !given.has(name.toLowerCase()));
  return [...added.map(([name, value]) => ({ name, value, secret: false })), ...headers];
}

/** JSON by its look; text as curl declares it. */
function typeOf(body: Buffer): string {
  const text = utf8(body, false);
  if (text === undefined) return 'application/octet-stream';
  try {
    if (typeof JSON.parse(text) === 'object') return 'application/json';
  } catch {
    // Not JSON, so the type below applies.
  }
  return 'application/x-www-form-urlencoded';
}

/** Headers that are named twice are sent twice. */
export function asNode(headers: readonly SentHeader[]): Record<string, string | string[]> {
  const byName = new Map<string, { name: string; values: string[] }>();
  for (const { name, value } of headers) {
    const known = byName.get(name.toLowerCase());
    if (known) known.values.push(value);
    else byName.set(name.toLowerCase(), { name, values: [value] });
  }
  return Object.fromEntries(
    [...byName.values()].map(({ name, values }) => [name, values.length === 1 ? (values[0] as string) : values]),
  );
}

// What comes back

/** `503 Service Unavailable, after 1 redirect: "try later"`. Without the URL, whose words must not be taken for a reason. */
export function sentence(
  { statusCode = 0, statusMessage }: IncomingMessage,
  redirects: number,
  body: string | undefined,
) {
  const phrase = headerText(statusMessage ?? '') || STATUS_CODES[statusCode] || '';
  const after = redirects === 0 ? '' : `, after ${redirects === 1 ? '1 redirect' : `${redirects} redirects`}`;
  const line =
    body
      ?.split(/\r?\n/)
      .find((each) => each.trim() !== '')
      ?.trim() ?? '';
  // The first line of an HTML page is not useful.
  const said = line === '' || line.startsWith('<') ? '' : `: ${line.slice(0, SAID)}`;
  return `${statusCode} ${phrase}`.trimEnd() + after + said;
}

/** A header as text. Node gives its bytes as Latin-1, and many servers send UTF-8. */
export function headerText(value: string): string {
  return utf8(Buffer.from(value, 'latin1'), false) ?? value;
}

/** As text, if it is UTF-8; where it was cut, up to its last whole character. NUL, which no database takes, is made visible. */
export function utf8(bytes: Buffer, wasCut: boolean): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: wasCut });
    return text.replaceAll('\0', '␀');
  } catch {
    return undefined;
  }
}
