import type { CommandLine } from '../documents/command-line.ts';
import type { Check } from '../documents/doctor.ts';
import type { Output } from '../documents/logs.ts';
import type { InvalidConfigError } from '../errors.ts';
import type { Holdfast } from '../queue/holdfast.ts';
import type { Fields, Values } from './fields.ts';
import type { Actor, Permission } from './permissions.ts';

/** What the dashboard knows besides the store. */
export interface Site {
  readonly holdfast: Holdfast;
  readonly commands: CommandLine;
  readonly readOnly: boolean;
  /** The configuration of the command line, if it has errors. */
  readonly refusedConfig: (() => Promise<InvalidConfigError | undefined>) | undefined;
  readonly environment: string | undefined;
  /** Reads what is kept of the output of a task's commands. Undefined where none is kept. */
  readonly outputOf: ((task: number) => Output) | undefined;
  /** Looks at the machine of this process. Undefined where the store may be on another machine. */
  readonly machineChecks: (() => readonly Check[]) | undefined;
  /** Such as `/ops/holdfast/`; undefined if nobody said it. */
  readonly basePath: string | undefined;
}

/** A request, read and permitted. */
interface Ask<Path extends Fields, Query extends Fields, Body extends Fields> extends Site {
  readonly actor: Actor;
  readonly path: Values<Path>;
  readonly query: Values<Query>;
  readonly body: Values<Body>;
  /** Who acts, and the note of the body, for the history. */
  readonly by: { readonly actor: string; readonly note?: string };
}

interface RouteOf<Path extends Fields, Query extends Fields, Body extends Fields> {
  readonly method: 'GET' | 'POST';
  /** Below `api/v1/`, such as `tasks/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly needs: Permission;
  readonly params?: Path;
  readonly query?: Query;
  readonly body?: Body;
  /** Whether the answer depends on who asks. Others, of a GET, are shared by all who ask at the same time. */
  readonly isPersonal?: boolean;
  /** The document that it answers: `show` is `holdfast.show/v1`. */
  readonly answer: string;
  /** The content of the document. */
  readonly run: (ask: Ask<Path, Query, Body>) => Promise<object>;
}

/** One call of the API. The router and its description in OpenAPI are made from it. */
export type Route = RouteOf<Fields, Fields, Fields>;

export function route<
  Path extends Fields = Record<never, never>,
  Query extends Fields = Record<never, never>,
  Body extends Fields = Record<never, never>,
>(given: RouteOf<Path, Query, Body>): Route {
  // A route is called only with what its own fields have read.
  return given as unknown as Route;
}
