import { LONGEST_NOTE } from '../queue/operate.ts';
import { type Field, numberField, optional, textField } from './fields.ts';

/** Fields that several routes have. */

const LONGEST_FILTER = 4_096;

export const FILTER: Field<string> = textField(
  'a filter, such as `state:dead reason:http.*`, as on the command line',
  LONGEST_FILTER,
);

export const NOTE: Field<string | undefined> = optional(textField('a note about why, for the history', LONGEST_NOTE));

export const MAY_REPEAT = 'even if it has succeeded, or may have happened already';

export function limitField(otherwise: number, most: number): Field<number | undefined> {
  return optional(numberField(`how many; default ${otherwise}`, 1, most));
}
