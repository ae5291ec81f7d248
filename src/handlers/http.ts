import { promises as dns, type LookupAddress } from 'node:dns';
import { type IncomingMessage, request as plainRequest, STATUS_CODES } from 'node:http';
import { request as secureRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Milliseconds } from '../duration.ts';
import { tightestLimit } from '../failure/classify/quotas.ts';
import { Failed, NeedsManual } from '../failure/signals.ts';
import { isPrivateAddress } from './http-address.ts';
import { type Resolved, resolveHeaders, type SentHeader } from './http-headers.ts';
import { bareHost, type HttpInput, includesStatus, mayBeRepeated } from './http-input.ts';
import { asNode, bodyOf, headerText, sentence, utf8, withDefaults } from './http-message.ts';

export interface HttpResult {
  readonly status: number;
  readonly contentType?: string;
  /** The address of a new resource, from the answer. */
  readonly location?: string;
  /** How many bytes of the body were read, and whether the body was longer. */
  readonly bytes: number;
  readonly cut?: true;
  /** The first 64 KiB of the body, if it is UTF-8. */
  readonly body?: string;
  /** How many redirects led to the URL that answered. Its query is left out. */
  readonly redirects?: number;
  readonly url?: string;
}

/** The task of a request. */
export interface HttpTask {
  readonly signal: AbortSignal;
  heartbeat(): void;
  /** Called with what the headers of an answer say, where they say how many requests are left. */
  rateLimit?(limit: { readonly remaining: number; readonly resetsIn: string }): void;
}

export interface HttpOptions {
  /** The variables for headers, usually the environment of the process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Takes the body of each good answer as it comes, byte for byte, and all of it unless the request has a `maxBody`. */
  readonly answer?: { begin(): void; write(chunk: Buffer): void };
  /** All addresses of a name. Asked once for each host that a request goes to. Default: as the system resolves it. */
  readonly lookup?: (host: string) => Promise<readonly LookupAddress[]>;
}

/** An answer that is not a success. It has the members of HTTP client errors, so that the classifier reads it like one. */
class HttpStatusError extends Error {
  override readonly name = 'HttpStatusError';
  readonly status: number;
  readonly response: { readonly status: number; readonly headers: IncomingMessage['headers']; readonly data?: string };

  constructor(message: string, { statusCode = 0, headers }: IncomingMessage, data: string | undefined) {
    super(message);
    this.status = statusCode;
    this.response = { status: statusCode, headers, ...(data !== undefined && { data }) };
  }
}

const CONNECT_TIMEOUT: Milliseconds = 10_000;
const TIMEOUT: Milliseconds = 60_000;
const MAX_BODY = 1024 * 1024;
const MAX_REDIRECTS = 5;
const OK = [[200, 299]] as const;

/** How much of a body is stored with the task. */
const KEPT = 64 * 1024;

/** How long one of several addresses may take before the next is tried. Node's 250 ms give up on slow lines. */
const ADDRESS_BY_ADDRESS = { autoSelectFamilyAttemptTimeout: 1_000 };

/**
 * The handler of HTTP requests. An execution succeeds with the answer if its status is one of `ok`; any other is thrown as
 * an `HttpStatusError`, with the headers in which the server may have asked for a wait. Network errors are thrown as Node made them.
 * An error before anything was sent is marked (`syscall: 'connect'`), so that it is not ambiguous.
 *
 * Each host is resolved once, its addresses are checked, and the connection goes to exactly these. Redirects are followed by
 * RFC 9110; secrets are sent only to the first origin.
 */
export function http(options: HttpOptions): (input: HttpInput, task: HttpTask) => Promise<HttpResult> {
  const lookup = options.lookup ?? ((host: string) => dns.lookup(host, { all: true }));
  return async (input, task) => {
    task.signal.throwIfAborted();
    const resolved = await resolveHeaders(input, options.environment);
    const attempt = new Attempt(input, task, { lookup, answer: options.answer }, resolved);
    try {
      return await attempt.deliver();
    } finally {
      attempt.over();
    }
  };
}

/** One request of those that an attempt makes: the first, and one for each redirect. */
interface Hop {
  readonly method: string;
  readonly url: URL;
  readonly headers: readonly SentHeader[];
  readonly body: Buffer | undefined;
}

/**
 * ```
 * connecting ──(connected)──► sent ──(headers)──► answered ──(redirect)──► connecting, to the next place
 *     │ connectTimeout          │ timeout            └──(body read, or enough of it)──► result, or HttpStatusError
 *     └─► nothing has happened  └─► it may have happened
 * ```
 */
class Attempt {
  readonly #input: HttpInput;
  readonly #task: HttpTask;
  readonly #lookup: NonNullable<HttpOptions['lookup']>;
  readonly #answer: HttpOptions['answer'];
  readonly #resolved: Resolved;
  readonly #limit = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** The time limit and the signal of the worker. */
  readonly #stop: AbortSignal;
  /** Whether the server may have received the current request. */
  #sent = false;
  #redirects = 0;

  constructor(
    input: HttpInput,
    task: HttpTask,
    { lookup, answer }: { lookup: NonNullable<HttpOptions['lookup']>; answer: HttpOptions['answer'] },
    resolved: Resolved,
  ) {
    this.#input = input;
    this.#task = task;
    this.#lookup = lookup;
    this.#answer = answer;
    this.#resolved = resolved;
    const limit = input.timeoutMs ?? TIMEOUT;
    this.#timer = setTimeout(() => this.#limit.abort(timedOut(this.#sent ? 'answer' : 'connection', limit)), limit);
    this.#stop = AbortSignal.any([task.signal, this.#limit.signal]);
  }

  over(): void {
    clearTimeout(this.#timer);
  }

  async deliver(): Promise<HttpResult> {
    const { method, url } = this.#input;
    const body = bodyOf(this.#input);
    let hop: Hop = { method, url: new URL(url), headers: withDefaults(this.#resolved.headers, body), body };
    /** The answer to a request that must not be repeated, where all that is left is to look at a page about it. */
    let done: number | undefined;
    try {
      for (;;) {
        const answer = await this.#exchange(hop);
        if (hop.url.host === new URL(url).host) this.#noteLimit(answer);
        if (!this.#leadsOn(answer)) return await this.#end(hop, answer);
        answer.destroy();
        const { statusCode: status = 0 } = answer;
        if (saysNothing(status, hop.method)) throw this.#moved(hop, answer);
        const page = seesOther(status, hop.method);
        if (page && !mayBeRepeated(this.#input)) done ??= status;
        hop = this.#redirected(hop, status, headerText(answer.headers.location as string), page);
      }
    } catch (error) {
      if (done === undefined || this.#task.signal.aborted) throw error;
      throw this.#lostTheAnswer(method, done, error);
    }
  }

  #noteLimit({ headers }: IncomingMessage): void {
    const limit = tightestLimit(headers, Date.now());
    if (limit) this.#task.rateLimit?.({ ...limit, resetsIn: `${limit.resetsIn}ms` });
  }

  /** Sends one request, and answers when its headers are there. */
  async #exchange(hop: Hop): Promise<IncomingMessage> {
    this.#task.heartbeat();
    this.#sent = false;
    const connecting = new AbortController();
    const patience = this.#input.connectTimeoutMs ?? CONNECT_TIMEOUT;
    const timer = setTimeout(() => connecting.abort(timedOut('connection', patience)), patience);
    const stop = AbortSignal.any([this.#stop, connecting.signal]);
    try {
      const addresses = await unlessAborted(this.#addressesOf(hop.url), stop);
      return await this.#send(hop, addresses, stop, () => {
        this.#sent = true;
        clearTimeout(timer);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #addressesOf({ hostname }: URL): Promise<readonly LookupAddress[]> {
    const host = bareHost(hostname);
    const family = isIP(host);
    const found = family === 0 ? await this.#lookup(host) : [{ address: host, family }];
    const forbidden = this.#input.allowPrivate ? undefined : found.find(({ address }) => isPrivateAddress(address));
    if (!forbidden) return found;
    throw new Failed(
      `${hostname} is ${forbidden.address}, an address of this machine or a private network, so nothing was sent there. ` +
        'If this is intended, allow private addresses (--allow-private).',
      { kind: 'permanent', reason: 'http.private_address' },
    );
  }

  #send(
    { method, url, headers, body }: Hop,
    addresses: readonly LookupAddress[],
    stop: AbortSignal,
    onConnected: () => void,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const secure = url.protocol === 'https:';
      const sending = (secure ? secureRequest : plainRequest)(url, {
        method,
        headers: asNode(headers),
        // Each request has its own connection: the server may have closed a kept one, which looks like a lost answer.
        agent: false,
        lookup: pinnedTo(addresses),
        ...ADDRESS_BY_ADDRESS,
      });
      const abort = () => sending.destroy(stop.reason);
      sending.once('socket', (socket) => socket.once(secure ? 'secureConnect' : 'connect', onConnected));
      sending.once('close', () => {
        stop.removeEventListener('abort', abort);
        // This has no effect if the request was answered or failed before.
        reject(
          stop.aborted ? stop.reason : this.#understood(asGoodAsNone('The connection was closed without an answer')),
        );
      });
      sending.once('response', resolve);
      sending.once('upgrade', (answer, socket) => {
        socket.destroy();
        reject(this.#switched(answer));
      });
      sending.on('error', (error) => reject(stop.aborted ? stop.reason : this.#understood(error)));
      if (stop.aborted) abort();
      else stop.addEventListener('abort', abort, { once: true });
      sending.end(body);
    });
  }

  /** Marks whether the request was sent, and so whether it may have had its effect. Node's errors do not say it. */
  #understood(error: NodeJS.ErrnoException): Error {
    const { code = '' } = error;
    if (!this.#sent && CUT_OFF.includes(code)) error.syscall = 'connect';
    if (!this.#sent || !code.startsWith('HPE_') || mayBeRepeated(this.#input)) return error;
    return asGoodAsNone(`The answer is not HTTP: ${error.message}`);
  }

  /** An unrequested 101. Node hands over the connection and gives no answer to the request. */
  #switched({ headers: { upgrade } }: IncomingMessage): Error {
    const protocol = upgrade === undefined ? '' : ` (${this.#resolved.hide(upgrade).slice(0, 100)})`;
    const what = `101 Switching Protocols: the server changed to another protocol${protocol}, so the request was not delivered.`;
    return mayBeRepeated(this.#input)
      ? new Failed(what, { kind: 'unknown', reason: 'net.protocol' })
      : asGoodAsNone(what);
  }

  #leadsOn({ statusCode = 0, headers: { location } }: IncomingMessage): boolean {
    return REDIRECTS.includes(statusCode) && location !== undefined && !this.#isOk(statusCode);
  }

  #isOk(status: number): boolean {
    return includesStatus(this.#input.ok ?? OK, status);
  }

  #redirected(hop: Hop, status: number, location: string, page: boolean): Hop {
    const most = this.#input.maxRedirects ?? MAX_REDIRECTS;
    const refused = (why: string) =>
      new Failed(`${status} ${STATUS_CODES[status]}: ${why}`, { kind: 'permanent', reason: 'http.redirect' });
    if (this.#redirects >= most) throw refused(`this is more than the ${most} redirects that are followed.`);
    if (!URL.canParse(location, hop.url.href)) throw refused('it leads to what is no URL.');
    const url = new URL(location, hop.url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refused(`it leads to ${url.protocol}`);
    if (url.username !== '' || url.password !== '') throw refused('it leads to a URL with a user name or password.');
    if (hop.url.protocol === 'https:' && url.protocol === 'http:') {
      throw refused('it leads from https to http, where everybody could read along.');
    }
    this.#redirects += 1;
    const kept = url.origin === hop.url.origin ? hop.headers : hop.headers.filter(({ secret }) => !secret);
    if (!page) return { ...hop, url, headers: kept };
    const headers = kept.filter(({ name }) => !/^content-/i.test(name));
    return { method: 'GET', url, headers, body: undefined };
  }

  /** The server received the request, but does not say that it was done, nor that it must be sent elsewhere. */
  #moved({ method, url }: Hop, { statusCode: status = 0, headers }: IncomingMessage): Failed {
    const location = headerText(headers.location ?? '');
    const to = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
    const where = to === undefined ? '' : ` to ${this.#resolved.hide(`${to.origin}${to.pathname}`).slice(0, 500)}`;
    return new Failed(
      `${status} ${STATUS_CODES[status]}${where}: this answer does not say whether the ${method} was done, and does not ask to repeat it ` +
        `there. Send it to the right address, or count this answer as a success (--ok 2xx,${status}).`,
      { kind: 'permanent', reason: 'http.moved' },
    );
  }

  async #end({ url }: Hop, answer: IncomingMessage): Promise<HttpResult> {
    const { statusCode: status = 0, headers } = answer;
    const isOk = this.#isOk(status);
    const limit = this.#input.maxBody ?? (isOk && this.#answer ? Number.POSITIVE_INFINITY : MAX_BODY);
    const { bytes, cut, text } = await this.#read(answer, isOk ? limit : Math.min(limit, KEPT), isOk);
    const body = text === undefined ? undefined : this.#resolved.hide(text);
    if (!isOk) throw new HttpStatusError(this.#resolved.hide(sentence(answer, this.#redirects, body)), answer, body);
    const hidden = (value: string | undefined) => value && this.#resolved.hide(headerText(value)).slice(0, 2_048);
    const [contentType, location] = [hidden(headers['content-type']), hidden(headers.location)];
    return {
      status,
      ...(contentType !== undefined && { contentType }),
      ...(location !== undefined && { location }),
      bytes,
      ...(cut && { cut: true }),
      ...(body !== undefined && { body }),
      ...(this.#redirects > 0 && {
        redirects: this.#redirects,
        url: this.#resolved.hide(`${url.origin}${url.pathname}`).slice(0, 2_048),
      }),
    };
  }

  /**
   * Reads a body up to a limit, and keeps the beginning. Beyond the limit the connection is closed. Of an answer that is no
   * success whatever came of its body will do: the status and its headers count.
   */
  async #read(answer: IncomingMessage, limit: number, whole: boolean) {
    const kept: Buffer[] = [];
    let [bytes, cut] = [0, false];
    if (whole) this.#answer?.begin();
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        this.#task.heartbeat();
        const taken = chunk.subarray(0, limit - bytes);
        if (whole) this.#answer?.write(taken);
        if (bytes < KEPT) kept.push(taken.subarray(0, KEPT - bytes));
        bytes += taken.length;
        cut = taken.length < chunk.length;
        if (cut) break;
      }
    } catch (error) {
      if (whole || this.#task.signal.aborted) throw this.#stop.aborted ? this.#stop.reason : error;
      cut = true;
    }
    cut ||= bytes > KEPT;
    return { bytes, cut, text: utf8(Buffer.concat(kept), cut) || undefined };
  }

  #lostTheAnswer(method: string, status: number, cause: unknown): NeedsManual {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new NeedsManual(
      `${method} was answered with ${status} ${STATUS_CODES[status]}, so it was probably done. Getting the page of the redirect failed: ` +
        `${why} Check whether it was done before you send it again.`,
      { reason: 'http.redirect', cause },
    );
  }
}

const REDIRECTS = [301, 302, 303, 307, 308];

/** Error codes of a connection that ended. Before anything was sent, they mean that there was no connection. */
const CUT_OFF = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'];

/** RFC 9110, 15.4.4: after 303 the request is done, and a page about it is fetched. */
function seesOther(status: number, method: string): boolean {
  return status === 303 && method !== 'GET' && method !== 'HEAD';
}

/**
 * After 301 or 302, most clients replace a POST (and some a PUT) by a GET of the new page, which does not prove that the request was
 * done. 307 and 308 say that the request must be repeated, and 303 says that it was done.
 */
function saysNothing(status: number, method: string): boolean {
  return (status === 301 || status === 302) && !['GET', 'HEAD', 'OPTIONS'].includes(method);
}

/** An answer that says no more than a lost connection: the request may have been done. */
function asGoodAsNone(why: string): Error {
  return Object.assign(new Error(why), { code: 'ECONNRESET', syscall: 'read' });
}

function timedOut(missing: 'connection' | 'answer', ms: Milliseconds): Error {
  const what = missing === 'connection' ? 'No connection' : 'No complete answer';
  const syscall = missing === 'connection' ? 'connect' : 'read';
  return Object.assign(new Error(`${what} within ${ms} ms`), { code: 'ETIMEDOUT', syscall });
}

/** The first promise that settles. A name lookup cannot be stopped, only ignored. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Always returns the checked addresses: a second lookup could return others. */
function pinnedTo(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, options, callback) => {
    if (options.all) callback(null, [...addresses]);
    else callback(null, addresses[0]?.address as string, addresses[0]?.family as number);
  };
}
