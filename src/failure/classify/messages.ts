import { reasonOfExit } from '../exits.ts';
import { ErrorFields } from './error-fields.ts';
import { byFtp } from './families/files.ts';
import { byGrpcMessage } from './families/grpc.ts';
import { CODES } from './families/index.ts';
import { sqlite } from './families/sqlite.ts';
import { system } from './families/system.ts';
import { LIMIT_STATUSES, speaksOfLimit } from './http.ts';
import { type Answer, type Finding, found, kindOf, meaningOf, type Strength } from './meaning.ts';
import { PHRASES } from './status.ts';
import { byStatus } from './status-answers.ts';

/*
 * Recognises an error by its message if no field says what happened. Each template begins at the start of the message (after
 * prefixes such as `Error:` or `getConnection:`) or needs words that stand only before a code. No template matches a number or
 * a word alone. Messages in other languages than English stay unknown.
 */

/** `TypeError: `, `getConnection: `, `Error: page 3: ` and the like. */
const PREFIX = /^(?:(?:Uncaught |Unhandled )?[A-Za-z_$][\w.$[\]]{0,60}: ){1,4}/;

/** Messages that do not say what went wrong. If there is a cause, its evidence wins. */
const VAGUE: readonly (readonly [RegExp, Answer])[] = [
  [
    /^(?:Failed to fetch|fetch failed|Load failed|network error|Error in input stream|Network request failed|Network Error|NetworkError when attempting to fetch resource\.?)$/i,
    'net.failed',
  ],
  [
    /^(?:Failed to fetch dynamically imported module|error loading dynamically imported module|Importing a module script failed)/i,
    'net.failed unknown',
  ],
  [/^terminated$/, 'net.reset'],
  [
    /^(?:the |this )?(?:user |operation |request |promise |task |job )?(?:was |has been )?(?:aborted|cancell?ed)(?: a request)?\.?$/i,
    'abort',
  ],
  [/^(?:the |this )(?:user|operation|request) (?:was |has been )?(?:aborted|cancell?ed)\b/i, 'abort'],
  [/^(?:The network connection was lost|Network connection lost)\.?$/, 'net.reset'],
  [/^The Internet connection appears to be offline\.?$/, 'net.unreachable'],
  [/^(?:Unreachable hosts|There are no living connections)\b/, 'net.failed'],
  [/^error sending request for url\b/, 'net.failed'],
  [/^(?:Connection error|A request error occurred)\b/, 'net.failed'],
];

const NETWORK: readonly (readonly [RegExp, Answer])[] = [
  [
    /^(?:socket hang up|premature close|other side closed|connection (?:was )?(?:closed|lost|reset|aborted|terminated)\b|server sent FIN packet|unexpected (?:close|end of (?:stream|connection))|WebSocket was closed before|remote end closed|broken pipe\b)/i,
    'net.reset',
  ],
  [
    /^(?:Could not connect to the server|Connection refused|Unable to connect\. Is the computer able|connect(?:ion)? refused)/i,
    'net.refused',
  ],
  [/\btcp connect error: Connection refused\b/, 'net.refused'],
  [
    /\b(?:client error \(Connect\)|error trying to connect): dns error\b|^A server with the specified hostname could not be found/,
    'net.dns',
  ],
  [/\bconnection closed before message completed\b|\btcp connect error: Connection reset\b/, 'net.reset'],
  [/\btcp connect error: .*\btimed out\b/i, 'net.timeout'],
  [
    /^(?:timeout \((?:control|data) socket\)|(?:socket|connect(?:ion)?|headers|body|keepalive|read|idle socket) time(?:d )?-?out\b|connection timed out|the request timed out\.?$|timeout awaiting '|no response from server)/i,
    'net.timeout',
  ],
  [
    /^(?:redirect count exceeded|maximum (?:number of )?redirects? (?:reached|exceeded)|too many redirects)/i,
    'http.redirect',
  ],
  [
    /^(?:unknown scheme|bad port|URL scheme must be|Only absolute URLs are supported|Only HTTP\(S\) protocols are supported|Failed to parse URL from|Invalid URL)/i,
    'validation',
  ],
  [
    /^(?:self[- ]signed certificate|certificate (?:has expired|is not yet valid)|unable to (?:verify the first|get (?:local )?issuer) certificate|Hostname\/IP does not match certificate|Host denied \(verification failed\)|Host key verification failed)/i,
    'tls.certificate',
  ],
  [
    /^(?:Handshake failed: no matching|The server does not support SSL|[0-9A-F]{8,20}:error:[0-9A-F]+:SSL routines)/,
    'tls.handshake',
  ],
  [/^All configured authentication methods failed$/, 'auth.invalid'],
  [/^(?:No SFTP connection available|Not connected)\b/, 'net.reset unknown'],
  [/^Unexpected (?:close|end|finish) event\b/i, 'net.reset'],
  [/^WebSocket is not open\b/, 'net.reset unknown'],
];

/** Failures while connecting, before a request was sent. */
const BEFORE: readonly (readonly [RegExp, Answer])[] = [
  [
    /^(?:@smithy\/node-http-handler - )?(?:the request )?socket (?:did not establish|timed out without establishing) a connection\b/i,
    { reason: 'net.timeout', ambiguous: false },
  ],
  [/^Client network socket disconnected\b/, { reason: 'net.reset', ambiguous: false }],
  [
    /^(?:(?:opening )?handshake (?:has )?timed out|timed out while waiting for (?:handshake|server)|greeting never received|connack timeout$|timedout while connecting\b)/i,
    { reason: 'net.timeout', ambiguous: false },
  ],
];

const DATABASES: readonly (readonly [RegExp, Answer])[] = [
  [
    /^timeout exceeded when trying to connect$|^Knex: Timeout acquiring a connection|^Timeout acquiring a connection|^(?:No connections available|Queue limit reached)\.?$|^Timed out fetching a new connection from the connection pool|^ResourceRequest timed out|^Operation timeout: pool/,
    'db.pool_timeout',
  ],
  [
    /^(?:timeout expired$|Connection terminated due to connection timeout|Can't reach database server|Operation `[^`]{1,200}` buffering timed out|sorry, too many clients already|remaining connection slots are reserved|Too many connections$|too many connections for (?:role|database))/,
    { reason: 'db.connection', ambiguous: false },
  ],
  [
    /^(?:Connection terminated(?: unexpectedly)?|Client has encountered a connection error and is not queryable|Connection is closed\.|Stream isn't writeable and enableOfflineQueue|Failed to refresh slots cache|None of startup nodes is available|Socket closed unexpectedly|Can't add new command when connection is in closed state|MySQL server has gone away|server closed the connection unexpectedly|server conn crashed|Lost connection to MySQL server)/,
    'db.connection',
  ],
  [
    /^(?:Client was closed and is not queryable|Cannot use a pool after calling end|The client is closed|Pool is closed|Client is closed)/,
    'net.closed_client',
  ],
  [
    /^(?:Command timed out|Query read timeout|canceling statement due to (?:statement timeout|user request)|Query inactivity timeout|Query execution was interrupted)/,
    'db.timeout',
  ],
  [
    /^the database system is (?:starting up|shutting down|in recovery mode|not (?:yet )?accepting connections)/,
    'db.unavailable',
  ],
  [/^(?:database (?:table )?is locked|Lock wait timeout exceeded|could not obtain lock on)/, 'db.locked'],
  [
    /^(?:deadlock detected|could not serialize access|Deadlock found when trying to get lock|.{0,80}was deadlocked on lock resources|Transaction .{0,60}write conflict)/,
    'db.serialization',
  ],
  [
    /^(?:duplicate key value violates unique constraint|UNIQUE constraint failed|E11000 duplicate key error|Duplicate entry '.{0,200}' for key|Violation of (?:PRIMARY|UNIQUE) KEY constraint)/,
    'db.unique',
  ],
  [
    /^(?:(?:FOREIGN KEY|NOT NULL|CHECK) constraint failed|.{0,120}violates (?:foreign key|check|not-null|exclusion) constraint)/,
    'db.constraint',
  ],
  [
    /^no such (?:table|column|index|function): |^(?:relation|column) "[^"]{1,120}" (?:of relation "[^"]{1,120}" )?does not exist/,
    'db.schema',
  ],
  [/^Connection acquisition timed out in \d+ ms\b/, { reason: 'db.connection', ambiguous: false }],
  [/^Server responded HTTP\b/, 'net.protocol'],
  [/^password authentication failed for user\b/, 'auth.invalid'],
  [/^SASL: SCRAM-[A-Z-]+: client password must be/, 'code.bug'],
  [/^database disk image is malformed|^file is not a database/, 'db.corrupt'],
  [/^database or disk is full|^(?:.{0,120}: )?No space left on device\b/, 'fs.no_space'],
  [/^(?:NOAUTH |WRONGPASS )/, 'auth.invalid'],
  [/^(?:LOADING Redis|READONLY You can't write|CLUSTERDOWN |MASTERDOWN |MISCONF Redis|TRYAGAIN )/, 'db.unavailable'],
  [/^WRONGTYPE Operation against/, 'db.data'],
  [/^OOM command not allowed/, 'db.resources'],
  [/^Cannot open database because the directory does not exist/, 'fs.not_found'],
];

const BROKERS: readonly (readonly [RegExp, Answer])[] = [
  [
    /^(?:Heartbeat timeout|Socket closed abruptly during opening handshake|Channel ended, no reply will be forthcoming|Connection (?:ended|closing|closed)\b)/,
    'mq.connection',
  ],
  [
    /^(?:Could not load (?:the default )?credentials|No credentials|The incoming JSON object does not contain a client_email|invalid_grant\b)/,
    'auth.invalid',
  ],
];

const OTHER: readonly (readonly [RegExp, Answer])[] = [
  [/^.{0,60}\b(?:aborted|cancell?ed) (?:due to|because of) (?:a |the )?time-?out\b/i, 'timeout'],
  [
    /^(?:too many requests|(?:the )?(?:api |user |account |request |global |secondary )?rate limit(?: has been| was| is)? (?:exceeded|reached|hit)|you have exceeded (?:a|the|your) (?:secondary |api )?rate limit|rate exceeded\b|request (?:was|is) throttled|throttling: |you are being rate limited)/i,
    'throttled',
  ],
  [
    /^(?:the |this )?(?:request|operation|call|task|job|query|command|execution|action|step|function|navigation|promise|attempt|upload|download)?(?: to '?[\w./]{1,60}'?)?(?: has)?\s?timed out(?: after\b|\.|$| while| waiting)/i,
    'timeout',
  ],
  [
    /^(?:timeout (?:of|after) \d+|timeout(?: \d+ ?ms)? exceeded|operation timeout|request timeout|timeout error|async-lock timed out|timeout while |timed out after \d+)/i,
    'timeout',
  ],
  [/^Parse Error(?:: |$)|^Response does not match the HTTP\b/, { reason: 'net.protocol', ambiguous: true }],
  [/^Max greeting lines exceeded$|^Frame size \d+ exceeds maxFrameSize\b/, 'net.protocol'],
  [/^Expected ConnectionOpenOk; got <ConnectionClose\b/, 'mq.rejected unknown'],
  [/^(?:(?:the )?(?:dest(?:ination)?|target|file)(?: file)? |'[^']{1,300}' )?already exists\.?$/i, 'fs.dest_exists'],
  [/^(?:schema is invalid: |strict mode: |no schema with key or ref )/, 'code.bug'],
  [/^Cannot find (?:module|package) '/, 'code.bug'],
  [/\b(?:request is throttled|back-?off time: \d)/i, 'throttled'],
  [
    /^(?:please )?(?:(?:try(?: it| this)? again|retry)(?: it)? (?:in|after)|wait)(?: for)?(?: about| at least| another)? (?:\d|an? |one )/i,
    'throttled',
  ],
  [/^Breaker is open$/, 'api.unavailable'],
  [
    /\bJS heap out of memory\b|^(?:Array buffer allocation failed|Out of memory|Cannot allocate memory|WebAssembly\.Memory\(\): could not allocate memory)\b/i,
    'resource.memory',
  ],
  [/^Invalid string length$/, 'too_large'],
  [
    /\bis not valid JSON\b|\b(?:in|after) JSON at position \d|\bUnexpected end of JSON input$|^JSON(?:\.parse| Parse error)\b|^(?:Unterminated string|Bad (?:control character|escaped character|Unicode escape)) in (?:string literal in )?JSON|^invalid json (?:response body|received)/i,
    'data.parse',
  ],
];

/** Many templates as one expression, so that a message that matches none of them is rejected quickly. */
class Templates {
  readonly #answers: readonly Answer[];
  readonly #any: RegExp;

  constructor(list: readonly (readonly [RegExp, Answer])[], before: string) {
    this.#answers = list.map(([, answer]) => answer);
    this.#any = new RegExp(`${before}(?:${list.map(([{ source }]) => `(${source})`).join('|')})`, 'i');
  }

  answer(message: string): Answer | undefined {
    const match = this.#any.exec(message);
    if (!match) return undefined;
    return this.#answers[match.indexOf(match[0], 1) - 1];
  }
}

/** Each alternative of a template as a template of its own. */
const ALL = [...BEFORE, ...DATABASES, ...NETWORK, ...BROKERS, ...OTHER].flatMap(([{ source }, answer]) =>
  source.split(/\|(?=\^|\\b)/).map((part) => [new RegExp(part), answer] as const),
);
const isAnchored = ([{ source }]: readonly [RegExp, Answer]) => source.startsWith('^');
/** Most templates begin at the start of the message, so they are tried only there. The others are searched for. */
const ANCHORED = new Templates(ALL.filter(isAnchored), '^');
const BY_VAGUE = new Templates(
  VAGUE.map(([{ source }, answer]) => [new RegExp(source), answer] as const),
  '',
);
const LOOSE = new Templates(
  ALL.filter((each) => !isAnchored(each)),
  '',
);

/** A status after words that introduce one: `HTTP 503`, `status code 503`, `server response: 503`. */
const STATUS =
  /^HTTP(?:\/\d(?:\.\d)?)?(?: error| status| response)?(?: code)?[:,]? ?\(?([45]\d\d)\b|\b[Ss]tatus(?: [Cc]ode|Code)?(?: of| is| was)?(?: ?[:=])? ?([45]\d\d)\b|\b[Rr]espon(?:se|ded)(?: with| code)?(?: an?)?(?: HTTP)?(?: error)?:? ([45]\d\d)\b/;
const CODE_AND_PHRASE = /^([45]\d\d)(?::| -)? ([A-Za-z][A-Za-z -]{2,30}[a-z])(?=$|[.:,;(\n]| for | - )/;
/** A status inside a sentence or in brackets. Only transient ones, because the number may mean something else. */
const CODE_IN_TEXT =
  /(?<![\w.#-])(429|5\d\d) ([A-Z][a-z]+ [A-Z][A-Za-z ]{2,20})|([A-Z][a-z]+ [A-Z][A-Za-z ]{2,20}) \((429|5\d\d)\)/;
/** Messages that are only a reason phrase. Phrases of permanent statuses are left out, because words alone are weak evidence. */
const PHRASE_ALONE = new Map([
  ['too many requests', 429],
  ['bad gateway', 502],
  ['service unavailable', 503],
  ['service temporarily unavailable', 503],
  ['gateway timeout', 504],
  ['gateway time-out', 504],
  ['internal server error', 500],
]);

/** `connect ECONNREFUSED 127.0.0.1:80` and `ENOENT: no such file or directory, open 'x'`. */
const CALL_AND_CODE =
  /(?:^|\n|[:\-.'] )(connect|read|write|bind|listen|accept|shutdown|send|recv|getaddrinfo|query[A-Z]\w{0,9}|spawn(?:Sync)? \S{1,200}|spawn|open|rename|unlink|mkdir|rmdir|copyfile|stat|lstat|scandir) (E[A-Z0-9_]{2,20})\b/;
const CODE_AND_CALL =
  /^(?:(?!E[A-Z])[A-Za-z_$][\w.$[\]]{0,60}: ){0,4}(E[A-Z0-9]{2,18}): [^,]{3,80}(?:, (\w{2,20})\b|$)/;

export function byMessage(fields: ErrorFields): Finding | undefined {
  const { message } = fields;
  if (message === '') return undefined;
  const prefix = PREFIX.exec(message)?.[0].length ?? 0;
  const said = prefix === 0 ? message : message.slice(prefix);
  const strength: Strength = 'message';
  const answer =
    byCode(message) ??
    bySystem(said, message) ??
    byExit(said) ??
    unlessItMayPass(
      byHttp(said) ?? byGrpcMessage(said) ?? byTemplate(said) ?? (prefix === 0 ? undefined : byTemplate(message)),
      said,
    );
  if (answer !== undefined) return found(answer, 'message', strength);
  const reply = message.includes('FTPError: ') ? /\bFTPError: (\d{3}) ([^\n]{0,200})/.exec(message) : null;
  if (reply) return found(byFtp(Number(reply[1]), reply[2] as string), 'message', strength);
  const vague = BY_VAGUE.answer(said);
  return vague && found(vague, 'message', 'hint');
}

const MAY_PASS =
  /\b(?:try(?:ing)?(?: it| this)? again|retry (?:again|later|in|after)|come back later|temporary (?:error|failure|problem)|temporarily)\b/i;

/** A permanent answer from words alone does not stay permanent if the message also mentions a limit or a retry. */
function unlessItMayPass(answer: Answer | undefined, said: string): Answer | undefined {
  if (answer === undefined) return undefined;
  const meaning = meaningOf(answer);
  if (kindOf(meaning) !== 'permanent') return answer;
  if (speaksOfLimit(said)) return 'throttled';
  return MAY_PASS.test(said) ? { ...meaning, kind: 'unknown' } : answer;
}

/** A message that is only a code. */
function byCode(message: string): Answer | undefined {
  return /^E[A-Z0-9_]{2,20}$/.test(message) ? CODES.get(message)?.answer : undefined;
}

function bySystem(said: string, message: string): Answer | undefined {
  const call = said.includes(' E') ? CALL_AND_CODE.exec(said) : null;
  if (call) return asSystem(call[2] as string, call[1] as string);
  // The prefix may be the code.
  const code = message.includes(': ') ? CODE_AND_CALL.exec(message) : null;
  const answer = code && asSystem(code[1] as string, code[2] ?? '');
  if (answer) return answer;
  if (!said.startsWith('SQLITE_')) return undefined;
  return sqlite.recognise?.(new ErrorFields({ code: /^SQLITE_[A-Z_]+/.exec(said)?.[0], message: said }))?.meaning;
}

/** `process exited with code 137`. */
function byExit(said: string): Answer | undefined {
  if (!said.includes(' with ')) return undefined;
  const code =
    /^[^\n]{0,200}\b(?:exited|failed|terminated|ended) with (?:exit |non-zero exit )?(?:code|status):? (\d{1,10})\b/.exec(
      said,
    )?.[1];
  return code === undefined || code === '0' || /^[345]\d\d$/.test(code) ? undefined : reasonOfExit(Number(code));
}

/** The answer for a system error with this `code` and `syscall`. */
function asSystem(code: string, syscall: string): Answer | undefined {
  return system.recognise?.(new ErrorFields({ code, syscall }))?.meaning ?? CODES.get(code)?.answer;
}

function byHttp(said: string): Answer | undefined {
  const alone = said.length < 40 ? PHRASE_ALONE.get(said.toLowerCase().replace(/[.!]$/, '')) : undefined;
  if (alone !== undefined) return byStatus(alone);
  // All other forms have the number.
  if (!/[45]\d\d/.test(said)) return undefined;
  const match = STATUS.exec(said);
  const number = match && (match[1] ?? match[2] ?? match[3]);
  if (number) return byStatusAlone(Number(number));
  const phrase = CODE_AND_PHRASE.exec(said);
  if (phrase && isPhraseOf(Number(phrase[1]), phrase[2] as string)) return byStatusAlone(Number(phrase[1]));
  const inText = /429|5\d\d/.test(said) ? CODE_IN_TEXT.exec(said) : null;
  const [code, words] = [Number(inText?.[1] ?? inText?.[4]), inText?.[2] ?? inText?.[3]];
  return words !== undefined && isPhraseOf(code, words) ? byStatus(code) : undefined;
}

/** The answer for a status without its body. The body may have named a rate limit, so a refusal is not permanent. */
function byStatusAlone(status: number): Answer {
  const meaning = meaningOf(byStatus(status));
  return LIMIT_STATUSES.includes(status) && kindOf(meaning) === 'permanent' ? { ...meaning, kind: 'unknown' } : meaning;
}

function isPhraseOf(status: number, phrase: string): boolean {
  const expected = PHRASES[status];
  if (expected === undefined) return false;
  return (
    phrase.toLowerCase().startsWith(expected.toLowerCase()) ||
    (status === 504 && /^gateway time-?out/i.test(phrase)) ||
    (status === 503 && /^service temporarily/i.test(phrase)) ||
    (status === 500 && /^internal (?:server )?error/i.test(phrase))
  );
}

function byTemplate(said: string): Answer | undefined {
  return ANCHORED.answer(said) ?? LOOSE.answer(said);
}
