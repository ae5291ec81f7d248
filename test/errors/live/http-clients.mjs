// HTTP clients. What a peer does is the same for all; a client that hides it is said so beside it.
import axios from 'axios';
import got from 'got';
import ky from 'ky';
import needle from 'needle';
import nodeFetch from 'node-fetch';
import { ofetch } from 'ofetch';
import superagent from 'superagent';
import { Client, interceptors, request as undiciRequest } from 'undici';
import wretch from 'wretch';
import { each } from './cases.mjs';
import { HOST } from './loopback.mjs';

const at = (port, scheme = 'http') => `${scheme}://${HOST}:${port}/`;
const soon = { timeout: 150 };
const patient = { timeout: 10_000 };

const CONNECTIONS = {
  'nobody listens': ['transient net.refused source', async (call, on) => call(at(await on.closedPort()), patient)],
  'the connection is reset after the request was sent': [
    'transient net.reset source ambiguous',
    async (call, on) => call(at(await on.resetting()), patient),
  ],
  'the connection is closed in order after the request was sent': [
    'transient net.reset source ambiguous',
    async (call, on) => call(at(await on.hangingUp()), patient),
  ],
  'no answer comes in time': [
    'transient net.timeout source ambiguous | transient timeout task ambiguous',
    async (call, on) => call(at(await on.silent()), soon),
  ],
  'the peer speaks another protocol': [
    'unknown net.protocol source',
    async (call, on) => call(at(await on.babbling()), patient),
  ],
  'nobody vouches for the certificate': [
    'permanent tls.certificate source',
    async (call, on) => call(at(await on.tls(), 'https'), patient),
  ],
  'TLS meets a port that speaks plain text': [
    'permanent tls.handshake source',
    async (call, on) => call(at(await on.babbling(), 'https'), patient),
  ],
  'the body ends before its length': [
    'transient net.reset source ambiguous',
    async (call, on) =>
      call(
        at(
          await on.tcp((socket) =>
            socket.once('data', () =>
              socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"a"'),
            ),
          ),
        ),
        patient,
      ),
  ],
};

const ANSWERS = {
  400: ['permanent http.4xx task', async (call, on) => call(await on.answering(400, 'bad'), patient)],
  401: ['permanent auth.invalid source', async (call, on) => call(await on.answering(401), patient)],
  403: ['permanent auth.forbidden task', async (call, on) => call(await on.answering(403), patient)],
  404: ['permanent http.404 task', async (call, on) => call(await on.answering(404), patient)],
  408: ['transient http.408 source ambiguous', async (call, on) => call(await on.answering(408), patient)],
  413: ['permanent too_large task', async (call, on) => call(await on.answering(413), patient)],
  '429, to wait 30 seconds': [
    'rate_limited http.429 quota after 30s',
    async (call, on) => call(await on.answering(429, '', { 'retry-after': '30' }), patient),
  ],
  '429, to wait until a date': [
    'rate_limited http.429 quota after 90s',
    async (call, on) => {
      const now = Math.floor(Date.now() / 1_000) * 1_000;
      const headers = { date: new Date(now).toUTCString(), 'retry-after': new Date(now + 90_000).toUTCString() };
      return call(await on.answering(429, '', headers), patient);
    },
  ],
  500: ['transient http.5xx source ambiguous', async (call, on) => call(await on.answering(500, 'oops'), patient)],
  501: ['permanent http.5xx source', async (call, on) => call(await on.answering(501), patient)],
  '503, to wait 2 minutes': [
    'transient http.5xx source after 120s',
    async (call, on) => call(await on.answering(503, 'down', { 'retry-after': '120' }), patient),
  ],
  504: ['transient http.5xx source ambiguous', async (call, on) => call(await on.answering(504), patient)],
  'redirects without end': [
    'permanent http.redirect task',
    async (call, on) =>
      call(await on.http((_q, response) => response.writeHead(302, { location: '/again' }).end()), patient),
  ],
  'an outage page where JSON should be': [
    'unknown data.parse source ambiguous',
    async (call, on) =>
      call(await on.answering(200, '<html>be right back</html>', { 'content-type': 'application/json' }), patient),
  ],
  'it is told to stop while it waits': [
    'transient abort worker ambiguous',
    async (call, on) => {
      const stop = new AbortController();
      const url = at(await on.tcp((socket) => socket.once('data', () => stop.abort())));
      return call(url, { ...patient, signal: stop.signal });
    },
  ],
};
const ALL = { ...CONNECTIONS, ...ANSWERS };
const without = (...names) => Object.fromEntries(names.map((name) => [name, null]));
const STATUSES = Object.keys(ANSWERS).filter((name) => /^\d/.test(name));

const callNeedle = (url, { timeout, signal }) => {
  return needle(
    'post',
    url,
    { a: 1 },
    { open_timeout: 5_000, response_timeout: timeout, signal, follow_max: 3, json: true },
  );
};

const undiciPost = async (url, { timeout, signal }) => {
  const client = new Client(new URL(url).origin).compose(interceptors.responseError());
  try {
    const { body } = await undiciRequest(url, {
      method: 'POST',
      body: '{}',
      headersTimeout: timeout,
      signal,
      dispatcher: client,
    });
    return await body.json();
  } finally {
    await client.destroy();
  }
};

const fetchThenThrow = async (url, { timeout, signal }) => {
  const response = await nodeFetch(url, { method: 'POST', body: '{}', timeout, signal, follow: 3 });
  // What handlers commonly write where a client does not throw for a status.
  if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}`), { response });
  return response.json();
};

export default [
  each(
    'superagent',
    (url, { timeout, signal }) => {
      const request = superagent.post(url).send({ a: 1 }).retry(0).timeout({ response: timeout });
      signal?.addEventListener('abort', () => request.abort());
      return request;
    },
    ALL,
    // `abort()` leaves the promise without an end.
    without('it is told to stop while it waits', 'redirects without end'),
  )([
    'redirects without end',
    // It throws the last redirect, and not that it was one too many.
    'permanent http.redirect task | unknown http.3xx task',
    async (on) =>
      superagent
        .get(await on.http((_q, response) => response.writeHead(302, { location: '/again' }).end()))
        .redirects(3),
  ]),
  each('needle', callNeedle, ALL, {
    ...without(...STATUSES, 'redirects without end', 'an outage page where JSON should be'),
    // It waits for the rest for ever.
    ...without('the body ends before its length'),
    // Its time limit destroys the socket without a word of why.
    'no answer comes in time': 'transient net.reset source ambiguous',
  })(),
  each(
    'ofetch',
    (url, options) => ofetch(url, { method: 'POST', body: { a: 1 }, retry: 0, ...options }),
    ALL,
    // It hands on what it cannot parse as text.
    without('an outage page where JSON should be'),
  )(),
  each(
    'wretch',
    (url, { timeout, signal }) =>
      wretch(url)
        .options({ signal: signal ?? AbortSignal.timeout(timeout) })
        .post({ a: 1 })
        .json(),
    ALL,
  )(),
  // On Node 20 it waits for the rest of a body for ever.
  each('node-fetch 2', fetchThenThrow, ALL, without('the body ends before its length'))(),
  each('undici 7', undiciPost, ALL, {
    ...without('nobody vouches for the certificate', 'redirects without end'),
  })([
    'nobody vouches for the certificate',
    'permanent tls.certificate source',
    async (on) => undiciRequest(at(await on.tls(), 'https')),
  ]),
  each(
    'axios',
    (url, options) =>
      axios.post(
        url,
        { a: 1 },
        { ...options, maxRedirects: 3, responseType: 'json', transitional: { silentJSONParsing: false } },
      ),
    ALL,
  )(),
  each(
    'got',
    (url, { timeout, signal }) =>
      got.get(url, { retry: { limit: 0 }, timeout: { response: timeout }, signal, responseType: 'json' }),
    ALL,
  )(),
  each('ky', (url, options) => ky.post(url, { json: { a: 1 }, retry: 0, ...options }).json(), ALL)(),
];
