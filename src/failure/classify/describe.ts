import { read, readText } from './inspect.ts';

/** How many characters of a message are kept. */
const LONGEST_MESSAGE = 8_192;

const LONGEST_NAME = 128;

/** The name and message of a thrown value of any kind: bounded text without NUL, control characters or lone surrogates. */
export function describe(thrown: unknown): { readonly name: string; readonly message: string } {
  return { name: clean(nameOf(thrown), LONGEST_NAME), message: clean(messageOf(thrown), LONGEST_MESSAGE) };
}

function nameOf(thrown: unknown): string {
  if (thrown === null || (typeof thrown !== 'object' && typeof thrown !== 'function')) {
    return thrown === null ? 'null' : typeof thrown;
  }
  const named = readText(thrown, 'name');
  // A subclass that does not set `name` is named by its constructor.
  const telling = named !== undefined && named !== '' && named !== 'Error';
  return (telling ? named : readText(read(thrown, 'constructor'), 'name')) || typeof thrown;
}

function messageOf(thrown: unknown): string {
  switch (typeof thrown) {
    case 'string':
      return thrown;
    case 'object':
    case 'function':
      return thrown === null ? 'null was thrown' : messageOfObject(thrown);
    case 'symbol':
    case 'undefined':
    case 'boolean':
    case 'number':
    case 'bigint':
      return `${String(thrown)} was thrown`;
  }
}

function messageOfObject(thrown: object): string {
  const message = read(thrown, 'message');
  if (message === FETCH_FAILED) {
    const inner = innerMessage(thrown);
    return inner === undefined ? message : `${message}: ${inner}`;
  }
  if (typeof message === 'string' && message !== '') return message;
  if (typeof message === 'number') return String(message);
  const inner = innerMessage(thrown);
  if (inner !== undefined) return inner;
  const code = readText(thrown, 'code');
  if (code !== undefined) return code;
  return `${typeof thrown === 'function' ? 'a function' : 'an object'} without a message was thrown`;
}

/** Node's `fetch` says what happened only in its cause. */
const FETCH_FAILED = 'fetch failed';

/** The message of its cause, or of the first error that it or its cause gathers. Undefined if there is none. */
function innerMessage(thrown: object): string | undefined {
  const cause = read(thrown, 'cause');
  const gathered = read(read(cause, 'errors') ?? read(thrown, 'errors'), 0);
  return readText(cause, 'message') || readText(gathered, 'message') || undefined;
}

/** Text that any database and terminal accepts. It is cut before it is cleaned, so that 100 MB cost no more than 8 KiB. */
export function clean(text: string, longest: number): string {
  const cut = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the point
  return /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ud800-\udfff]/.test(cut)
    ? // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
      cut.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd').toWellFormed()
    : cut;
}
