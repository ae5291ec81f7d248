import { bodyInMessage } from './body.ts';
import { type Readable, read } from './inspect.ts';

export interface Status {
  readonly number: number;
  readonly field: string;
  /** Whether it came with a response. Without one, the application may have set the status itself. */
  readonly answered: boolean;
}

const DIRECT = ['status', 'statusCode', 'httpStatus', 'httpStatusCode', 'status_code', 'error_code'] as const;

/** Objects that contain a status, and the names of its fields. */
const NESTED = [
  ['response', ['status', 'statusCode', 'status_code', 'error_code']],
  ['$metadata', ['httpStatusCode']],
  ['meta', ['statusCode']],
  ['$response', ['statusCode']],
  ['res', ['status', 'statusCode']],
  ['output', ['statusCode']],
] as const;

/** Fields that show that a numeric `code` is an HTTP status. Other libraries use such numbers for other things. */
const SIGNS = ['response', 'headers', 'isAxiosError', 'statusText', 'statusMessage', 'responseBody'] as const;

export function statusOf(fields: Readable): Status | undefined {
  for (const field of DIRECT) {
    const number = httpNumber(fields.get(field));
    if (number !== undefined) return { number, field, answered: hasAnswer(fields) };
  }
  for (const [outer, names] of NESTED) {
    const holder = outer === 'response' ? fields.response : fields.get(outer);
    if (holder === undefined || holder === null) continue;
    for (const name of names) {
      const number = httpNumber(read(holder, name));
      if (number !== undefined) return { number, field: `${outer}.${name}`, answered: outer !== 'output' };
    }
  }
  const number = httpNumber(fields.code);
  if (number === undefined) return inMessage(fields);
  const signed =
    SIGNS.some((sign) => fields.get(sign) != null) ||
    isRpcName(fields.get('status')) ||
    fields.message === PHRASES[number];
  return signed || isGoogle(fields) ? { number, field: 'code', answered: true } : undefined;
}

/** Clients that copy an answer into their message: `400 {"error": …}`, or JSON that holds its status. */
function inMessage(fields: Readable): Status | undefined {
  const body = bodyInMessage(fields);
  if (body === undefined) return undefined;
  const error = read(body, 'error');
  const number =
    httpNumber(/^([45]\d\d) [[{]/.exec(fields.message)?.[1]) ??
    httpNumber(read(body, 'statusCode') ?? read(body, 'status') ?? read(error, 'statusCode')) ??
    (typeof read(error, 'status') === 'string' ? httpNumber(read(error, 'code')) : undefined);
  return number === undefined ? undefined : { number, field: 'message', answered: true };
}

/** Whether it is a word such as `RESOURCE_EXHAUSTED`, which Google's JSON has beside the number. */
function isRpcName(status: unknown): boolean {
  return typeof status === 'string' && /^[A-Z]{2,}(?:_[A-Z]+)*$/.test(status);
}

/** Google's errors list `{ reason, message }` beside the code. */
function isGoogle(fields: Readable): boolean {
  return typeof read(read(fields.get('errors'), 0), 'reason') === 'string';
}

function hasAnswer(fields: Readable): boolean {
  const { response } = fields;
  return (response !== undefined && response !== null) || fields.get('headers') != null || fields.get('body') != null;
}

function httpNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 300 && value < 600 ? value : undefined;
  return typeof value === 'string' && /^[345]\d\d$/.test(value) ? Number(value) : undefined;
}

/** Reason phrases. A number with its phrase is a status. */
export const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Entity',
  423: 'Locked',
  425: 'Too Early',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};
