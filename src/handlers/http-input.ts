import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isAbsolute } from 'node:path';
import type { Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { list, readMember, refuseUnknown, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import { isLocalName, isPrivateAddress } from './http-address.ts';

/**
 * A stored header. A secret is stored as its place: a variable of the worker's environment, or a file of header lines. It is read
 * again at each attempt.
 */
export type HttpHeader =
  | { readonly name: string; readonly value: string }
  /** `scheme` goes before the value, as in `Bearer …`. With `Basic`, a value with a colon (`user:password`) is encoded. */
  | { readonly name: string; readonly env: string; readonly scheme?: string }
  | { readonly file: string };

/** An HTTP status, or the first and last of a range. */
export type StatusRange = number | readonly [first: number, last: number];

/** A stored request of `holdfast http`. It comes from outside, so `checkHttp` makes it. */
export interface HttpInput {
  /** In upper case. */
  readonly method: string;
  /** http or https, without user, password and fragment. */
  readonly url: string;
  readonly headers?: readonly HttpHeader[];
  /** Text; other bytes as base64. */
  readonly body?: string | { readonly base64: string };
  /** Statuses that mean success. Default: 200 to 299. */
  readonly ok?: readonly StatusRange[];
  /** From looking up the name to a connection that is open and encrypted. Default: 10 s. */
  readonly connectTimeoutMs?: Milliseconds;
  /** For the whole attempt: redirects and the answer's body included. Default: 1 min; at most 1 h. */
  readonly timeoutMs?: Milliseconds;
  /** How many bytes of an answer's body are read; then the connection is closed. Default: 1 MiB; at most 64 MiB. */
  readonly maxBody?: number;
  /** How many redirects are followed. Default: 5; at most 20. */
  readonly maxRedirects?: number;
  /** Allows connections to this machine and private networks, also after a redirect. Default: false. */
  readonly allowPrivate?: boolean;
  /** Whether the request may be sent twice. Default: by its method, and true with an idempotency key. */
  readonly idempotent?: boolean;
  /** A header that is the same for every attempt, so that the server recognises a repetition. */
  readonly idempotency?: { readonly header: string; readonly key: string };
}

/** The idempotent methods, by RFC 9110. Other requests are repeated only if an option allows it. */
const IDEMPOTENT_METHODS = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'];

/** What the default idempotency header is called. */
export const IDEMPOTENCY_HEADER = 'Idempotency-Key';

/** Whether a request may be sent again if its outcome is unknown. */
export function mayBeRepeated({ method, headers = [], idempotent, idempotency }: HttpInput): boolean {
  if (idempotent !== undefined) return idempotent;
  const named = headers.some((header) => 'name' in header && isName(header, IDEMPOTENCY_HEADER));
  return named || idempotency !== undefined || IDEMPOTENT_METHODS.includes(method);
}

/** The failure domain of a request: its host, with a port that is not the usual one. */
export function sourceOfHttp({ url }: HttpInput): string {
  return `http:${new URL(url).host}`.slice(0, 255);
}

/**
 * Parses a request that is stored or will be. Everything that can be refused before it is sent is refused here.
 * @throws InvalidInputError naming the member and what is wrong with it, and no secret.
 */
export function checkHttp(input: unknown): HttpInput {
  refuseUnknown(input, Object.keys(READ), 'An HTTP request');
  const given = input as Readonly<Record<string, unknown>>;
  const members = Object.entries(READ)
    .filter(([name]) => given[name] !== undefined || name === 'method' || name === 'url')
    .map(([name, read]) => [name, readMember(name, () => read(given[name], name))]);
  const parsed = Object.fromEntries(members) as HttpInput;
  const { hostname } = new URL(parsed.url);
  const host = bareHost(hostname);
  if (!parsed.allowPrivate && (isLocalName(host) || (isAddress(host) && isPrivateAddress(host)))) {
    throw new InvalidInputError(
      `${hostname} is this machine or in a private network. This is refused unless you allow it.`,
      'invalid_input',
      { member: 'allowPrivate' },
    );
  }
  return parsed;
}

/** A host of a URL without the brackets of IPv6. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The URL parser leaves addresses in two forms only, whatever octal or decimal they were written in. */
function isAddress(host: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(host) || host.includes(':');
}

/**
 * Reads `'2xx,409'`, `'200-204'`.
 * @throws InvalidInputError naming the piece that is no status.
 */
export function parseStatuses(text: string): StatusRange[] {
  return text.split(',').map((piece) => {
    const [, hundred, first, last] = /^\s*(?:([1-5])xx|(\d{3})(?:-(\d{3}))?)\s*$/i.exec(piece) ?? [];
    const range: StatusRange =
      hundred !== undefined
        ? [Number(hundred) * 100, Number(hundred) * 100 + 99]
        : last === undefined
          ? Number(first)
          : [Number(first), Number(last)];
    if (!isStatusRange(range)) {
      throw new InvalidInputError(
        `Statuses are written like '2xx,409' or '200-204', each from 100 to 599, got ${show(piece)} in ${show(text)}.`,
      );
    }
    return range;
  });
}

export function includesStatus(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some((range) =>
    typeof range === 'number' ? range === status : range[0] <= status && status <= range[1],
  );
}

const VARIABLE = /^(?:([A-Za-z][A-Za-z0-9_-]*) )?env:([A-Za-z_][A-Za-z0-9_]*)$/;

/**
 * Reads `'Name: value'`, `'Name: env:VARIABLE'` and `'Name: Bearer env:VARIABLE'`.
 * @throws InvalidInputError naming the header and not its value.
 */
export function parseHeader(line: string): Exclude<HttpHeader, { readonly file: string }> {
  const at = line.indexOf(':');
  if (at < 1) throw new InvalidInputError(`A header is written 'Name: value', but one has no colon.`);
  const name = line.slice(0, at).trim();
  const value = line.slice(at + 1).trim();
  const [, scheme, env] = VARIABLE.exec(value) ?? [];
  if (env === undefined) return { name, value };
  return scheme === undefined ? { name, env } : { name, env, scheme };
}

// Parsing

type Complete = Required<HttpInput>;

const READ: { readonly [K in keyof Complete]: (value: unknown, name: string) => Complete[K] } = {
  method: readMethod,
  url: readUrl,
  headers: (value, name) => list(value, name, readHeader),
  body: readBody,
  ok: (value, name) => list(value, name, readStatus),
  connectTimeoutMs: (value, name) => wholeNumber(value, name, 1, 3_600_000),
  timeoutMs: (value, name) => wholeNumber(value, name, 1, 3_600_000),
  maxBody: (value, name) => wholeNumber(value, name, 0, 64 * 1024 * 1024),
  maxRedirects: (value, name) => wholeNumber(value, name, 0, 20),
  allowPrivate: readFlag,
  idempotent: readFlag,
  idempotency: readIdempotency,
};

const LONGEST_URL = 16_384;

function readMethod(value: unknown, name: string): string {
  if (typeof value === 'string' && /^[A-Z]{1,32}$/.test(value) && !['CONNECT', 'TRACE'].includes(value)) return value;
  throw new InvalidInputError(
    `${name} must be an HTTP method such as GET or POST, and not CONNECT or TRACE, got ${show(value)}.`,
  );
}

/** The errors do not contain the text, because it may contain a password. */
function readUrl(value: unknown, name: string): string {
  if (typeof value !== 'string' || value.length > LONGEST_URL || !URL.canParse(value)) {
    throw new InvalidInputError(`${name} must be an absolute URL such as https://example.com/hook.`);
  }
  const url = new URL(value);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InvalidInputError(`${name} must begin with http or https, got ${show(url.protocol)}.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new InvalidInputError(
      `${name} has a user name or password, which everybody who can read the store could read. Put user:password into a variable, ` +
        "and send the header 'Authorization: Basic env:VARIABLE'.",
    );
  }
  url.hash = '';
  return url.href;
}

/** Headers of the connection and the message, which the handler sets itself. */
const OURS = new Set([
  ...['connection', 'content-length', 'expect', 'host', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade'],
]);

/** Names of headers that usually hold secrets. */
const SECRET =
  /^(?:proxy-)?authorization$|^cookie$|(?:^|-)(?:tokens?|secret|passw(?:or)?d|credentials?|(?:api|access|auth|subscription|account)-?key|apikey|session(?:-?id)?)$/i;

function readHeader(value: unknown, what: string): HttpHeader {
  const given = Object(value) as Readonly<Record<string, unknown>>;
  if ('file' in given) {
    refuseUnknown(value, ['file'], what);
    if (typeof given.file === 'string' && isAbsolute(given.file) && !given.file.includes('\0')) {
      return { file: given.file };
    }
    throw new InvalidInputError(`${what}.file must be an absolute path, got ${show(given.file)}.`);
  }
  const name = headerName(given.name, what);
  if ('env' in given) return readVariable(given, name, what);
  refuseUnknown(value, ['name', 'value'], what);
  if (typeof given.value !== 'string' || !isHeaderValue(name, given.value)) {
    throw new InvalidInputError(`The header ${name} needs a value of one line, of characters up to U+00FF.`);
  }
  if (SECRET.test(name)) {
    throw new InvalidInputError(
      `Everybody who can read the store could read the value of the header ${name}. Say where it is instead: ` +
        `'${name}: env:VARIABLE', or a file of header lines.`,
    );
  }
  return { name, value: given.value };
}

function readVariable(given: Readonly<Record<string, unknown>>, name: string, what: string): HttpHeader {
  refuseUnknown(given, ['name', 'env', 'scheme'], what);
  const { env, scheme } = given;
  const text = scheme === undefined ? `env:${env}` : `${scheme} env:${env}`;
  if (!VARIABLE.test(text)) {
    throw new InvalidInputError(`${what} must name a variable as env, and a word as scheme, got ${show(text)}.`);
  }
  return scheme === undefined ? { name, env: String(env) } : { name, env: String(env), scheme: String(scheme) };
}

/** @throws InvalidInputError for an invalid header name, or a header of the connection. */
export function headerName(value: unknown, what: string): string {
  try {
    validateHeaderName(value as string);
  } catch {
    throw new InvalidInputError(`${what} must be the name of a header, got ${show(value)}.`);
  }
  const name = value as string;
  if (!OURS.has(name.toLowerCase())) return name;
  throw new InvalidInputError(`The header ${name} cannot be set: it is made with the connection.`);
}

/** Whether node:http accepts it. */
export function isHeaderValue(name: string, value: string): boolean {
  try {
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

function readBody(value: unknown, name: string): string | { base64: string } {
  if (typeof value === 'string') return value;
  const { base64 } = Object(value) as { base64?: unknown };
  if (typeof base64 === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return { base64 };
  throw new InvalidInputError(`${name} must be a text, or an object with the base64 of bytes.`);
}

function readStatus(value: unknown, name: string): StatusRange {
  if (isStatusRange(value)) return value;
  throw new InvalidInputError(`${name} must be a status, or the first and last of a range, got ${show(value)}.`);
}

function isStatusRange(value: unknown): value is StatusRange {
  if (!Array.isArray(value)) return isStatus(value);
  const [first, last] = value;
  return value.length === 2 && isStatus(first) && isStatus(last) && first <= last;
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) <= 599;
}

function readFlag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidInputError(`${name} must be true or false, got ${show(value)}.`);
}

function readIdempotency(value: unknown, name: string): { header: string; key: string } {
  refuseUnknown(value, ['header', 'key'], name);
  const { header, key } = value as Readonly<Record<string, unknown>>;
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) {
    return { header: readMember(`${name}.header`, () => headerName(header, `${name}.header`)), key };
  }
  throw new InvalidInputError(
    `${name}.key must be 1 to 255 visible characters of ASCII without spaces, got ${show(key)}.`,
    'invalid_input',
    { member: `${name}.key` },
  );
}

function isName(header: { readonly name: string }, name: string): boolean {
  return header.name.toLowerCase() === name.toLowerCase();
}
