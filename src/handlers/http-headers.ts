import { readFile, stat } from 'node:fs/promises';
import { NeedsManual } from '../failure/signals.ts';
import { type HttpHeader, type HttpInput, headerName, isHeaderValue, parseHeader } from './http-input.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A header as one attempt sends it. */
export interface SentHeader {
  readonly name: string;
  readonly value: string;
  /** It came from the environment or a file, so it is sent only to the first origin. */
  readonly secret: boolean;
}

export interface Resolved {
  readonly headers: readonly SentHeader[];
  /** Removes our secrets from a text of the server, which may have sent them back. */
  hide(text: string): string;
}

const LARGEST_FILE = 64 * 1024;

/** Shorter values occur by chance and are not replaced. */
const SHORTEST_SECRET = 4;

/**
 * Reads the headers that were stored as references.
 * @throws NeedsManual if a variable or file is missing or invalid: only a person can fix that.
 */
export async function resolveHeaders(input: HttpInput, environment: Environment): Promise<Resolved> {
  const secrets = new Set<string>();
  const headers: SentHeader[] = [];
  for (const header of input.headers ?? []) {
    if ('file' in header) {
      for (const line of await linesOf(header.file)) headers.push(secretOf(line, header.file, environment, secrets));
    } else if ('env' in header) headers.push(fromEnvironment(header, environment, secrets));
    else headers.push({ ...header, secret: false });
  }
  if (input.idempotency) {
    const { header: name, key: value } = input.idempotency;
    headers.push({ name, value, secret: false });
  }
  return { headers, hide: hiding(secrets) };
}

async function linesOf(path: string): Promise<string[]> {
  let text: string;
  try {
    const found = await stat(path);
    if (!found.isFile() || found.size > LARGEST_FILE) throw new Error('it is no file of at most 64 KiB');
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw missing(`The file of headers ${path} cannot be read: ${(error as Error).message}.`, error);
  }
  return text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'));
}

function secretOf(line: string, path: string, environment: Environment, secrets: Set<string>): SentHeader {
  let header: Exclude<HttpHeader, { file: string }>;
  try {
    header = parseHeader(line);
    headerName(header.name, 'A header');
  } catch {
    // The original message may show the secret, so it is not passed on.
    throw missing(`The file of headers ${path} has a line that is not a header 'Name: value'.`);
  }
  if ('env' in header) return fromEnvironment(header, environment, secrets);
  return sent(header.name, header.value, secrets);
}

function fromEnvironment(
  { name, env, scheme }: Extract<HttpHeader, { env: string }>,
  environment: Environment,
  secrets: Set<string>,
): SentHeader {
  const value = environment[env]?.trim();
  if (value === undefined || value === '') {
    throw missing(`The header ${name} needs the environment variable ${env}, which this worker does not have.`);
  }
  if (scheme === undefined) return sent(name, value, secrets);
  if (!/^basic$/i.test(scheme) || !value.includes(':')) return sent(name, `${scheme} ${value}`, secrets);
  secrets.add(value).add(value.slice(value.indexOf(':') + 1));
  return sent(name, `${scheme} ${Buffer.from(value).toString('base64')}`, secrets);
}

function sent(name: string, value: string, secrets: Set<string>): SentHeader {
  if (!isHeaderValue(name, value)) {
    throw missing(`The value for the header ${name} has line ends or characters that a header cannot have.`);
  }
  // The server may send back the whole value, or the part after `Bearer`.
  secrets.add(value).add(value.slice(value.lastIndexOf(' ') + 1));
  return { name, value, secret: true };
}

function missing(what: string, cause?: unknown): NeedsManual {
  return new NeedsManual(
    `${what} Nothing was sent. Add it, restart the worker if it is a variable, and retry the task.`,
    {
      reason: 'http.secret_missing',
      ...(cause !== undefined && { cause }),
    },
  );
}

function hiding(secrets: ReadonlySet<string>): (text: string) => string {
  const forms = [...secrets]
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
    .sort((a, b) => b.length - a.length);
  return (text) => forms.reduce((left, secret) => left.replaceAll(secret, '***'), text);
}
