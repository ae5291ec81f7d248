import type { ErrorFields } from '../error-fields.ts';
import { type Answer, type Finding, found } from '../meaning.ts';

/**
 * How error names end in libraries that have no family. A name is only a hint: a code, a status, a recognised message and a cause
 * all outrank it. Only names that cannot mean anything else are permanent, because a host, a server or a broker that was "not
 * found" may come back.
 */
const ENDINGS: readonly (readonly [ending: RegExp, answer: Answer])[] = [
  [/(?:Timeout|TimedOut|DeadlineExceeded)(?:Error|Exception)?$/, 'timeout'],
  [/(?:Aborted|Abort|Cancell?ed|Cancellation|Interrupted)(?:Error|Exception)?$/, 'abort'],
  [
    /(?:RateLimit(?:ed|Exceeded|Reached)?|Throttl(?:ed|ing)|TooManyRequests|SlowDown)(?:Error|Exception)?$/,
    'throttled',
  ],
  [/Deadlock(?:ed|Detected)?(?:Error|Exception)?$/, 'db.serialization'],
  [
    /(?:OptimisticLock\w*|VersionConflict|ConcurrencyConflict|Concurrency|WriteConflict)(?:Error|Exception)$/,
    'conflict transient',
  ],
  [/(?:Locked|LockTimeout|LockAcquisition|LockNotAvailable)(?:Error|Exception)$/, 'db.locked'],
  [
    /(?:UniqueConstraint|UniqueViolation|UniqueConstraintViolation|DuplicateKey|DuplicateEntry)(?:Error|Exception)?$/,
    'db.unique',
  ],
  [/(?:ForeignKey\w*|NotNull\w*|Check)?Constraint(?:Violation)?(?:Error|Exception)$/, 'db.constraint'],
  [/(?:ConnectionRefused)(?:Error|Exception)?$/, 'net.refused'],
  [/(?:Connection|Socket|Stream)(?:Closed|Lost|Reset|Aborted|Dropped|Terminated)(?:Error|Exception)?$/, 'net.reset'],
  [/(?:Connection|Network|Transport|Connect|Socket)(?:Failed|Failure)?(?:Error|Exception)$/, 'net.failed'],
  [
    /(?:ServiceUnavailable|^Unavailable|^Busy|TemporarilyUnavailable|Overloaded|ServerBusy|CircuitOpen|CircuitBreakerOpen|BrokenCircuit)(?:Error|Exception)?$/,
    { reason: 'api.unavailable', ambiguous: false },
  ],
  [/(?:InternalServer|BadGateway)(?:Error|Exception)?$/, 'http.5xx'],
  [/(?:PayloadTooLarge|EntityTooLarge|MessageTooLarge|TooLarge)(?:Error|Exception)?$/, 'too_large'],
  [
    /(?:Unauthorized|Unauthenticated|Authentication|InvalidCredentials|BadCredentials|InvalidToken)(?:Error|Exception)$/,
    'auth.invalid',
  ],
  [/(?:TokenExpired|SessionExpired|CredentialsExpired)(?:Error|Exception)$/, 'auth.expired'],
  [/(?:Forbidden|PermissionDenied|AccessDenied|Authorization|NotAuthorized)(?:Error|Exception)$/, 'auth.forbidden'],
  [
    /(?:^|Entity|Record|Row|Document|User|Model|Item|Resource|Object|Key|Bucket|Table)NotFound(?:Error|Exception)$/,
    'not_found',
  ],
  [/(?:AlreadyExists|PreconditionFailed)(?:Error|Exception)$/, 'conflict'],
  [/(?:NotImplemented|UnsupportedOperation|NotSupported)(?:Error|Exception)$/, 'not_implemented'],
  [
    /(?:Validation|SchemaValidation|BadRequest|InvalidArgument|InvalidInput|InvalidParameter|UnprocessableEntity)(?:Error|Exception)s?$/,
    'validation',
  ],
  [/(?:YAML|XML|CSV|JSON|Parse|Parser|Parsing|Decode|Decoding)(?:Parse)?(?:Error|Exception)$/, 'data.parse'],
  [/^(?:Conflict)(?:Error|Exception)$/, 'http.409'],
];

const LONGEST_NAME = 128;

export function byEnding(fields: ErrorFields): Finding | undefined {
  for (const name of [fields.name, fields.class]) {
    if (name === '' || name === 'Error' || name.length > LONGEST_NAME) continue;
    const answer = ENDINGS.find(([ending]) => ending.test(name))?.[1];
    if (answer !== undefined) return found(answer, 'name', 'hint');
  }
  return undefined;
}
