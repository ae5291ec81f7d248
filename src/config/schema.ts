import { formatOf } from './format.ts';
import { definitions } from './retry.ts';
import type { JsonSchema } from './shapes.ts';

/** The format of `holdfast.yaml` as JSON Schema, for editors. It is made from the code that reads the file. */
export function jsonSchema(): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'holdfast.yaml',
    description: 'How Holdfast answers failures. See docs/guides/policies.md.',
    ...formatOf().schema,
    definitions: definitions(),
  };
}
