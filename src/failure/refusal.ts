import { InvalidInputError } from '../errors.ts';
import { isRecord, refuseUnknown } from '../options.ts';
import { show } from '../show.ts';
import { OTHERWISE_CALLED } from './otherwise-called.ts';

/** The error for an invalid policy. */
export function refusal(message: string): InvalidInputError {
  return new InvalidInputError(message, 'invalid_policy');
}

/**
 * Reads an object whose `kind` says which other fields it may have. The caller checks the values of the fields.
 * @throws InvalidInputError for anything but an object, an unknown kind, or a field that its kind does not have.
 */
export function tagged<Kind extends string>(
  value: unknown,
  fields: Readonly<Record<Kind, readonly string[]>>,
  what: string,
): Readonly<Record<string, unknown>> & { readonly kind: Kind } {
  if (!isRecord(value)) throw refusal(`${what} must be an object with a kind, got ${show(value)}.`);
  const kind = value.kind as Kind;
  if (typeof kind !== 'string' || !Object.hasOwn(fields, kind)) {
    throw refusal(`The kind of ${what} must be one of ${Object.keys(fields).join(', ')}, got ${show(kind)}.`);
  }
  refuseUnknown(
    value,
    ['kind', ...fields[kind]],
    `${what} of kind '${kind}'`,
    OTHERWISE_CALLED.backoff,
    'invalid_policy',
  );
  return value as Readonly<Record<string, unknown>> & { readonly kind: Kind };
}
