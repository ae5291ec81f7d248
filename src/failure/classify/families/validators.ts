import type { ErrorFields } from '../error-fields.ts';
import { read } from '../inspect.ts';
import { type Family, type Finding, found, type Table } from '../meaning.ts';

const NAMES: Table = {
  ZodError: 'validation',
  ValiError: 'validation',
  ArkErrors: 'validation',
  ArkError: 'validation',
  TraversalError: 'validation',
  AggregateTraversalError: 'validation',
  StructError: 'validation',
  ParseError: 'validation',
  JoiError: 'validation',
  SchemaError: 'validation',
  StandardSchemaError: 'validation',
  TransformDecodeError: 'validation',
  TransformDecodeCheckError: 'validation',
  TypeBoxError: 'validation',
  TypeGuardError: 'validation',
  AssertError: 'validation',
  ValidatorError: 'validation',
  ValidationErrors: 'validation',
  SuperstructError: 'validation',
  ValidateError: 'validation',
  InvalidArgumentError: 'validation',
  InvalidInputError: 'validation',
  ArgumentError: 'validation',
  BadRequestError: 'validation',
};

export const validators: Family = {
  name: 'validators',
  codes: {
    VALIDATION_ERROR: 'validation',
    ERR_VALIDATION: 'validation',
    invalid_input: 'validation',
    payload_rejected: 'validation',
    payload_too_large: 'too_large',
  },
  vendorCodes: { FST_ERR_VALIDATION: 'validation', FST_ERR_CTP_BODY_TOO_LARGE: 'too_large' },
  names: NAMES,
  recognise: byShape,
};

/** Validators have no common class, but each has a list of what is wrong. */
function byShape(fields: ErrorFields): Finding | undefined {
  // class-validator throws a list of these. Errors of nested objects are in `children`.
  if (typeof fields.get('property') === 'string') {
    const field = ['constraints', 'children'].find((name) => fields.get(name) !== undefined);
    if (field !== undefined) return found('validation', field);
  }
  if (fields.is('ZodError', '$ZodError', 'ValiError')) return found('validation', 'name');
  if (fields.get('isJoi') === true) return found('validation', 'isJoi');
  if (!fields.is('ValidationError', 'Error', 'TypeError', 'AssertionError', 'StructError')) return undefined;
  // ajv: applications attach its errors or throw them.
  if (fields.get('ajv') === true || isAjv(read(fields.get('errors'), 0))) return found('validation', 'errors');
  if (!fields.is('ValidationError')) return undefined;
  if (fields.status !== undefined) return undefined;
  return found('validation', 'name');
}

function isAjv(first: unknown): boolean {
  return typeof read(first, 'keyword') === 'string' && typeof read(first, 'schemaPath') === 'string';
}

/** Errors about tokens that a caller sent: jsonwebtoken, jose. */
export const tokens: Family = {
  name: 'tokens',
  vendorCodes: {
    ERR_JWT_EXPIRED: 'auth.expired',
    ERR_JWT_INVALID: 'auth.invalid',
    ERR_JWT_CLAIM_VALIDATION_FAILED: 'auth.invalid',
    ERR_JWS_INVALID: 'auth.invalid',
    ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'auth.invalid',
    ERR_JWE_INVALID: 'auth.invalid',
    ERR_JWE_DECRYPTION_FAILED: 'auth.invalid',
    ERR_JWKS_NO_MATCHING_KEY: 'auth.invalid',
    ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'auth.invalid',
    ERR_JWKS_INVALID: 'auth.invalid unknown',
    ERR_JWKS_TIMEOUT: 'net.timeout',
    ERR_JWK_INVALID: 'validation',
    ERR_JOSE_NOT_SUPPORTED: 'not_implemented',
    ERR_JOSE_ALG_NOT_ALLOWED: 'auth.invalid',
  },
  vendorNames: {
    TokenExpiredError: 'auth.expired',
    JsonWebTokenError: 'auth.invalid',
    NotBeforeError: 'auth.invalid',
    JwksRateLimitError: 'throttled',
    SigningKeyNotFoundError: 'auth.invalid',
  },
};
