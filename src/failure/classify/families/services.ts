import type { ErrorFields } from '../error-fields.ts';
import { read, readNumber, readText } from '../inspect.ts';
import { type Family, type Finding, found, kindOf, lookUp, type Table } from '../meaning.ts';
import { byStatus } from '../status-answers.ts';

/** OAuth 2 (RFC 6749, 6750, 8628): the body of a token request or of a refused call. */
const OAUTH: Table = {
  invalid_grant: 'auth.invalid',
  invalid_client: 'auth.invalid',
  unauthorized_client: 'auth.invalid',
  invalid_token: 'auth.invalid',
  token_expired: 'auth.expired transient',
  expired_token: 'auth.expired transient',
  insufficient_scope: 'auth.forbidden',
  access_denied: 'auth.forbidden',
  interaction_required: 'auth.invalid',
  login_required: 'auth.invalid',
  consent_required: 'auth.invalid',
  slow_down: 'throttled',
  authorization_pending: 'auth.invalid transient',
  temporarily_unavailable: { reason: 'http.5xx', ambiguous: false },
};

/** Language models: OpenAI, Anthropic, Mistral, Cohere, OpenRouter and compatible services. */
const MODELS: Table = {
  insufficient_quota: 'quota.exhausted',
  quota_exceeded: 'quota.exhausted rate_limited',
  usage_limit_reached: 'quota.exhausted rate_limited',
  billing_hard_limit_reached: 'quota.exhausted',
  billing_not_active: 'quota.exhausted',
  project_spend_limit_exceeded: 'quota.exhausted',
  organization_spend_limit_exceeded: 'quota.exhausted',
  insufficient_credits: 'quota.exhausted',
  billing_error: 'quota.exhausted',
  access_terminated: 'auth.forbidden',
  account_deactivated: 'auth.forbidden',
  deactivated_workspace: 'auth.forbidden',
  context_length_exceeded: 'too_large',
  string_above_max_length: 'too_large',
  request_too_large: 'too_large',
  overloaded_error: { reason: 'http.5xx', ambiguous: false },
  engine_overloaded: { reason: 'http.5xx', ambiguous: false },
  model_overloaded: { reason: 'http.5xx', ambiguous: false },
  content_policy_violation: 'validation',
  content_filter: 'validation',
  invalid_api_key: 'auth.invalid',
  authentication_error: 'auth.invalid',
  permission_error: 'auth.forbidden',
  rate_limit_error: 'http.429',
  timeout_error: 'timeout',
  server_error: 'http.5xx',
};

/** Payments: Stripe, PayPal, Square, Adyen, Plaid. */
const PAYMENTS: Table = {
  card_error: 'payment.declined',
  card_declined: 'payment.declined',
  expired_card: 'payment.declined',
  incorrect_cvc: 'payment.declined',
  insufficient_funds: 'payment.declined',
  INSTRUMENT_DECLINED: 'payment.declined',
  PAYER_CANNOT_PAY: 'payment.declined',
  CARD_DECLINED: 'payment.declined',
  INSUFFICIENT_FUNDS: 'payment.declined',
  GENERIC_DECLINE: 'payment.declined',
  idempotency_key_in_use: 'http.409 transient',
  idempotency_error: 'validation',
  resource_already_exists: 'conflict',
  ITEM_LOGIN_REQUIRED: 'auth.expired',
  INVALID_ACCESS_TOKEN: 'auth.invalid',
  INVALID_API_KEYS: 'auth.invalid',
  INSTITUTION_DOWN: 'http.5xx',
  INSTITUTION_NOT_RESPONDING: 'http.5xx',
  PRODUCT_NOT_READY: 'http.5xx transient',
  RATE_LIMIT: 'throttled',
  RATELIMITED: 'throttled',
  THROTTLED: 'throttled',
  RATE_LIMIT_REACHED: 'throttled',
  RATE_LIMITED: 'throttled',
};

/** Salesforce, HubSpot, Shopify, Notion, Airtable, Zendesk, Atlassian, Xero, QuickBooks. */
const BUSINESS: Table = {
  HOURLY_APIINVOCATION_LIMIT_EXCEEDED: 'throttled',
  BURST_APIINVOCATION_LIMIT_EXCEEDED: 'throttled',
  throttle_violation: 'throttled',
  ComplexityException: 'throttled',
  REQUEST_LIMIT_EXCEEDED: 'quota.exhausted rate_limited',
  UNABLE_TO_LOCK_ROW: 'db.locked',
  INVALID_SESSION_ID: 'auth.expired transient',
  SERVER_UNAVAILABLE: { reason: 'http.5xx', ambiguous: false },
  QUERY_TIMEOUT: 'db.timeout',
  STORAGE_LIMIT_EXCEEDED: 'quota.exhausted',
  DUPLICATE_VALUE: 'db.unique',
  DUPLICATES_DETECTED: 'conflict',
  ENTITY_IS_DELETED: 'not_found',
  ENTITY_IS_LOCKED: 'db.locked',
  INSUFFICIENT_ACCESS: 'auth.forbidden',
  INSUFFICIENT_ACCESS_OR_READONLY: 'auth.forbidden',
  API_DISABLED_FOR_ORG: 'auth.forbidden',
  INVALID_LOGIN: 'auth.invalid',
  LOGIN_MUST_USE_SECURITY_TOKEN: 'auth.invalid',
  DAILY: 'quota.exhausted rate_limited',
  TEN_SECONDLY_ROLLING: 'http.429',
  SECONDLY: 'http.429',
  conflict_error: 'http.409 transient',
  rate_limited: 'http.429',
  object_not_found: 'http.404',
  restricted_resource: 'auth.forbidden',
  database_connection_unavailable: 'http.5xx',
  gateway_timeout: 'http.5xx',
  ApplicationThrottled: 'throttled',
  too_many_requests: 'http.429',
  too_many_write_operations: 'throttled',
  insufficient_space: 'quota.exhausted',
  expired_access_token: 'auth.expired transient',
  invalid_access_token: 'auth.invalid',
  missing_scope: 'auth.forbidden',
};

/** Microsoft Graph and OneDrive. */
const MICROSOFT: Table = {
  activityLimitReached: 'throttled',
  throttledRequest: 'throttled',
  ApplicationThrottled: 'throttled',
  MailboxConcurrency: 'throttled',
  quotaLimitReached: 'quota.exhausted',
  InvalidAuthenticationToken: 'auth.expired transient',
  ErrorAccessDenied: 'auth.forbidden',
  ErrorItemNotFound: 'not_found',
  ErrorServerBusy: 'throttled',
  ErrorTooManyObjectsOpened: 'throttled',
  ErrorExceededConnectionCount: 'throttled',
  ErrorQuotaExceeded: 'quota.exhausted',
  ErrorMailboxStoreUnavailable: { reason: 'http.5xx', ambiguous: false },
  ErrorInternalServerTransientError: 'http.5xx',
  resourceModified: 'conflict',
  nameAlreadyExists: 'conflict',
  notAllowed: 'auth.forbidden',
  resyncRequired: 'conflict',
};

/** Firebase's Admin SDK: messaging and log-in. */
const FIREBASE: Table = {
  'messaging/message-rate-exceeded': 'throttled',
  'messaging/device-message-rate-exceeded': 'throttled',
  'messaging/topics-message-rate-exceeded': 'throttled',
  'messaging/quota-exceeded': 'throttled',
  'auth/too-many-requests': 'throttled',
  'auth/quota-exceeded': 'throttled',
  'messaging/registration-token-not-registered': 'not_found',
  'auth/user-not-found': 'not_found',
  'messaging/invalid-registration-token': 'validation',
  'messaging/invalid-argument': 'validation',
  'messaging/invalid-recipient': 'validation',
  'messaging/payload-size-limit-exceeded': 'too_large',
  'messaging/mismatched-credential': 'auth.invalid',
  'messaging/third-party-auth-error': 'auth.invalid',
  'messaging/server-unavailable': 'http.5xx',
  'messaging/internal-error': 'http.5xx',
  'auth/internal-error': 'http.5xx',
  'auth/network-request-failed': 'net.failed',
  'app/network-error': 'net.failed',
  'app/network-timeout': 'net.timeout',
};

/** Elasticsearch and OpenSearch. */
const SEARCH: Table = {
  es_rejected_execution_exception: 'http.429',
  circuit_breaking_exception: 'http.429',
  version_conflict_engine_exception: 'conflict',
  resource_already_exists_exception: 'conflict',
  index_not_found_exception: 'http.404',
  mapper_parsing_exception: 'validation',
  document_parsing_exception: 'validation',
  parsing_exception: 'validation',
  strict_dynamic_mapping_exception: 'validation',
  security_exception: 'auth.invalid',
  process_cluster_event_timeout_exception: 'http.5xx',
  no_shard_available_action_exception: 'http.5xx',
  search_phase_execution_exception: 'unknown',
};

/** Codes of GraphQL servers: Apollo's, Shopify's, GitHub's, Linear's, Hasura's. */
const GRAPHQL: Table = {
  THROTTLED: 'throttled',
  RATELIMITED: 'throttled',
  RATE_LIMITED: 'throttled',
  MAX_NODE_LIMIT_EXCEEDED: 'validation',
  MAX_COST_EXCEEDED: 'validation',
  BAD_USER_INPUT: 'validation',
  GRAPHQL_VALIDATION_FAILED: 'validation',
  GRAPHQL_PARSE_FAILED: 'validation',
  OPERATION_RESOLUTION_FAILURE: 'validation',
  PERSISTED_QUERY_NOT_FOUND: 'graphql.error',
  BAD_REQUEST: 'validation',
  UNAUTHENTICATED: 'auth.invalid',
  AUTHENTICATION_ERROR: 'auth.invalid',
  FORBIDDEN: 'auth.forbidden',
  ACCESS_DENIED: 'auth.forbidden',
  INSUFFICIENT_SCOPES: 'auth.forbidden',
  SHOP_INACTIVE: 'auth.forbidden',
  NOT_FOUND: 'not_found',
  INTERNAL_SERVER_ERROR: 'api.unavailable',
  SERVICE_UNAVAILABLE: { reason: 'api.unavailable', ambiguous: false },
  DOWNSTREAM_SERVICE_ERROR: 'api.unavailable',
  TIMEOUT: 'timeout',
  UNPROCESSABLE: 'validation',
  'constraint-violation': 'db.constraint',
  'validation-failed': 'validation',
  'access-denied': 'auth.forbidden',
  'invalid-jwt': 'auth.invalid',
};

/** Slack’s `error` in an answer of 200. */
const SLACK: Table = {
  ratelimited: 'throttled',
  rate_limited: 'throttled',
  message_limit_exceeded: 'throttled',
  invalid_auth: 'auth.invalid',
  not_authed: 'auth.invalid',
  token_revoked: 'auth.invalid',
  token_expired: 'auth.expired transient',
  account_inactive: 'auth.invalid',
  user_removed_from_team: 'auth.invalid',
  missing_scope: 'auth.forbidden',
  no_permission: 'auth.forbidden',
  not_in_channel: 'auth.forbidden',
  is_archived: 'auth.forbidden',
  restricted_action: 'auth.forbidden',
  cant_post_message: 'auth.forbidden',
  ekm_access_denied: 'auth.forbidden',
  access_denied: 'auth.forbidden',
  not_allowed_token_type: 'auth.forbidden',
  team_access_not_granted: 'auth.forbidden',
  org_login_required: 'auth.forbidden',
  channel_not_found: 'not_found',
  user_not_found: 'not_found',
  users_not_found: 'not_found',
  message_not_found: 'not_found',
  thread_not_found: 'not_found',
  file_not_found: 'not_found',
  already_reacted: 'conflict',
  already_in_channel: 'conflict',
  name_taken: 'conflict',
  duplicate_message_not_allowed: 'conflict',
  msg_too_long: 'too_large',
  too_many_attachments: 'too_large',
  no_text: 'validation',
  invalid_blocks: 'validation',
  invalid_arguments: 'validation',
  invalid_arg_name: 'validation',
  invalid_array_arg: 'validation',
  invalid_form_data: 'validation',
  missing_post_type: 'validation',
  invalid_post_type: 'validation',
  method_deprecated: 'not_implemented',
  deprecated_endpoint: 'not_implemented',
  unknown_method: 'not_implemented',
  service_unavailable: { reason: 'api.unavailable', ambiguous: false },
  team_added_to_org: { reason: 'api.unavailable', ambiguous: false },
  internal_error: 'api.unavailable',
  fatal_error: 'api.unavailable',
  request_timeout: 'api.unavailable',
  accesslimited: 'auth.forbidden',
};

/** Error codes of Meta's Graph API. Their status is 400. */
const META: Table = {
  1: 'http.5xx',
  2: 'http.5xx',
  4: 'throttled',
  17: 'throttled',
  32: 'throttled',
  341: 'throttled',
  368: 'auth.forbidden',
  613: 'throttled',
  3: 'auth.forbidden',
  10: 'auth.forbidden',
  100: 'validation',
  102: 'auth.expired',
  190: 'auth.expired',
  200: 'auth.forbidden',
  294: 'auth.forbidden',
  506: 'conflict',
  80000: 'throttled',
  80001: 'throttled',
  80002: 'throttled',
  80003: 'throttled',
  80004: 'throttled',
  80005: 'throttled',
  80006: 'throttled',
  80008: 'throttled',
  80014: 'throttled',
  130429: 'throttled',
  131048: 'throttled',
  131056: 'throttled',
  131000: 'http.5xx',
  131016: 'http.5xx',
};

export const oauth: Family = { name: 'oauth', bodyCodes: OAUTH };
export const models: Family = { name: 'models', bodyCodes: MODELS };
/** Declines after which Stripe advises to try again. */
const DECLINED_FOR_NOW =
  /^(?:try_again_later|processing_error|issuer_not_available|reenter_transaction|approve_with_id)$/;

export const payments: Family = {
  name: 'payments',
  sorts: ['answered', 'coded'],
  recognise(fields) {
    const code = fields.text('decline_code') ?? readText(read(fields.body, 'error'), 'decline_code') ?? fields.code;
    return typeof code === 'string' && DECLINED_FOR_NOW.test(code)
      ? found('payment.declined transient', 'decline_code')
      : undefined;
  },
  bodyCodes: PAYMENTS,
  vendorNames: { StripeCardError: 'payment.declined' },
};
export const business: Family = { name: 'business', bodyCodes: BUSINESS };
export const microsoft: Family = { name: 'microsoft', bodyCodes: MICROSOFT };
/** The access token could not be fetched. The message may say that the network failed. */
const FIREBASE_VAGUE: Table = { 'app/invalid-credential': 'auth.invalid' };
export const firebase: Family = { name: 'firebase', vendorCodes: FIREBASE, vagueCodes: FIREBASE_VAGUE };
export const search: Family = { name: 'search', bodyCodes: SEARCH };

export const meta: Family = { name: 'meta', sorts: ['answered'], recognise: byMeta };

function byMeta(fields: ErrorFields): Finding | undefined {
  if (fields.status === undefined) return undefined;
  const error = read(fields.body, 'error');
  const code = readNumber(error, 'code');
  if (code === undefined || (read(error, 'fbtrace_id') === undefined && readText(error, 'type') !== 'OAuthException'))
    return undefined;
  const known = lookUp(META, code, 'error.code');
  if (read(error, 'is_transient') !== true || (known && kindOf(known.meaning) !== 'permanent')) return known;
  return found('api.unavailable', 'error.is_transient');
}

export const slack: Family = {
  name: 'slack',
  sorts: ['coded', 'bare'],
  vendorCodes: {
    slack_webapi_rate_limited_error: 'http.429',
  },
  vagueCodes: { slack_webhook_request_error: 'net.failed', slack_webapi_request_error: 'net.failed' },
  vendorNames: { WebAPIRateLimitedError: 'http.429' },
  recognise: bySlack,
};

function bySlack(fields: ErrorFields): Finding | undefined {
  if (fields.in('data', 'ok') !== false) return undefined;
  const error = fields.in('data', 'error');
  return lookUp(SLACK, error, 'data.error') ?? (typeof error === 'string' ? bySuffix(error) : undefined);
}

/** Many of Slack's codes follow a few patterns. */
function bySuffix(error: string): Finding {
  if (error.endsWith('_not_found')) return found('not_found', 'data.error');
  if (error.startsWith('invalid_')) return found('validation', 'data.error');
  if (error.startsWith('already_')) return found('conflict', 'data.error');
  if (error.startsWith('cant_') || error.startsWith('not_')) return found('auth.forbidden', 'data.error');
  return found('unknown', 'data.error');
}

export const graphql: Family = { name: 'graphql', recognise: byGraphql };

/** Errors in a response with a status of success, in errors of graphql-request, Octokit, urql and Apollo. */
function byGraphql(fields: ErrorFields): Finding | undefined {
  const list = listOf(fields);
  if (list === undefined) return undefined;
  const first = read(list, 0);
  if (typeof read(first, 'message') !== 'string') return undefined;
  const code =
    read(read(first, 'extensions'), 'code') ?? read(first, 'type') ?? read(read(first, 'extensions'), 'type');
  if (typeof code === 'string') {
    const known =
      lookUp(GRAPHQL, code, 'errors.0.extensions.code') ??
      lookUp(GRAPHQL, code.toUpperCase(), 'errors.0.extensions.code');
    if (known) return known;
  }
  return /^Syntax Error: /.test(fields.message)
    ? found('validation', 'message')
    : found('graphql.error', 'errors', 'hint');
}

function listOf(fields: ErrorFields): unknown {
  const { status } = fields;
  if (status !== undefined) return undefined;
  const { response } = fields;
  const own = fields.get('graphQLErrors');
  if (Array.isArray(own) && own.length > 0) return own;
  const shaped = response !== undefined && response !== null;
  const inBody = shaped ? read(fields.body, 'errors') : undefined;
  if (Array.isArray(inBody) && inBody.length > 0) return inBody;
  return fields.is('GraphQLError', 'GraphqlResponseError', 'CombinedGraphQLErrors')
    ? (fields.get('errors') ?? [fields.value])
    : undefined;
}

/** Discord's JSON codes, and the rate limits that its client throws. */
const DISCORD: Table = {
  10003: 'http.404',
  20028: 'throttled',
  20016: 'throttled',
  20029: 'throttled',
  30001: 'quota.exhausted',
  30003: 'quota.exhausted',
  30005: 'quota.exhausted',
  30013: 'quota.exhausted',
  31002: 'throttled',
  40001: 'auth.invalid',
  40002: 'auth.forbidden',
  40005: 'too_large',
  40007: 'auth.forbidden',
  50001: 'auth.forbidden',
  50005: 'auth.forbidden',
  50007: 'auth.forbidden',
  50013: 'auth.forbidden',
  50014: 'auth.invalid',
  130000: { reason: 'http.5xx', ambiguous: false },
  131000: 'http.5xx',
};

/** Telegram answers many failures with 400. Only the description tells which. */
const TELEGRAM: readonly (readonly [RegExp, Parameters<typeof found>[0]])[] = [
  [
    /^(?:\d+: )?(?:Forbidden|Bad Request): (?:bot was (?:blocked|kicked)|user is deactivated|not enough rights|have no rights|need administrator)/i,
    'auth.forbidden',
  ],
  [/^(?:\d+: )?Bad Request: (?:message is too long|.*too (?:long|big|large))/i, 'too_large'],
  [/^(?:\d+: )?Bad Request: .*not found/i, 'not_found'],
];

/** Twilio's numbers. */
const TWILIO: Table = {
  20003: 'auth.invalid',
  20404: 'http.404',
  20429: 'http.429',
  20500: 'http.5xx',
  20503: 'http.5xx',
  14107: 'throttled',
  21211: 'validation',
  21408: 'auth.forbidden',
  21610: 'auth.forbidden',
  21611: 'throttled',
  21614: 'validation',
  21617: 'too_large',
  30001: 'throttled',
  30002: 'auth.forbidden',
  30022: 'throttled',
  63018: 'throttled',
};

export const chat: Family = {
  name: 'chat',
  sorts: ['answered', 'numbered', 'bare'],
  recognise(fields) {
    if (fields.get('timeToReset') !== undefined && fields.get('retryAfter') !== undefined)
      return found('http.429', 'retryAfter');
    // Telegram's MTProto: `420 FLOOD`.
    if (
      fields.text('errorMessage') !== undefined &&
      typeof fields.code === 'number' &&
      fields.code >= 300 &&
      fields.code < 600
    )
      return found(byStatus(fields.code), 'code');
    if (fields.get('rawError') !== undefined) return lookUp(DISCORD, fields.code, 'code');
    if (fields.get('moreInfo') !== undefined && typeof fields.code === 'number')
      return lookUp(TWILIO, fields.code, 'code');
    const description =
      fields.text('description') ?? readText(fields.body, 'description') ?? readText(fields.response, 'description');
    if (description === undefined) return undefined;
    const answer = TELEGRAM.find(([text]) => text.test(description.slice(0, 512)))?.[1];
    return answer && found(answer, 'description');
  },
};
