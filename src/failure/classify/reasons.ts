import type { FailureKind, Fault } from '../outcome.ts';

/** What is known about one reason, for all libraries. `docs/reference/reasons.md` is made from this. */
export interface ReasonInfo {
  /** The kind, unless the rule or table that recognised it gives another. */
  readonly kind: FailureKind;
  /** Who is at fault. This decides who is charged. */
  readonly fault: Fault;
  /** Whether the effect may have happened, unless the rule or table that recognised it says otherwise. */
  readonly ambiguous: boolean;
  readonly meaning: string;
  /** Hints, such as what it is easily confused with. */
  readonly traps?: string;
}

type Row = readonly [kind: FailureKind, fault: Fault, meaning: string, traps?: string];

/** The effect may have happened: no answer came, or the answer suggests that an earlier attempt succeeded. */
const MAYBE_DONE = new Set<string>([
  ...[
    'net.reset',
    'net.timeout',
    'net.failed',
    'timeout',
    'abort',
    'http.5xx',
    'http.408',
    'http.redirect',
    'process.max_buffer',
    'graphql.error',
    'grpc.data_loss',
    'fs.io',
    'db.connection',
    'db.timeout',
  ],
  ...['db.unique', 'mq.connection', 'grpc.unknown', 'grpc.internal', 'process.killed', 'browser.closed', 'data.parse'],
  ...['process.crashed', 'process.out_of_memory', 'resource.memory', 'api.unavailable'],
]);

const ROWS = {
  'fs.locked': [
    'transient',
    'task',
    'Another program has the file open or locked.',
    'Windows reports it as EPERM or EACCES.',
  ],
  'fs.permission': [
    'permanent',
    'task',
    'The system or server denies access to the file.',
    'On Windows it is often a lock.',
  ],
  'fs.dest_exists': [
    'permanent',
    'task',
    'The destination exists.',
    'An earlier attempt of the task may have made it.',
  ],
  'fs.not_found': [
    'permanent',
    'task',
    'There is no such file or folder.',
    'ENOENT of `spawn` and `connect` means something else.',
  ],
  'fs.no_space': ['transient', 'worker', 'The disk or the quota on it is full.'],
  'fs.too_many_files': [
    'transient',
    'worker',
    'This process or machine has too many files open.',
    'Lower the concurrency.',
  ],
  'fs.io': ['transient', 'worker', 'The device or network share failed.'],
  'fs.cross_device': ['permanent', 'task', 'A rename would cross file systems.'],
  'fs.invalid': ['permanent', 'task', 'The path is not what the call needs: a folder, too long, a loop.'],
  'fs.special_file': ['permanent', 'task', 'It is a socket, a pipe or a device, which `mv` does not move.'],
  'fs.same_file': ['permanent', 'task', 'Source and destination are the same file.'],
  'fs.changed': ['transient', 'task', 'The file changed while it was moved, so nothing more was done.'],
  'fs.copy_differs': ['transient', 'task', 'A copy does not read back as it was written.', 'The disk may be failing.'],
  'fs.temporary_exists': [
    'transient',
    'task',
    'The temporary file of a move exists, and another move may be writing to it.',
  ],
  'fs.cross_device_folder': [
    'unknown',
    'task',
    'A folder would go to another file system, which `mv` does not do. A person must move it.',
  ],
  'fs.no_hard_links': [
    'unknown',
    'task',
    'The file system of the destination makes no hard links, so `mv` could overwrite a file. A person must move it.',
  ],
  'net.refused': [
    'transient',
    'source',
    'The connection was refused: nothing listens on that port.',
    'Nothing was sent, so nothing happened.',
  ],
  'net.dns': ['transient', 'source', 'The name could not be resolved.', 'A mistyped name looks the same.'],
  'net.timeout': ['transient', 'source', 'A network client waited too long.', 'It is not ambiguous during connecting.'],
  'net.reset': ['transient', 'source', 'The connection ended before the answer was complete.'],
  'net.unreachable': ['transient', 'source', 'The network or host cannot be reached.'],
  'net.failed': [
    'transient',
    'source',
    'The network failed, and the client does not say how.',
    'Browsers report CORS errors in the same way.',
  ],
  'net.address_in_use': ['transient', 'worker', 'The port is taken.'],
  'net.permission': [
    'permanent',
    'task',
    'The system does not allow listening or connecting there.',
    'A firewall, or a privileged port.',
  ],
  'net.protocol': ['unknown', 'source', 'The peer does not speak the protocol.'],
  'net.closed_client': ['unknown', 'task', 'The client was closed before the call.'],
  'tls.certificate': [
    'permanent',
    'source',
    'The certificate or host key is not trusted.',
    'It works again when somebody renews it.',
  ],
  'tls.handshake': [
    'permanent',
    'source',
    'Client and server could not agree on encryption.',
    'A port without TLS gives “wrong version number”.',
  ],
  'http.429': ['rate_limited', 'quota', 'Too many requests.', 'Billing limits are `quota.exhausted`.'],
  throttled: [
    'rate_limited',
    'quota',
    'A rate limit that was reported without status 429.',
    'Some services use 400, 403 or 503.',
  ],
  'quota.exhausted': [
    'permanent',
    'quota',
    'A quota is used up.',
    'It is a rate limit if it refills, for example each day.',
  ],
  'http.5xx': [
    'transient',
    'source',
    'The server failed.',
    '503 is not ambiguous, because the server did not act. 501 is permanent.',
  ],
  'http.408': ['transient', 'source', 'The server waited too long for the request.'],
  'http.421': ['transient', 'source', 'The request reached the wrong server.'],
  'http.423': ['transient', 'task', 'The resource is locked.'],
  'http.425': ['transient', 'source', 'The server refused early data (TLS 0-RTT).'],
  'http.409': ['unknown', 'task', 'A conflict. The API does not say whether it will go away.'],
  'http.404': [
    'permanent',
    'task',
    'The resource does not exist: 404 or 410.',
    'A resource that was just created, or that we must not see, looks the same.',
  ],
  'http.4xx': [
    'permanent',
    'task',
    'The server refuses this request.',
    '499 has the kind unknown: the client of a proxy disconnected.',
  ],
  'http.3xx': ['unknown', 'task', 'A redirect or 304 that was thrown as an error.'],
  'http.moved': [
    'permanent',
    'task',
    'A POST, PUT, PATCH or DELETE was answered with 301 or 302, which does not say whether it was done.',
  ],
  'http.redirect': ['permanent', 'task', 'A redirect loop, or the request must go to another address.'],
  'http.private_address': [
    'permanent',
    'task',
    'The host is this machine or in a private network, which the request may not reach.',
    '`--allow-private` allows it.',
  ],
  'http.secret_missing': [
    'unknown',
    'task',
    'The worker lacks a secret that a header refers to. A person must add it.',
  ],
  too_large: ['permanent', 'task', 'It is larger than the other side accepts.', '413 with Retry-After is transient.'],
  conflict: [
    'permanent',
    'task',
    'It exists already, or a precondition is not met.',
    'Optimistic locks of ORMs are transient.',
  ],
  not_found: ['permanent', 'task', 'It does not exist, reported without HTTP 404.'],
  not_implemented: ['permanent', 'task', 'The other side does not support this.'],
  'auth.invalid': ['permanent', 'source', 'The credentials were not accepted.', 'Trying again may lock the account.'],
  'auth.expired': [
    'permanent',
    'source',
    'The credentials have expired.',
    'It is transient if the next attempt gets new ones.',
  ],
  'auth.clock_skew': ['transient', 'worker', 'Refused because a clock is wrong.'],
  'auth.forbidden': [
    'permanent',
    'task',
    'The credentials do not allow this.',
    'Several services use 403 for rate limits.',
  ],
  'payment.declined': ['permanent', 'task', 'The card or account was declined.', 'Trying again may block the card.'],
  'db.serialization': [
    'transient',
    'task',
    'The transaction conflicted with another one.',
    'Repeat the whole transaction.',
  ],
  'db.locked': ['transient', 'task', 'A row, table or file is locked.'],
  'db.unique': ['permanent', 'task', 'The key exists already.', 'An earlier attempt of the task may have written it.'],
  'db.constraint': ['permanent', 'task', 'A constraint does not allow the data.'],
  'db.data': ['permanent', 'task', 'A value has the wrong type, length or range.'],
  'db.schema': [
    'permanent',
    'task',
    'A missing table or column, a syntax error, or the wrong mode.',
    'A deploy may fix it.',
  ],
  'db.connection': ['transient', 'source', 'No connection to the database, or it was lost.'],
  'db.unavailable': [
    'transient',
    'source',
    'The database is reachable but cannot serve requests now.',
    'For example, it is read-only during a failover.',
  ],
  'db.timeout': ['transient', 'source', 'The statement took too long.', 'A cancel by a user has the same code.'],
  'db.pool_timeout': ['transient', 'worker', 'No free connection in the pool.', 'Lower the concurrency.'],
  'db.resources': ['transient', 'source', 'The database is out of memory, disk or connections.'],
  'db.transaction': [
    'unknown',
    'task',
    'The transaction was already broken.',
    'The first error of the transaction says why.',
  ],
  'db.internal': ['unknown', 'source', 'The database reported an internal error.'],
  'db.noscript': ['unknown', 'task', 'The script must be loaded again.'],
  'db.readonly': ['permanent', 'worker', 'The database file may not be written.'],
  'db.corrupt': ['permanent', 'worker', 'The file is damaged, or is not a database.'],
  'mq.connection': ['transient', 'source', 'No connection to the broker, or it was lost.'],
  'mq.unavailable': ['transient', 'source', 'The broker cannot serve now: no leader, rebalancing.'],
  'mq.locked': ['transient', 'source', 'Somebody else uses the queue exclusively.'],
  'mq.rejected': ['permanent', 'task', 'The broker refuses the command or message.'],
  'api.unavailable': ['transient', 'source', 'The service failed, and said so inside a successful answer.'],
  'graphql.error': ['unknown', 'task', 'A GraphQL error without a known code.'],
  'grpc.unavailable': ['transient', 'source', 'The service is not available now.'],
  'grpc.aborted': ['transient', 'task', 'The call conflicted with another one.'],
  'grpc.internal': ['unknown', 'source', 'The service had an internal error.'],
  'grpc.unknown': ['unknown', 'source', 'The service threw something without a code.'],
  'grpc.data_loss': ['permanent', 'source', 'Data are lost or damaged.'],
  'grpc.failed_precondition': ['permanent', 'task', 'The system is not in the state that the call needs.'],
  'smtp.4xx': ['transient', 'source', 'The mail server asks to try later.', 'Greylisting goes away by itself.'],
  'smtp.5xx': [
    'permanent',
    'task',
    'The mail server refuses permanently.',
    '503 here is a bad sequence, not an outage.',
  ],
  'smtp.recipient': ['permanent', 'task', 'There is no such recipient.'],
  'ftp.4xx': ['transient', 'source', 'The FTP server asks to try later.'],
  'ftp.5xx': ['permanent', 'task', 'The FTP server refuses permanently.', '503 here is a bad sequence, not an outage.'],
  'sftp.failure': ['unknown', 'task', 'The catch-all failure of SFTP.'],
  'imap.unavailable': ['transient', 'source', 'The mail server cannot serve now.'],
  'imap.in_use': ['transient', 'task', 'Somebody else uses the mailbox.'],
  'imap.no': ['permanent', 'task', 'The mail server refuses the command.'],
  'task.corrupt': ['permanent', 'task', 'The stored task is damaged, so its handler was not called.'],
  'process.not_found': ['permanent', 'worker', 'The program does not exist on the machine of the worker.'],
  'process.not_executable': ['permanent', 'task', 'The file is not a program, or must not be executed.'],
  'process.cwd_missing': ['transient', 'worker', 'The folder in which the program should run does not exist.'],
  'process.usage': ['permanent', 'task', 'The program does not take these arguments (exit 64, 78).'],
  'process.max_buffer': ['permanent', 'task', 'The program wrote more than was allowed.'],
  'process.left_running': [
    'transient',
    'worker',
    'A program that an earlier execution started still runs and cannot be ended.',
    '`holdfast run` tries again after 10 s each time.',
  ],
  'process.tempfail': ['transient', 'task', 'The program asks to be run later (exit 75).'],
  'process.killed': [
    'transient',
    'task',
    'A signal ended the program.',
    'SIGKILL may mean: out of memory. The program may have caused it, so it is charged.',
  ],
  'process.exit': ['unknown', 'task', 'The program ended with a code that has no common meaning.'],
  'process.crashed': ['unknown', 'task', 'The program crashed (SIGSEGV, SIGABRT …).'],
  'process.out_of_memory': ['unknown', 'task', 'The child process of its handler needed more memory than its limit.'],
  'process.not_loaded': [
    'transient',
    'worker',
    'The module of its handler could not be loaded in a child process.',
    'A deploy may fix it. Other tasks of the worker go on.',
  ],
  'resource.limit': ['transient', 'worker', 'The system or a pool has reached a limit.'],
  'resource.memory': ['unknown', 'worker', 'Out of memory.', 'The task itself may use too much.'],
  'browser.closed': ['transient', 'task', 'The page or browser was closed.'],
  'code.bug': [
    'permanent',
    'task',
    'The code has a bug.',
    'Some clients throw TypeError for network errors. Retry the tasks after the next deploy.',
  ],
  'input.invalid': ['permanent', 'task', 'The handler refuses its input.'],
  validation: ['permanent', 'task', 'The input is not valid.'],
  'data.parse': ['unknown', 'source', 'The answer could not be read.', 'HTML instead of JSON is often an outage page.'],
  timeout: ['transient', 'task', 'Something took too long; the error does not say what.'],
  abort: [
    'transient',
    'task',
    'A signal of the handler itself stopped it.',
    'An abort by the worker (shutdown, lost lease) is an interruption and never comes here.',
  ],
  'explicit.permanent': ['permanent', 'task', 'The error says that a retry cannot help.'],
  'explicit.transient': ['transient', 'task', 'The error says that a retry may help.'],
  'explicit.failed': ['transient', 'task', 'The handler threw `Failed` without a reason of its own.'],
  'explicit.needs_manual': ['unknown', 'task', 'The handler asked for a person.'],
  unknown: ['unknown', 'task', 'The error does not say what went wrong.'],
} as const satisfies Readonly<Record<string, Row>>;

/** The reasons that the classifier and the built-in handlers give. Rules and signals of an application may give others. */
export type Reason = keyof typeof ROWS;

/** What is known about each reason that the classifier and the built-in handlers give. */
export const REASONS: Readonly<Record<Reason, ReasonInfo>> = Object.fromEntries(
  Object.entries(ROWS as Readonly<Record<string, Row>>).map(([reason, [kind, fault, meaning, traps]]) => [
    reason,
    { kind, fault, ambiguous: MAYBE_DONE.has(reason), meaning, ...(traps !== undefined && { traps }) },
  ]),
) as Record<Reason, ReasonInfo>;

/** What is known about a reason that no failure has. */
export interface EngineReasonInfo {
  readonly meaning: string;
  /** Whether a rule of a policy can name it. Other reasons belong only to ended or waiting tasks. */
  readonly answered: boolean;
}

/** The reasons of events that are not failures: a deferral, a loss, an end. */
export const ENGINE_REASONS = {
  'explicit.later': { answered: true, meaning: 'The handler asked to run later.' },
  'input.newer_version': { answered: true, meaning: 'Its input has a newer version of its type than its worker knew.' },
  'worker.lost': { answered: true, meaning: 'Its worker was lost.' },
  'worker.interrupted': { answered: true, meaning: 'Its worker stopped and handed it back.' },
  'deadline.passed': { answered: true, meaning: 'Its deadline passed while it waited.' },
  'worker.crash_loop': { answered: false, meaning: 'It was lost with its worker too often. A person must look.' },
  'source.unhealthy': { answered: false, meaning: 'A check of the health of its source failed before it began.' },
  'source.limit_used_up': { answered: false, meaning: 'Its source said that its limit is used up until it resets.' },
  cancelled: { answered: false, meaning: 'Somebody cancelled it.' },
  'unique.superseded': { answered: false, meaning: 'A newer task with the same unique key took its place.' },
} as const satisfies Readonly<Record<string, EngineReasonInfo>>;

/** The family of a reason, as rules name it: `fs.*`. */
export function familyOf(reason: string): string {
  return `${reason.split('.', 1)[0]}.*`;
}
