import { type Readable, read } from './inspect.ts';

/** Longer text is not parsed. Error bodies are short. */
const LONGEST_JSON = 16_384;

/** The fields in which clients keep the body of a response, the most informative first. */
const IN_RESPONSE = ['data', 'body', '_data', 'error'] as const;
const DIRECT = ['body', 'data', 'raw', 'rawError', 'responseBody', 'error', 'text'] as const;

/** The body of the response, parsed if it looks like JSON. Some clients keep it only in the error's message. */
export function bodyOf(fields: Readable): unknown {
  return unwrapped(inFields(fields) ?? bodyInMessage(fields));
}

/** Google's streaming client puts the response as JSON into the message of another response. */
function unwrapped(body: unknown, level = 1): unknown {
  const inner = level > 2 ? undefined : parsed(read(read(body, 'error'), 'message'));
  return inner === undefined ? body : unwrapped(inner, level + 1);
}

/** The JSON at the end of a message. A status and words may stand before it. */
export function bodyInMessage(fields: Readable): unknown {
  if (!fields.message.includes('{')) return undefined;
  const message = fields.get('message') ?? fields.message;
  if (typeof message !== 'string' || message.length > LONGEST_JSON) return undefined;
  const from = message.search(/[[{]\s*["{]/);
  const to = Math.max(message.lastIndexOf('}'), message.lastIndexOf(']'));
  return from < 0 || to < from ? undefined : parsed(message.slice(from, to + 1));
}

function inFields(fields: Readable): unknown {
  const { response } = fields;
  if (response !== undefined && response !== null) {
    // With graphql-request, `response` is the parsed body, and `response.body` is its text.
    for (const name of IN_RESPONSE) {
      const body = parsed(read(response, name));
      if (body !== undefined) return body;
    }
    if (read(response, 'errors') !== undefined || read(response, 'parameters') !== undefined) return response;
  }
  for (const name of DIRECT) {
    const body = parsed(fields.get(name));
    if (body !== undefined) return body;
  }
  return undefined;
}

function parsed(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return value;
  if (typeof value !== 'string' || value.length > LONGEST_JSON || !/^\s*[{[]/.test(value)) return undefined;
  try {
    return JSON.parse(value);
  } catch {
    // Truncated JSON or other text is no evidence.
    return undefined;
  }
}

/** Where a body may have an error code: a path, then names of fields there, the most exact first. */
const HOLDERS: readonly (readonly [path: readonly (string | number)[], names: readonly string[]])[] = [
  [['error', 'details', 0], ['reason']],
  [['error', 'errors', 0], ['reason']],
  [['errors', 0, 'extensions'], ['code']],
  [
    ['errors', 0],
    ['code', 'type', 'errorType', 'reason'],
  ],
  [['error', 'innererror'], ['code']],
  [['error', 'reason'], ['.tag']],
  [['error'], ['error_code', 'errorCode', 'code', 'type', 'status', '.tag', 'name']],
  [['details', 0], ['issue']],
  [['detail'], ['status', 'code']],
  [[0], ['errorCode', 'code']],
  [
    [],
    [
      'error',
      'errorCode',
      'error_code',
      'errcode',
      'policyName',
      'code',
      'Code',
      '__type',
      'errorType',
      'error_type',
      'error_name',
      'type',
      'status',
      'name',
      'reason',
    ],
  ],
];

const LONGEST_CODE = 100;

/** Every error code in a body, with its path, the most exact first. */
export function codesIn(body: unknown): (readonly [code: string, path: string])[] {
  const codes: (readonly [string, string])[] = [];
  for (const [path, names] of HOLDERS) {
    let holder = body;
    for (const step of path) holder = read(holder, step);
    if (typeof holder !== 'object' || holder === null) continue;
    for (const name of names) {
      const code = read(holder, name);
      if (typeof code === 'string' && code.length <= LONGEST_CODE) codes.push([code, [...path, name].join('.')]);
    }
  }
  return codes;
}

/** The fields of a body that may hold a message. */
const WORDS: readonly (readonly (string | number)[])[] = [
  ['message'],
  ['error', 'message'],
  ['error'],
  ['error_description'],
  ['error_message'],
  ['description'],
  ['detail', 'message'],
  ['detail'],
  ['errors', 0, 'message'],
  ['errors', 0],
  [0, 'message'],
  ['msg'],
];

const LONGEST_WORDS = 1_024;

/** All messages in a body, one per line. */
export function wordsIn(body: unknown): string {
  if (typeof body === 'string') return body.slice(0, LONGEST_WORDS);
  if (typeof body !== 'object' || body === null) return '';
  return WORDS.map((path) => path.reduce<unknown>(read, body))
    .filter((text) => typeof text === 'string')
    .join('\n')
    .slice(0, LONGEST_WORDS);
}
