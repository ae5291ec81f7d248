import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, type Table } from '../meaning.ts';

/** Node's codes for bugs in the program. */
const CODES: Table = {
  MODULE_NOT_FOUND: 'code.bug',
  ERR_MODULE_NOT_FOUND: 'code.bug',
  ERR_PACKAGE_PATH_NOT_EXPORTED: 'code.bug',
  ERR_PACKAGE_IMPORT_NOT_DEFINED: 'code.bug',
  ERR_UNSUPPORTED_DIR_IMPORT: 'code.bug',
  ERR_UNKNOWN_FILE_EXTENSION: 'code.bug',
  ERR_UNKNOWN_BUILTIN_MODULE: 'code.bug',
  ERR_UNKNOWN_MODULE_FORMAT: 'code.bug',
  ERR_REQUIRE_ESM: 'code.bug',
  ERR_REQUIRE_ASYNC_MODULE: 'code.bug',
  ERR_DLOPEN_FAILED: 'code.bug',
  ERR_ASSERTION: 'code.bug',
  ERR_DIR_CLOSED: 'code.bug',
  ERR_USE_AFTER_CLOSE: 'code.bug',
  ERR_HTTP_HEADERS_SENT: 'code.bug',
  ERR_STREAM_NULL_VALUES: 'code.bug',
  ERR_STREAM_PUSH_AFTER_EOF: 'code.bug',
  ERR_METHOD_NOT_IMPLEMENTED: 'code.bug',
  ERR_MISSING_ARGS: 'code.bug',
  ERR_OUT_OF_RANGE: 'code.bug',
  ERR_MULTIPLE_CALLBACK: 'code.bug',
  ERR_UNHANDLED_ERROR: 'unknown',
  ERR_BUFFER_OUT_OF_BOUNDS: 'code.bug',
  ERR_BUFFER_TOO_LARGE: 'too_large',
  ERR_STRING_TOO_LONG: 'too_large',
  ERR_BODY_TOO_LARGE: 'too_large',
  ERR_SERVER_NOT_RUNNING: 'code.bug',
  ERR_SERVER_ALREADY_LISTEN: 'code.bug',
  ERR_BODY_ALREADY_USED: 'code.bug',
  ERR_UNKNOWN_ENCODING: 'code.bug',
  ERR_UNKNOWN_SIGNAL: 'code.bug',
  ERR_CRYPTO_INVALID_STATE: 'code.bug',
  ERR_CRYPTO_HASH_FINALIZED: 'code.bug',
  // Invalid data, which a retry does not change.
  ERR_ENCODING_INVALID_ENCODED_DATA: 'data.parse permanent',
  ERR_ENCODING_NOT_SUPPORTED: 'data.parse permanent',
  Z_DATA_ERROR: 'data.parse permanent',
  Z_NEED_DICT: 'data.parse permanent',
  // Incomplete data: the transfer was interrupted, or the data itself is incomplete.
  Z_BUF_ERROR: 'data.parse',
  Z_MEM_ERROR: 'resource.memory transient',
  Z_STREAM_ERROR: 'code.bug',
  Z_VERSION_ERROR: 'code.bug',
  ERR_PARSE_ARGS_UNKNOWN_OPTION: 'validation',
  ERR_PARSE_ARGS_INVALID_OPTION_VALUE: 'validation',
};

/** Classes of the language. They count only if nothing else recognises the error: clients throw TypeError for network errors. */
const CLASSES: Table = {
  TypeError: 'code.bug',
  ReferenceError: 'code.bug',
  RangeError: 'code.bug',
  EvalError: 'code.bug',
  URIError: 'validation',
  SyntaxError: 'code.bug',
  AssertionError: 'code.bug',
};

export const programming: Family = {
  name: 'programming',
  sorts: ['coded', 'system'],
  codes: CODES,
  recognise: byPrefix,
};

/** Node's errors about invalid arguments and cryptography, and those of csv-parse. */
function byPrefix({ code }: ErrorFields): Finding | undefined {
  if (typeof code !== 'string') return undefined;
  if (code.startsWith('CSV_'))
    return found(/^CSV_(?:INVALID_OPTION|OPTION_)/.test(code) ? 'code.bug' : 'data.parse', 'code');
  // Brotli and Zstandard.
  if (/^(?:ERR__ERROR_FORMAT_|ZSTD_error_)/.test(code)) return found('data.parse permanent', 'code');
  if (!code.startsWith('ERR_')) return undefined;
  if (code.startsWith('ERR_INVALID_') && !/^ERR_INVALID_(?:URL|PROTOCOL|DOMAIN)/.test(code))
    return found('code.bug', 'code');
  if (code.startsWith('ERR_OSSL_')) {
    // A key or data in another format than expected. All other errors of OpenSSL are wrong calls.
    return found(
      /BAD_DECRYPT|BAD_|DECODE|PARSE|NO_START_LINE|UNSUPPORTED|WRONG/.test(code) ? 'data.parse permanent' : 'code.bug',
      'code',
    );
  }
  return undefined;
}

/** Recognises an error by its class if nothing else did. */
export function byClass(fields: ErrorFields): Finding | undefined {
  const name = Object.hasOwn(CLASSES, fields.name) ? fields.name : fields.class;
  const answer = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
  return answer && found(answer, 'name', 'class');
}
