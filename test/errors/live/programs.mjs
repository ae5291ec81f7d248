// What happens inside the program: validators, child processes, helpers, formats.
import childProcess from 'node:child_process';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import Ajv from 'ajv';
import { type } from 'arktype';
import Bottleneck from 'bottleneck';
import { IsInt, ValidateNested, validateOrReject } from 'class-validator';
import * as cockatiel from 'cockatiel';
import crossSpawn from 'cross-spawn';
import { parse as parseCsv } from 'csv-parse/sync';
import { execa } from 'execa';
import { XMLParser } from 'fast-xml-parser';
import Joi from 'joi';
import * as jose from 'jose';
import jsonwebtoken from 'jsonwebtoken';
import spawn from 'nano-spawn';
import Breaker from 'opossum';
import pRetry, { AbortError } from 'p-retry';
import pTimeout from 'p-timeout';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import * as superstruct from 'superstruct';
import { x } from 'tinyexec';
import * as valibot from 'valibot';
import { parse as parseYaml } from 'yaml';
import * as yup from 'yup';
import { z } from 'zod';
import { $ } from 'zx';
import { each, failed, library } from './cases.mjs';

const VALID = 'permanent validation task';
const node = process.execPath;

const ajv = new Ajv();
const checksAge = ajv.compile({ type: 'object', properties: { age: { type: 'integer' } }, required: ['age'] });
class Person {
  constructor(age) {
    this.age = age;
  }
}
IsInt()(Person.prototype, 'age');
class Team {}
ValidateNested()(Team.prototype, 'people');

const WRONG = {
  'a text where a number should be': [VALID, (call) => call({ age: 'x' })],
  'nothing at all': [VALID, (call) => call({})],
  'no object': [VALID, (call) => call(null)],
};

/** How a program may end, whoever started it. `call(code)` runs JavaScript in a Node of its own. */
const SCRIPTS = {
  'it exits with 1': ['unknown process.exit task', (call) => call('process.exit(1)')],
  'it asks to be run later': ['transient process.tempfail task', (call) => call('process.exit(75)')],
  'it does not know its arguments': ['permanent process.usage task', (call) => call('process.exit(64)')],
  'it is killed': ['transient process.killed worker ambiguous', (call) => call("process.kill(process.pid, 'SIGKILL')")],
  'it crashes': ['unknown process.crashed task ambiguous', (call) => call("process.kill(process.pid, 'SIGSEGV')")],
};
const at = (name) => `/nowhere/${name}`;
const signed = (options) => jsonwebtoken.sign({ a: 1 }, 's', options);

const quietZx = $({ quiet: true, verbose: false });

export default [
  each(
    'zod 3',
    (value) => z.object({ age: z.number().int() }).parse(value),
    WRONG,
  )([
    'an async check',
    VALID,
    () =>
      z
        .string()
        .refine(async () => false)
        .parseAsync('x'),
  ]),
  each('valibot', (value) => valibot.parse(valibot.object({ age: valibot.number() }), value), WRONG)(),
  each(
    'yup',
    (value) => yup.object({ age: yup.number().required() }).validate(value),
    WRONG,
  )([
    'all faults at once',
    VALID,
    () => yup.object({ a: yup.string().required(), b: yup.string().required() }).validate({}, { abortEarly: false }),
  ]),
  each(
    'joi',
    (value) => Joi.attempt(value, Joi.object({ age: Joi.number().required() }).required()),
    WRONG,
  )(['from validateAsync', VALID, () => Joi.string().validateAsync(1)]),
  each(
    'ajv',
    (value) => {
      if (!checksAge(value)) throw new Ajv.ValidationError(checksAge.errors);
    },
    WRONG,
  )(
    [
      'its errors as they are',
      VALID,
      () => {
        checksAge({});
        throw Object.assign(new Error(ajv.errorsText(checksAge.errors)), { errors: checksAge.errors });
      },
    ],
    ['a schema that is wrong', 'permanent code.bug task', () => new Ajv().compile({ type: 'nonsense' })],
  ),
  each('superstruct', (value) => superstruct.assert(value, superstruct.object({ age: superstruct.number() })), WRONG)(),
  each(
    'arktype',
    (value) => type({ age: 'number' }).assert(value),
    WRONG,
  )(
    // A ParseError like any other.
    ['a schema that is wrong', 'unknown data.parse source ambiguous', () => type('nonsense')],
  ),
  library(
    'class-validator',
    ['a text where a number should be', VALID, () => validateOrReject(new Person('x'))],
    ['nothing at all', VALID, () => validateOrReject(new Person())],
    [
      'something that is wrong deeper down',
      VALID,
      () => {
        const team = new Team();
        team.people = [new Person('x')];
        return validateOrReject(team);
      },
    ],
  ),
  each(
    '@sinclair/typebox',
    (value) => Value.Parse(Type.Object({ age: Type.Integer() }), value),
    WRONG,
  )(['an assertion', VALID, () => Value.Assert(Type.String(), 1)]),
  each('execa', (code, options) => execa(node, ['-e', code], { ...options }), SCRIPTS)(
    ['there is no such program', 'permanent process.not_found task', () => execa(at('x'))],
    [
      'it takes too long',
      'transient timeout task ambiguous',
      () => execa(node, ['-e', 'setInterval(() => {}, 1000)'], { timeout: 150 }),
    ],
    [
      'it writes more than is allowed',
      'permanent process.max_buffer task',
      () => execa(node, ['-e', "console.log('x'.repeat(5000))"], { maxBuffer: 100 }),
    ],
    [
      'it is told to stop',
      'transient abort worker ambiguous',
      () => {
        const stop = new AbortController();
        const running = execa(node, ['-e', 'setInterval(() => {}, 1000)'], { cancelSignal: stop.signal });
        stop.abort();
        return running;
      },
    ],
    ['the file may not be run', 'permanent process.not_executable task', () => execa('/etc/passwd')],
  ),
  each(
    'nano-spawn',
    (code, options) => spawn(node, ['-e', code], options),
    SCRIPTS,
  )(
    ['there is no such program', 'permanent process.not_found task', () => spawn(at('x'))],
    // It kills by SIGTERM, as anybody may.
    [
      'it takes too long',
      'transient timeout task ambiguous | transient process.killed worker ambiguous',
      () => spawn(node, ['-e', 'setInterval(() => {}, 1000)'], { timeout: 150 }),
    ],
  ),
  each('tinyexec', (code, nodeOptions) => x(node, ['-e', code], { throwOnError: true, nodeOptions }), SCRIPTS, {
    // It keeps neither code nor signal of a program that was killed.
    'it is killed': 'transient process.killed worker ambiguous | unknown process.exit task | unknown unknown task',
    'it crashes': 'unknown process.crashed task ambiguous | unknown process.exit task | unknown unknown task',
  })(['there is no such program', 'permanent process.not_found task', () => x(at('x'))]),
  each(
    'zx',
    (code) => quietZx`${node} -e ${code}`,
    SCRIPTS,
  )(
    ['there is no such program', 'permanent process.not_found task', () => quietZx`/nowhere/x`],
    [
      'it takes too long',
      'transient timeout task ambiguous | transient process.killed worker ambiguous',
      () => quietZx`sleep 5`.timeout('150ms'),
    ],
  ),
  library(
    'cross-spawn',
    [
      'there is no such program',
      'permanent process.not_found task',
      () => failed((done) => crossSpawn(at('x')).on('error', done)),
    ],
    [
      'it takes too long',
      'transient timeout task ambiguous',
      () => {
        throw crossSpawn.sync(node, ['-e', 'setInterval(() => {}, 1000)'], { timeout: 150 }).error;
      },
    ],
    [
      'it writes more than is allowed',
      'permanent process.max_buffer task',
      () => {
        throw crossSpawn.sync(node, ['-e', "console.log('x'.repeat(5000))"], { maxBuffer: 100 }).error;
      },
    ],
  ),
  each('node:child_process', (code, options) => promisify(childProcess.execFile)(node, ['-e', code], options), SCRIPTS)(
    ['there is no such program', 'permanent process.not_found task', () => promisify(childProcess.execFile)(at('x'))],
    [
      'a shell that does not know the program',
      'permanent process.not_found task',
      () => promisify(childProcess.exec)('nowhere-at-all'),
    ],
    [
      'it takes too long',
      'transient timeout task ambiguous',
      () => childProcess.execFileSync(node, ['-e', 'setInterval(() => {}, 1000)'], { timeout: 150, stdio: 'ignore' }),
    ],
  ),
  library(
    'p-timeout',
    [
      'it takes too long',
      'transient timeout task ambiguous',
      () => pTimeout(new Promise(() => {}), { milliseconds: 20 }),
    ],
    [
      'words of their own',
      'transient timeout task ambiguous',
      () => pTimeout(new Promise(() => {}), { milliseconds: 20, message: 'the printer is slow' }),
    ],
    [
      'it is told to stop',
      'transient abort worker ambiguous',
      () => pTimeout(new Promise(() => {}), { milliseconds: 5_000, signal: AbortSignal.abort() }),
    ],
  ),
  library(
    'p-retry',
    // It throws what the AbortError held, and not the AbortError.
    [
      'it was told never to try again',
      'unknown unknown task',
      () =>
        pRetry(
          () => {
            throw new AbortError('gone');
          },
          { retries: 0 },
        ),
    ],
    [
      'what it tried last',
      'transient net.refused source',
      async (on) => {
        const port = await on.closedPort();
        return pRetry(() => fetch(`http://127.0.0.1:${port}`), { retries: 0 });
      },
    ],
    ['a bug in what it tries', 'permanent code.bug task', () => pRetry(() => undefined.x, { retries: 0 })],
  ),
  library(
    'cockatiel',
    [
      'a circuit that is open',
      'transient api.unavailable source',
      () => {
        const breaker = cockatiel.circuitBreaker(cockatiel.handleAll, {
          halfOpenAfter: 60_000,
          breaker: new cockatiel.ConsecutiveBreaker(1),
        });
        return breaker
          .execute(() => {
            throw new Error('x');
          })
          .catch(() => breaker.execute(() => 1));
      },
    ],
    [
      'a bulkhead that is full',
      'transient resource.limit worker',
      () => {
        const bulkhead = cockatiel.bulkhead(1, 0);
        void bulkhead.execute(() => new Promise(() => {}));
        return bulkhead.execute(() => 1);
      },
    ],
    [
      'it takes too long',
      'transient timeout task ambiguous',
      () => cockatiel.timeout(20, cockatiel.TimeoutStrategy.Aggressive).execute(() => new Promise(() => {})),
    ],
  ),
  library(
    'opossum',
    [
      'a circuit that is open',
      'transient api.unavailable source',
      async () => {
        const breaker = new Breaker(
          async () => {
            throw new Error('x');
          },
          { errorThresholdPercentage: 1, resetTimeout: 60_000 },
        );
        await breaker.fire().catch(() => {});
        return breaker.fire().finally(() => breaker.shutdown());
      },
    ],
    [
      'it takes too long',
      'transient timeout task ambiguous',
      () => {
        const breaker = new Breaker(() => new Promise(() => {}), { timeout: 20 });
        return breaker.fire().finally(() => breaker.shutdown());
      },
    ],
    [
      'a semaphore that is taken',
      'transient resource.limit worker',
      () => {
        const breaker = new Breaker(() => new Promise((resolve) => setTimeout(resolve, 50)), { capacity: 1 });
        void breaker.fire();
        return breaker.fire().finally(() => breaker.shutdown());
      },
    ],
    [
      'a breaker that was shut down',
      'unknown net.closed_client task | unknown unknown task | transient api.unavailable source',
      async () => {
        const breaker = new Breaker(async () => 1);
        breaker.shutdown();
        return breaker.fire();
      },
    ],
  ),
  library(
    'bottleneck',
    [
      'a queue that is full',
      'transient resource.limit worker',
      () => {
        const limiter = new Bottleneck({ maxConcurrent: 1, highWater: 0, strategy: Bottleneck.strategy.OVERFLOW });
        void limiter.schedule(() => new Promise(() => {})).catch(() => {});
        void limiter.schedule(async () => 1).catch(() => {});
        return limiter.schedule(async () => 1);
      },
    ],
    [
      'a limiter that was stopped',
      'transient resource.limit worker | transient abort worker | transient abort worker ambiguous | unknown net.closed_client task',
      async () => {
        const limiter = new Bottleneck();
        await limiter.stop();
        return limiter.schedule(async () => 1);
      },
    ],
    [
      'it takes too long',
      'transient timeout task ambiguous',
      () => new Bottleneck().schedule({ expiration: 20 }, () => new Promise(() => {})),
    ],
  ),
  library(
    'rate-limiter-flexible',
    [
      'points that are used up',
      'rate_limited throttled quota after 10s',
      async () => {
        const limiter = new RateLimiterMemory({ points: 1, duration: 10 });
        await limiter.consume('a');
        return limiter.consume('a');
      },
    ],
    [
      'points that are used up by one call',
      'rate_limited throttled quota after 60s',
      () => new RateLimiterMemory({ points: 1, duration: 60 }).consume('a', 2),
    ],
    [
      'options that are wrong',
      'permanent code.bug task | unknown unknown task',
      () => new RateLimiterMemory({ points: 'x' }).consume('a'),
    ],
  ),
  library(
    'jose',
    [
      'a token that ran out',
      'permanent auth.expired source',
      async () =>
        jose.jwtVerify(
          await new jose.SignJWT({}).setProtectedHeader({ alg: 'HS256' }).setExpirationTime(1).sign(new Uint8Array(32)),
          new Uint8Array(32),
        ),
    ],
    [
      'a signature that is wrong',
      'permanent auth.invalid source',
      async () =>
        jose.jwtVerify(
          await new jose.SignJWT({}).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32)),
          new Uint8Array(32).fill(1),
        ),
    ],
    [
      'a key set that cannot be fetched',
      'transient net.refused source',
      async (on) =>
        jose.jwtVerify(
          await new jose.SignJWT({}).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32)),
          jose.createRemoteJWKSet(new URL(`http://127.0.0.1:${await on.closedPort()}/`)),
        ),
    ],
    [
      'a key set whose server fails',
      'transient http.5xx source ambiguous | unknown unknown task',
      async (on) =>
        jose.jwtVerify(
          await new jose.SignJWT({}).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32)),
          jose.createRemoteJWKSet(new URL(await on.answering(500))),
        ),
    ],
    [
      'a key set that does not come in time',
      'transient net.timeout source ambiguous',
      async (on) =>
        jose.jwtVerify(
          await new jose.SignJWT({}).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32)),
          jose.createRemoteJWKSet(new URL(`http://127.0.0.1:${await on.silent()}/`), { timeoutDuration: 150 }),
        ),
    ],
  ),
  library(
    'jsonwebtoken',
    [
      'a token that ran out',
      'permanent auth.expired source',
      () => jsonwebtoken.verify(signed({ expiresIn: -10 }), 's'),
    ],
    ['a signature that is wrong', 'permanent auth.invalid source', () => jsonwebtoken.verify(signed({}), 't')],
    [
      'a token that is not valid yet',
      'permanent auth.invalid source',
      () => jsonwebtoken.verify(signed({ notBefore: 60 }), 's'),
    ],
    ['no token', 'permanent auth.invalid source', () => jsonwebtoken.verify('x', 's')],
  ),
  library(
    'formats',
    ['JSON that is cut short', 'unknown data.parse source ambiguous', () => JSON.parse('{"a":')],
    ['a page where JSON should be', 'unknown data.parse source ambiguous', () => JSON.parse('<html>')],
    [
      'YAML that is wrong',
      'unknown data.parse source ambiguous | permanent data.parse source ambiguous',
      () => parseYaml('a: [1'),
    ],
    [
      'CSV that is wrong',
      'unknown data.parse source ambiguous | permanent data.parse source ambiguous',
      () => parseCsv('a,b\n1'),
    ],
    [
      'XML that is wrong',
      'unknown data.parse source ambiguous | permanent data.parse source ambiguous | unknown unknown task',
      () => new XMLParser().parse('<a><b></a>', true),
    ],
    ['no gzip', 'permanent data.parse source ambiguous', () => gunzipSync(Buffer.from('not gzip at all'))],
    [
      'gzip that is cut short',
      'unknown data.parse source ambiguous',
      () => gunzipSync(Buffer.from('1f8b0800000000000003', 'hex')),
    ],
  ),
];
