import type { ErrorFields } from './error-fields.ts';
import { read, readNumber } from './inspect.ts';

/** A number in a sentence, not part of a date, time, version or path. */
const NUMBER = String.raw`(\d{1,3}(?:,\d{3})+|\d{1,15})(?![\d:/-]|\.\d)`;
const ALLOWED = new RegExp(
  String.raw`\b(?:limit|maximum|max|allowed|allowance|bucket size|capacity)(?: (?:is|of))?[ :=(]{1,3}${NUMBER}`,
  'i',
);
const REQUESTED = new RegExp(String.raw`\brequested(?: tokens)?[ :=(]{1,3}${NUMBER}`, 'i');

/**
 * Whether a request fits into the whole allowance of a limit, if the answer says how much was requested and how much is allowed.
 * A request that does not fit fails however long it waits.
 */
export function fitsAllowance(fields: ErrorFields): boolean | undefined {
  const cost = read(read(fields.body, 'extensions'), 'cost');
  const asked = readNumber(cost, 'requestedQueryCost') ?? numberIn(REQUESTED, fields.words);
  const allowed = readNumber(read(cost, 'throttleStatus'), 'maximumAvailable') ?? numberIn(ALLOWED, fields.words);
  return asked === undefined || allowed === undefined ? undefined : asked <= allowed;
}

function numberIn(form: RegExp, text: string): number | undefined {
  const number = form.exec(text)?.[1];
  return number === undefined ? undefined : Number(number.replaceAll(',', ''));
}
