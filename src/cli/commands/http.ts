import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Policy } from '../../failure/policy.ts';
import type { HttpResult } from '../../handlers/http.ts';
import {
  checkHttp,
  type HttpHeader,
  type HttpInput,
  IDEMPOTENCY_HEADER,
  parseHeader,
  parseStatuses,
} from '../../handlers/http-input.ts';
import type { Task } from '../../queue/task-view.ts';
import { plural } from '../../views/plural.ts';
import { HTTP_DELIVERY } from '../../views/task-text.ts';
import { visible, visibleLines } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { collect, readStdin } from '../flags/given.ts';
import { span } from '../flags/moment.ts';
import { type FlagWords, inFlagWords } from '../flags/named-flags.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { addRecordFlags, enqueueOptions, type RecordFlags } from '../flags/record-flags.ts';
import { recordAndWork } from '../foreground/record-and-work.ts';
import { WholeAnswer } from '../output/whole-answer.ts';
import { Problem, problemOf, usage } from '../problem.ts';

interface Flags extends RecordFlags {
  readonly header?: readonly string[];
  readonly data?: readonly string[];
  readonly ok?: string;
  readonly connectTimeout?: string;
  readonly maxBody?: string;
  readonly maxRedirects?: string;
  readonly allowPrivate?: boolean;
  readonly idempotencyHeader?: string | true;
  readonly idempotent?: boolean;
}

/** The longest body in a task's input, where it is text or base64. */
const LARGEST_BODY = 1024 * 1024;

export function declare(command: Command): void {
  command.argument('<method>').argument('[url]');
  addRecordFlags(command, 'stop an attempt after so long in all (default: 1m; at most 1h)');
  command
    .optionsGroup('What is sent')
    .option('-H, --header <header>', "'Name: value', 'Name: env:VARIABLE', or @FILE with such lines", collect)
    .option('-d, --data <data>', 'the body: text, @FILE, or - for what comes on stdin', collect)
    .option(
      '--idempotency-header [name]',
      `send a key that stays the same (default: ${IDEMPOTENCY_HEADER})`,
      headerNameFrom,
    )
    .option('--allow-private', 'let it go to this machine and private networks')
    .option('--max-redirects <number>', 'follow so many redirects (default: 5)')
    .option('--connect-timeout <duration>', 'for the name, the connection and TLS (default: 10s)')
    .optionsGroup('How its answer is judged')
    .option('--ok <statuses>', 'statuses that mean success, such as 2xx,409 (default: 2xx)')
    .option(
      '--max-body <size>',
      'read so much of the answer, such as 100k (default: 1m; all of it where it goes to a file or a pipe)',
    )
    .option('--idempotent', 'sending it twice does no harm: repeat it when its outcome is unknown')
    .option('--no-idempotent', 'sending it twice does harm: ask a person then (default for POST, PATCH and others)')
    .addHelpText('after', HELP);
  act<Flags>(command, http);
}

const HELP = `
The request is recorded first, with fsync; then it is sent from here. The body of a good answer goes to stdout, whole, and its
first 64 KiB are kept with the task. Retry-After is obeyed, and charges no attempt.
GET, HEAD, PUT, DELETE and OPTIONS may be sent twice. For other methods a person is asked when the answer was lost, unless
--idempotent or an idempotency header says that the other side can tell. The key is the task's --key, or one made for it.
Secrets are recorded as where they stand: 'Authorization: Bearer env:TOKEN', or -H @FILE, read anew at each attempt. With
'Basic env:LOGIN' LOGIN is user:password. After a redirect to another origin they are not sent.
What is sent as -d is recorded as it is now, at most 1 MiB. If it is JSON it is declared so, else as curl does. Proxies are
not used.

Exit codes
  0  delivered       1  dead       4  a person is asked       75  not finished yet       2  usage`;

async function http(cli: Cli, [method = '', url]: readonly string[], flags: Flags): Promise<number> {
  const input = await requestFrom(cli, method, url, flags);
  if (!flags.detach) refuseMissing(input.headers ?? [], cli.environment);
  const { terminal } = cli;
  const answer = terminal.json || terminal.out.isTerminal ? undefined : new WholeAnswer();
  return recordAndWork(cli, {
    name: 'http',
    type: HTTP_DELIVERY,
    flags,
    inputs: [input],
    // This environment has the secrets. That of a worker may not.
    preferHere: true,
    answer,
    options: (_, now, ofType) => optionsFrom(flags, now, ofType),
    async show([task]) {
      if (task?.state === 'succeeded') await showAnswer(cli, task, answer, input.maxBody);
    },
  });
}

/**
 * Writes the body to stdout: whole and byte for byte if it was received here, otherwise the kept part. On a terminal, the kept part
 * is shown without control characters. A person who resolved the task may have left another result, or none.
 */
async function showAnswer({ terminal }: Cli, { result }: Task, answer?: WholeAnswer, limit?: number): Promise<void> {
  const { status, bytes, body, contentType, redirects, cut } = Object(result) as Partial<HttpResult>;
  if (typeof status !== 'number') return;
  const whole = answer?.bytes !== undefined;
  const parts = [
    String(status),
    ...(typeof contentType === 'string' ? [visible(contentType)] : []),
    plural(Number(bytes), 'byte', 'bytes'),
    ...(redirects === undefined ? [] : [`after ${plural(Number(redirects), 'redirect', 'redirects')}`]),
    ...(cut && (!whole || bytes === limit) ? ['cut: there was more than is kept'] : []),
    ...(!whole && body === undefined && Number(bytes) > 0 ? ['not shown: it is no text'] : []),
  ];
  terminal.note(`  ${parts.join('  ')}`);
  if (whole) return answer?.copyTo(terminal.out);
  if (typeof body !== 'string') return;
  if (terminal.out.isTerminal) for (const line of visibleLines(body)) terminal.result(line);
  else terminal.out.raw(body);
}

/** `--attempt-timeout` is the time limit of the request, not of the task, so that it is a failure of the network. */
function optionsFrom({ attemptTimeout: _, ...flags }: Flags, now: number, ofType?: Policy) {
  return enqueueOptions(flags, HTTP_DELIVERY, now, ofType && { ofType });
}

// ── What is recorded ──

async function requestFrom(cli: Cli, method: string, url: string | undefined, flags: Flags): Promise<HttpInput> {
  if (IS_URL.test(method)) {
    throw usage('the method is missing', { hints: [`holdfast http GET ${visible(withoutSecret(method))}`] });
  }
  if (url === undefined)
    throw usage('the URL is missing', {
      hints: [`holdfast http GET ${method.includes('.') ? `https://${visible(method)}` : 'URL'}`],
    });
  const body = flags.data === undefined ? undefined : await bodyFrom(flags.data, cli.cwd);
  const input = {
    method: method.toUpperCase(),
    url,
    ...(flags.header && { headers: flags.header.map((each) => headerFrom(each, cli.cwd)) }),
    ...(body !== undefined && { body }),
    ...(flags.ok !== undefined && { ok: inFlagWords(() => parseStatuses(flags.ok as string), FLAGS, '--ok') }),
    ...(flags.connectTimeout !== undefined && {
      connectTimeoutMs: span(flags.connectTimeout, '--connect-timeout'),
    }),
    ...(flags.attemptTimeout !== undefined && { timeoutMs: span(flags.attemptTimeout, '--attempt-timeout') }),
    ...(flags.maxBody !== undefined && { maxBody: sizeFrom(flags.maxBody, '--max-body') }),
    ...(flags.maxRedirects !== undefined && {
      maxRedirects: wholeNumberFlag(flags.maxRedirects, '--max-redirects', 0, 20),
    }),
    ...(flags.allowPrivate && { allowPrivate: true }),
    ...(flags.idempotent !== undefined && { idempotent: flags.idempotent }),
    ...(flags.idempotencyHeader !== undefined && { idempotency: idempotencyFrom(flags.idempotencyHeader, flags.key) }),
  };
  return inFlagWords(() => checkHttp(input), FLAGS);
}

function headerFrom(text: string, cwd: string): HttpHeader {
  return text.startsWith('@')
    ? { file: resolve(cwd, text.slice(1)) }
    : inFlagWords(() => parseHeader(text), FLAGS, '--header');
}

/** The key is recorded, because all attempts must have the same. */
function idempotencyFrom(header: string | true, key: string | undefined) {
  return { header: header === true ? IDEMPOTENCY_HEADER : header, key: key ?? randomUUID() };
}

const IS_URL = /^https?:/i;

/** The flag takes the next argument as its name. So a URL or a method here is a mistake. */
function headerNameFrom(name: string): string {
  if (!IS_URL.test(name) && !/^(?:get|head|post|put|patch|delete|options)$/i.test(name)) return name;
  throw usage(`--idempotency-header took ${visible(withoutSecret(name))} for its name`, {
    hints: ['write it after the URL, or with a name: --idempotency-header=NAME'],
  });
}

/** Reads the body now. Later attempts send what was recorded, even if the file changes. */
async function bodyFrom([data = '', ...more]: readonly string[], cwd: string): Promise<HttpInput['body']> {
  if (more.length > 0)
    throw usage('--data may be given once', { hints: ['put several parts into one file: -d @FILE'] });
  if (data !== '-' && !data.startsWith('@')) return data;
  const bytes =
    data === '-' || data === '@-' ? await readStdin(LARGEST_BODY, tooLarge) : readBodyFile(data.slice(1), cwd);
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : { base64: bytes.toString('base64') };
}

function readBodyFile(name: string, cwd: string): Buffer {
  const path = resolve(cwd, name);
  try {
    const found = statSync(path);
    if (!found.isFile()) throw usage(`--data: ${visible(path)} is no file`);
    if (found.size > LARGEST_BODY) throw tooLarge();
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw usage(visible(`--data: ${problemOf(error).message}`), { cause: error });
  }
}

function tooLarge(): Problem {
  return usage('--data: a body may have 1 MiB, which is what a task can carry', {
    hints: ['store it where the other side can fetch it, and send the link'],
  });
}

const UNITS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 * 1024 };

function sizeFrom(text: string, flag: string): number {
  const [, digits, unit = ''] = /^(\d{1,12})([km]?)(?:i?b)?$/i.exec(text) ?? [];
  const bytes = Number(digits) * (UNITS[unit.toLowerCase()] as number);
  if (bytes >= 0 && bytes <= 64 * 1024 * 1024) return bytes;
  throw usage(`${flag} must be a size such as 4096, 100k or 1m, at most 64m, got "${visible(text)}"`);
}

/** The request is sent from this process, so a variable that is missing here is refused before anything is recorded. */
function refuseMissing(headers: readonly HttpHeader[], environment: NodeJS.ProcessEnv): void {
  for (const header of headers) {
    if ('env' in header && !environment[header.env]) {
      throw usage(`--header ${header.name}: there is no variable ${header.env} here`, {
        hints: ['for a worker that has it: --detach'],
      });
    }
    if ('file' in header && !statSync(header.file, { throwIfNoEntry: false })?.isFile()) {
      throw usage(`--header: there is no file ${visible(header.file)}`);
    }
  }
}

const FLAGS: FlagWords = {
  words: {
    method: 'The method',
    url: 'The URL',
    connectTimeoutMs: '--connect-timeout, in milliseconds,',
    timeoutMs: '--attempt-timeout, in milliseconds,',
    'idempotency.key': 'The --key, which is sent as the idempotency key,',
    'idempotency.header': '--idempotency-header',
  },
  hints: { allowPrivate: 'to allow it: --allow-private' },
};

function withoutSecret(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//').replace(/\?.*$/s, '');
}
