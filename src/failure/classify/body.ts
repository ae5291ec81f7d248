import { type Readable, read } from './inspect.ts';

/** A longer text is not parsed: an answer that explains itself is short. */
const LONGEST_JSON = 16_384;

/** Where clients keep the body of an answer, the most telling place first. */
const IN_RESPONSE = ['data', 'body', '_data', 'error'] as const;
const DIRECT = ['body', 'data', 'raw', 'rawError', 'responseBody', 'error', 'text'] as const;

/** The answer's body, parsed if it is text that looks like JSON. */
export function bodyOf(seen: Readable): unknown {
  const { response } = seen;
  if (response !== undefined && response !== null) {
    // graphql-request's response is the body; its own `body` is the text that the parsed one came from.
    for (const name of IN_RESPONSE) {
      const body = parsed(read(response, name));
      if (body !== undefined) return body;
    }
    if (read(response, 'errors') !== undefined || read(response, 'parameters') !== undefined) return response;
  }
  for (const name of DIRECT) {
    const body = parsed(seen.get(name));
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
    // Cut or foreign text; it says nothing.
    return undefined;
  }
}

/** Where a body may have its code: the holder, then the names in it, from the most exact. */
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
      'type',
      'status',
      'name',
      'reason',
    ],
  ],
];

const LONGEST_CODE = 100;

/** Every code that a body gives, with its path, the most exact first. */
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

/** What a body says in words. */
export function textIn(body: unknown): string {
  const texts = [
    read(body, 'message'),
    read(read(body, 'error'), 'message'),
    read(body, 'error_description'),
    read(read(body, 0), 'message'),
  ];
  const text = texts.find((value) => typeof value === 'string') as string | undefined;
  return text === undefined ? '' : text.slice(0, 1_024);
}
