import { thrownFrom } from '../documents/thrown.ts';
import { InvalidInputError } from '../errors.ts';
import { text } from '../options.ts';
import { LONGEST_NOTE, type SeenTask } from '../queue/operate.ts';
import { TASK_STATES } from '../task.ts';
import { type Field, nullable, numberField, optional, textField } from './fields.ts';

/** Fields that several routes have. */

const LONGEST_FILTER = 4_096;

export const FILTER: Field<string> = textField(
  'a filter, such as `state:dead reason:http.*`, as on the command line',
  LONGEST_FILTER,
);

export const NOTE: Field<string | undefined> = optional(textField('a note about why, for the history', LONGEST_NOTE));

/** Of a source or a queue: what both limits are. Null removes one, and one that is left out stays. */
export const LIMITS = {
  pace: optional(nullable(textField('how often tasks may start, such as `10/s` or `5000/h`', 100))),
  concurrency: optional(nullable(numberField('how many may run at the same time', 1))),
};

const LONGEST_ERROR = 16_384;

/** An error that a person wrote: a message, or JSON with what a library attaches to its errors. */
export const ERROR: Field<unknown> = {
  about: 'an error: what it says, or JSON such as `{"status": 503, "headers": {"retry-after": "5"}}`',
  schema: { type: 'string', minLength: 1, maxLength: LONGEST_ERROR },
  required: true,
  read: (value, what) => {
    const given = text(value, what, LONGEST_ERROR);
    if (!given.trimStart().startsWith('{')) return new Error(given);
    try {
      return thrownFrom(JSON.parse(given));
    } catch (cause) {
      throw new InvalidInputError(`${what} is no JSON: ${(cause as Error).message}.`);
    }
  },
};

export const MAY_REPEAT = 'even if it has succeeded, or may have happened already';

/** Of `ifStill`, as JSON of the API: the state and executions that the person saw. */
export const IF_STILL: Field<SeenTask | undefined> = optional({
  about:
    'acts only if the task still has this state and so many executions, as it was seen; otherwise the answer is 409',
  schema: {
    type: 'object',
    additionalProperties: false,
    required: ['state', 'executions'],
    properties: { state: { type: 'string', enum: TASK_STATES }, executions: { type: 'integer', minimum: 0 } },
  },
  required: false,
  // Who acts on the task checks it.
  read: (value) => value as SeenTask,
});

export function limitField(otherwise: number, most: number): Field<number | undefined> {
  return optional(numberField(`how many; default ${otherwise}`, 1, most));
}
