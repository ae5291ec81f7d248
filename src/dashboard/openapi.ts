import { type Fields, schemaOf } from './fields.ts';
import { ACT_HEADER } from './guards.ts';
import type { Route } from './route.ts';

/** JSON Schemas of documents by their names, such as `show`. */
export type DocumentSchemas = Readonly<Record<string, object>>;

/** The description of the API in OpenAPI 3.1, made from its routes. */
export function openApi(routes: readonly Route[], schemas: DocumentSchemas, version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = `/${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version,
      description:
        'The JSON API of the dashboard of Holdfast. Answers are the documents that the commands print with --json; errors are problems of RFC 9457.',
    },
    servers: [{ url: 'api/v1', description: 'below the address of the dashboard' }],
    paths: { ...paths, '/events': EVENTS },
    components: {
      schemas: { ...bundled(schemas), problem: PROBLEM },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'HOLDFAST_UI_TOKEN of `holdfast ui`, or what `authorize` asks for',
        },
      },
    },
    security: [{ token: [] }],
  };
}

function operationOf(
  { method, path, summary, needs, params = {}, query = {}, body, answer }: Route,
  schemas: DocumentSchemas,
): object {
  return {
    operationId: nameOf(method, path),
    summary,
    'x-permission': needs,
    parameters: [
      ...parametersOf(params, 'path'),
      ...parametersOf(query, 'query'),
      ...(method === 'POST' ? [{ name: ACT_HEADER, in: 'header', required: true, schema: { const: '1' } }] : []),
    ],
    ...(method === 'POST' && {
      requestBody: { content: { 'application/json': { schema: schemaOf(body ?? {}) } } },
    }),
    responses: {
      200: {
        description: `holdfast.${answer}/v1`,
        content: { 'application/json': { schema: schemaOfAnswer(answer, schemas) } },
      },
      default: {
        description: 'a problem',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/problem' } } },
      },
    },
  };
}

/** `getTasksIdExplain`. */
function nameOf(method: string, path: string): string {
  const words = path.split(/\W+/).filter((word) => word !== '');
  return [method.toLowerCase(), ...words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)].join('');
}

function parametersOf(fields: Fields, place: 'path' | 'query'): object[] {
  return Object.entries(fields).map(([name, { about, schema, required }]) => ({
    name,
    in: place,
    required: place === 'path' || required,
    description: about,
    schema,
  }));
}

/** The schema of the document, which says at least what it is called. */
function schemaOfAnswer(answer: string, schemas: DocumentSchemas): object {
  if (Object.hasOwn(schemas, answer)) return { $ref: `#/components/schemas/${answer}` };
  return { type: 'object', required: ['schema'], properties: { schema: { const: `holdfast.${answer}/v1` } } };
}

/** Schemas that refer to one another by file, as components of one document. */
function bundled(schemas: DocumentSchemas): Record<string, unknown> {
  const components: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(schemas)) {
    const { $defs = {}, $id: _, $schema: __, ...own } = schema as Readonly<Record<string, unknown>>;
    components[name] = referring(own, name);
    for (const [part, definition] of Object.entries($defs as object))
      components[`${name}.${part}`] = referring(definition, name);
  }
  return components;
}

function referring(schema: unknown, name: string): unknown {
  if (Array.isArray(schema)) return schema.map((each) => referring(each, name));
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string' ? componentOf(value, name) : referring(value, name),
    ]),
  );
}

/** `task.schema.json#/$defs/state` and `#/$defs/state` as components. */
function componentOf(reference: string, name: string): string {
  const [, file, part] = /^(?:.*?([\w.-]+)\.schema\.json)?(?:#(?:\/\$defs\/(.+))?)?$/.exec(reference) ?? [];
  return `#/components/schemas/${file ?? name}${part === undefined ? '' : `.${part}`}`;
}

const EVENTS = {
  get: {
    operationId: 'getEvents',
    summary: 'server-sent events that say that something changed: ask again for what you show',
    'x-permission': 'view',
    responses: {
      200: {
        description:
          'events named `tasks` and `sources`, `away` when the store does not answer and `back` when it does again; every 15 s a comment',
        content: { 'text/event-stream': { schema: { type: 'string' } } },
      },
    },
  },
};

const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code', 'hints', 'retryable'],
  properties: {
    type: { type: 'string', description: 'urn:holdfast:problem: and the code' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string', description: 'what happened, for people' },
    code: { type: 'string', description: 'for programs: docs/reference/errors.md, and the codes of the API' },
    hints: { type: 'array', items: { type: 'string' }, description: 'what to do next' },
    retryable: { type: 'boolean', description: 'whether the same call may succeed later' },
  },
};
