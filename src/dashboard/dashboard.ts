import { readFile } from 'node:fs/promises';
import { type Context, Hono } from 'hono';
import type { Check } from '../documents/doctor.ts';
import { withoutInputs } from '../documents/hidden-inputs.ts';
import type { Output } from '../documents/logs.ts';
import { type InvalidConfigError, InvalidInputError } from '../errors.ts';
import { checkLog, harmless, type Logger, silent } from '../log.ts';
import { list, name, oneOf, refuseUnknown } from '../options.ts';
import type { Holdfast } from '../queue/holdfast.ts';
import { documentOf } from '../views/json-shapes.ts';
import { bodyOf, readFields, readPath, readQuery } from './fields.ts';
import { limitedBody, refuseForms, refuseOtherHosts, refuseOtherSites, SECURITY_HEADERS } from './guards.ts';
import { Live } from './live.ts';
import { builtPages, etagOf, isKnown, Pages } from './page.ts';
import { type Actor, ALL_PERMISSIONS, mustHave, type Permission, USUAL_PERMISSIONS } from './permissions.ts';
import { ApiProblem, isUnexpected, problemResponse, readOnlyProblem } from './problems.ts';
import type { Route, Site } from './route.ts';
import { ROUTES } from './routes/index.ts';
import { SharedAnswers } from './shared-answers.ts';

/** Somebody who may use the dashboard: the name that stands in the history of what they do, and what they may do. */
export interface DashboardUser {
  readonly name: string;
  /** Default: everything but `commands`, which lets workers of the command line run any command. */
  readonly can?: readonly Permission[];
}

/**
 * Says who makes a request: a name, or a name with permissions. Undefined refuses the request; a Response is sent as it is, such as one
 * that leads to a login.
 */
export type Authorize = (
  request: Request,
) => string | DashboardUser | Response | undefined | Promise<string | DashboardUser | Response | undefined>;

export interface DashboardOptions {
  /**
   * Who may use it: your function is asked at every request. `'anyone'` asks nobody: whoever can reach it can do everything but `commands`, so use it
   * only behind something that checks, or with `readOnly`.
   */
  readonly authorize: Authorize | 'anyone';
  /** The path under which it is mounted, such as `/ops/holdfast`. Default: the root. */
  readonly basePath?: string;
  /** Nothing can be changed, whoever asks. Default false. */
  readonly readOnly?: boolean;
  /** Shown beside the name, such as `production`. */
  readonly environment?: string;
  /** The host names under which it answers, without ports. Default: any. */
  readonly hosts?: readonly string[];
  /** Where unexpected errors are logged. Default: nowhere. */
  readonly log?: Logger;
}

/** What the command line sets besides. */
export interface InnerOptions extends DashboardOptions {
  /** Writes commands with the flags that name the store. */
  readonly command?: (words: string) => string;
  /** The folder of the built pages. */
  readonly pages?: string;
  /** The configuration that applies to the command line, if it has errors. */
  readonly refusedConfig?: () => Promise<InvalidConfigError | undefined>;
  /** Reads what is kept of the output of a task's commands, on this machine. */
  readonly outputOf?: (task: number) => Output;
  /** Looks at the disk of the store and at this process. */
  readonly machineChecks?: () => readonly Check[];
  /** Besides `hosts` it answers under any IP address. */
  readonly anyAddress?: boolean;
}

/** A dashboard that any server can mount: it answers requests of the web standard. */
export interface Dashboard {
  readonly fetch: (request: Request) => Promise<Response>;
  /** Ends the live views. The store stays open. */
  readonly close: () => Promise<void>;
}

const OPTIONS = [
  'authorize',
  'basePath',
  'readOnly',
  'environment',
  'hosts',
  'log',
  'command',
  'pages',
  'refusedConfig',
  'anyAddress',
  'outputOf',
  'machineChecks',
];

const API = 'api/v1/';

/** An input may have a mebibyte. */
const LARGEST_BODY = 2 * 1024 * 1024;

/**
 * Makes the dashboard of a store: pages for people, and the JSON API under `api/v1/` that they use. It opens nothing; pass its `fetch`
 * to your server.
 * @throws InvalidInputError for an invalid option.
 */
export function createDashboard(holdfast: Holdfast, options: DashboardOptions): Dashboard {
  refuseUnknown(options, OPTIONS, 'createDashboard');
  const {
    readOnly = false,
    environment,
    hosts,
    log = silent,
    command,
    pages,
    refusedConfig,
    anyAddress,
    outputOf,
    machineChecks,
  } = options as InnerOptions;
  const basePath = basePathFrom(options.basePath);
  const authorize = authorizeFrom(options.authorize);
  oneOf(readOnly, [true, false], 'readOnly');
  if (environment !== undefined) name(environment, 'environment');
  if (hosts !== undefined) list(hosts, 'hosts', name);
  checkLog(log);
  const commands = { command: command ?? ((words: string) => `holdfast ${words}`) };
  const site: Site = { holdfast, commands, readOnly, environment, basePath, refusedConfig, outputOf, machineChecks };
  const files = new Pages(pages ?? builtPages());
  const quiet = harmless(log);
  const live = new Live(holdfast);
  const shared = new SharedAnswers();

  const app = new Hono({ getPath: (request) => `/${pathBelow(basePath, new URL(request.url).pathname)}` });
  for (const route of ROUTES) {
    app.on(route.method, `/${API}${route.path.replaceAll(/\{(\w+)\}/g, ':$1')}`, (context) =>
      answerTo(route, site, context, authorize, shared),
    );
  }
  app.get(`/${API}events`, async ({ req }) => {
    refuseOtherSites(req.raw);
    const actor = await actorOf(req.raw, authorize);
    if (actor instanceof Response) return actor;
    mustHave(actor, 'view');
    return req.raw.method === 'HEAD' ? live.headers() : live.stream();
  });
  app.get(`/${API}openapi.json`, async ({ req }) => {
    refuseOtherSites(req.raw);
    const actor = await actorOf(req.raw, authorize);
    if (actor instanceof Response) return actor;
    const text = await readFile(new URL('../../schemas/openapi.json', import.meta.url), 'utf8');
    return new Response(text, { headers: { 'content-type': 'application/json', 'cache-control': 'no-cache' } });
  });
  app.all(`/${API}*`, ({ req }) => {
    const known = ROUTES.some(({ path }) =>
      new RegExp(`/${API}${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(req.path),
    );
    throw known
      ? new ApiProblem('method_not_allowed', `This address does not take ${req.method}.`)
      : new ApiProblem('not_found', 'The API has no such address.', ['its description: api/v1/openapi.json']);
  });
  app.on(['GET', 'HEAD'], '/*', async ({ req }) => {
    const actor = await actorOf(req.raw, authorize);
    if (actor instanceof Response) return actor;
    return files.answer(req.raw, pathBelow(basePath, new URL(req.url).pathname), basePath);
  });
  app.onError((error) => {
    if (isUnexpected(error)) quiet.error({ err: error }, 'The dashboard could not answer a request.');
    return problemResponse(error);
  });

  return {
    fetch: async (request) => {
      const answer = await answered(app, request, () => refuseOtherHosts(request, hosts, anyAddress));
      for (const [name, value] of Object.entries(SECURITY_HEADERS)) answer.headers.set(name, value);
      return answer;
    },
    close: async () => live.close(),
  };
}

async function answered(app: Hono, request: Request, refuse: () => void): Promise<Response> {
  try {
    refuse();
    const answer = await app.fetch(request);
    // The headers of an answer that `authorize` made may not be changed.
    return new Response(answer.body, answer);
  } catch (error) {
    return problemResponse(error);
  }
}

async function answerTo(
  route: Route,
  site: Site,
  { req }: Context,
  authorize: Authorize,
  shared: SharedAnswers,
): Promise<Response> {
  const request = req.raw;
  refuseOtherSites(request);
  if (route.method === 'POST') refuseForms(request);
  const actor = await actorOf(request, authorize);
  if (actor instanceof Response) return actor;
  if (site.readOnly && route.method === 'POST' && route.needs !== 'view') {
    throw readOnlyProblem();
  }
  mustHave(actor, route.needs);
  const path = readPath(route.params ?? {}, req.param());
  const query = readQuery(route.query ?? {}, new URL(request.url).searchParams);
  const given = route.method === 'POST' ? bodyOf(await limitedBody(request, LARGEST_BODY)) : {};
  const body = readFields(route.body ?? {}, given, 'The body');
  const note = body.note as string | undefined;
  const by = { actor: actor.name, ...(note !== undefined && { note }) };
  const hidesInputs = !actor.can.has('inputs');
  const commands = { ...site.commands, hidesInputs };
  const answer = async () => {
    const content = await route.run({ ...site, commands, actor, path, query, body, by });
    return JSON.stringify(documentOf(route.answer, hidesInputs ? (withoutInputs(content) as object) : content));
  };
  if (route.method === 'GET') {
    return jsonResponse(
      request,
      await (route.isPersonal ? answer() : shared.to(`${hidesInputs} ${questionOf(request)}`, answer)),
    );
  }
  try {
    return jsonResponse(request, await answer());
  } finally {
    shared.forget();
  }
}

function questionOf(request: Request): string {
  const { pathname, search } = new URL(request.url);
  return `${pathname}${search}`;
}

function jsonResponse(request: Request, text: string): Response {
  const headers: Record<string, string> = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  if (request.method === 'GET') {
    headers.etag = etagOf(text);
    headers['cache-control'] = 'private, no-cache';
    if (isKnown(request, headers.etag)) return new Response(null, { status: 304, headers });
  }
  return new Response(text, { headers });
}

/** Who asks. @throws ApiProblem if nobody is let in. */
async function actorOf(request: Request, authorize: Authorize): Promise<Actor | Response> {
  const who: unknown = await authorize(request);
  if (who instanceof Response) return who;
  if (who === undefined || who === null || who === false || who === '') {
    throw new ApiProblem('unauthorized', 'The dashboard does not know who you are, or does not let you in.');
  }
  return actorFrom(who);
}

/** @throws Error for anything that names nobody, such as `true`: the program that mounts the dashboard has a mistake, so nobody is let in. */
function actorFrom(who: unknown): Actor {
  const { name: given, can = USUAL_PERMISSIONS } = (typeof who === 'string' ? { name: who } : who) as DashboardUser;
  try {
    const permissions = list(can, 'can', (one, what) => oneOf(one as Permission, ALL_PERMISSIONS, what));
    return { name: name(given, 'name'), can: new Set(permissions) };
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`\`authorize\` must return a name, { name, can }, a Response or undefined: ${message}`, { cause });
  }
}

const anyone: Authorize = () => 'anyone';

function authorizeFrom(given: unknown): Authorize {
  if (given === 'anyone') return anyone;
  if (typeof given === 'function') return given as Authorize;
  throw new InvalidInputError(
    "createDashboard needs `authorize`: a function of the request that returns who asks, or undefined to refuse. 'anyone' lets everybody do everything.",
  );
}

/** `/ops/holdfast` as `/ops/holdfast/`. */
function basePathFrom(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string' && /^\/[\w\-.~/%@:]*$/.test(given) && !given.includes('//'))
    return given.replace(/\/?$/, '/');
  throw new InvalidInputError('basePath must be a path such as /ops/holdfast.');
}

/** A server that mounts it may have taken the base path away already. */
function pathBelow(basePath: string | undefined, pathname: string): string {
  if (basePath !== undefined && `${pathname}/`.startsWith(basePath)) return pathname.slice(basePath.length);
  return pathname.slice(1);
}
