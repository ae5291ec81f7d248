import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

const FOLDER = fileURLToPath(new URL('../../schemas/documents/', import.meta.url));
const END = '.schema.json';

/** The names of the documents that have a shipped schema. */
export const DOCUMENTS: readonly string[] = readdirSync(FOLDER)
  .map((file) => file.slice(0, -END.length))
  .filter((name) => name !== 'parts');

let ajv: Ajv2020 | undefined;

function schemaOf(name: string): AnySchemaObject {
  return JSON.parse(readFileSync(`${FOLDER}${name}${END}`, 'utf8')) as AnySchemaObject;
}

/** What checks a document of this name. @throws Error if its schema is wrong. */
export function validatorOf(name: string): ValidateFunction {
  if (!ajv) {
    ajv = new Ajv2020({ allowUnionTypes: true, strictRequired: false });
    formats.default(ajv);
    ajv.addSchema(schemaOf('parts'));
  }
  const schema = schemaOf(name);
  return ajv.getSchema(schema.$id as string) ?? ajv.compile(schema);
}

/** Checks each document that a command has printed against its shipped schema. @throws Error that says what does not fit. */
export function checkDocuments(stdout: string): void {
  for (const line of stdout.split('\n')) {
    const name =
      /^\{"schema":"holdfast\.([\w.]+)\/v1"/.exec(line)?.[1] ??
      (/^\{"type":"urn:holdfast:/.test(line) ? 'problem' : undefined);
    if (name === undefined || !line.endsWith('}')) continue;
    if (!DOCUMENTS.includes(name)) throw new Error(`There is no schemas/documents/${name}${END}.`);
    const valid = validatorOf(name);
    if (!valid(JSON.parse(line)))
      throw new Error(`schemas/documents/${name}${END}: ${JSON.stringify(valid.errors)}\n${line}`);
  }
}
