import type { ErrorFields } from '../error-fields.ts';
import { readNumber } from '../inspect.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** Kafka's errors, by the names of kafkajs and node-rdkafka. */
const KAFKA: Table = {
  UNKNOWN: 'mq.unavailable unknown',
  OFFSET_OUT_OF_RANGE: 'validation',
  CORRUPT_MESSAGE: 'mq.unavailable',
  UNKNOWN_TOPIC_OR_PARTITION: 'mq.unavailable',
  UNKNOWN_TOPIC_ID: 'mq.unavailable',
  LEADER_NOT_AVAILABLE: 'mq.unavailable',
  NOT_LEADER_FOR_PARTITION: 'mq.unavailable',
  NOT_LEADER_OR_FOLLOWER: 'mq.unavailable',
  REQUEST_TIMED_OUT: 'timeout',
  BROKER_NOT_AVAILABLE: 'mq.unavailable',
  REPLICA_NOT_AVAILABLE: 'mq.unavailable',
  MESSAGE_TOO_LARGE: 'too_large',
  RECORD_LIST_TOO_LARGE: 'too_large',
  OFFSET_METADATA_TOO_LARGE: 'too_large',
  NETWORK_EXCEPTION: 'mq.connection',
  GROUP_LOAD_IN_PROGRESS: 'mq.unavailable',
  COORDINATOR_LOAD_IN_PROGRESS: 'mq.unavailable',
  GROUP_COORDINATOR_NOT_AVAILABLE: 'mq.unavailable',
  COORDINATOR_NOT_AVAILABLE: 'mq.unavailable',
  NOT_COORDINATOR_FOR_GROUP: 'mq.unavailable',
  NOT_COORDINATOR: 'mq.unavailable',
  INVALID_TOPIC_EXCEPTION: 'validation',
  NOT_ENOUGH_REPLICAS: 'mq.unavailable',
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: { reason: 'mq.unavailable', ambiguous: true },
  INVALID_REQUIRED_ACKS: 'code.bug',
  ILLEGAL_GENERATION: 'mq.unavailable',
  UNKNOWN_MEMBER_ID: 'mq.unavailable',
  REBALANCE_IN_PROGRESS: 'mq.unavailable',
  MEMBER_ID_REQUIRED: 'mq.unavailable',
  FENCED_INSTANCE_ID: 'mq.locked unknown',
  INVALID_GROUP_ID: 'validation',
  TOPIC_AUTHORIZATION_FAILED: 'auth.forbidden',
  GROUP_AUTHORIZATION_FAILED: 'auth.forbidden',
  CLUSTER_AUTHORIZATION_FAILED: 'auth.forbidden',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'auth.forbidden',
  SECURITY_DISABLED: 'auth.forbidden',
  SASL_AUTHENTICATION_FAILED: 'auth.invalid',
  UNSUPPORTED_SASL_MECHANISM: 'auth.invalid',
  ILLEGAL_SASL_STATE: 'auth.invalid',
  UNSUPPORTED_VERSION: 'not_implemented',
  TOPIC_ALREADY_EXISTS: 'conflict',
  INVALID_PARTITIONS: 'validation',
  INVALID_REPLICATION_FACTOR: 'validation',
  INVALID_CONFIG: 'validation',
  INVALID_REQUEST: 'validation',
  INVALID_RECORD: 'validation',
  POLICY_VIOLATION: 'validation',
  OUT_OF_ORDER_SEQUENCE_NUMBER: 'mq.unavailable unknown',
  DUPLICATE_SEQUENCE_NUMBER: 'conflict',
  INVALID_PRODUCER_EPOCH: 'mq.rejected',
  CONCURRENT_TRANSACTIONS: 'mq.locked',
  KAFKA_STORAGE_ERROR: 'mq.unavailable',
  FENCED_LEADER_EPOCH: 'mq.unavailable',
  UNKNOWN_LEADER_EPOCH: 'mq.unavailable',
  THROTTLING_QUOTA_EXCEEDED: 'throttled',
  PREFERRED_LEADER_NOT_AVAILABLE: 'mq.unavailable',
  ELECTION_NOT_NEEDED: 'conflict',
  GROUP_ID_NOT_FOUND: 'not_found',
  NON_EMPTY_GROUP: 'conflict',
  UNSTABLE_OFFSET_COMMIT: 'mq.unavailable',
};

const KAFKA_NAMES: Table = {
  KafkaJSConnectionError: 'mq.connection',
  KafkaJSConnectionClosedError: 'mq.connection',
  KafkaJSBrokerNotFound: 'mq.connection',
  KafkaJSLockTimeout: 'timeout',
  KafkaJSTimeout: 'timeout',
  KafkaJSRequestTimeoutError: 'timeout',
  KafkaJSNoBrokerAvailableError: 'mq.connection',
  KafkaJSGroupCoordinatorNotFound: 'mq.unavailable',
  KafkaJSGroupCoordinatorNotAvailableError: 'mq.unavailable',
  KafkaJSMetadataNotLoaded: 'mq.unavailable',
  KafkaJSTopicMetadataNotLoaded: 'mq.unavailable',
  KafkaJSStaleTopicMetadataAssignment: 'mq.unavailable',
  KafkaJSFetcherRebalanceError: 'mq.unavailable',
  KafkaJSPartialMessageError: 'mq.unavailable',
  KafkaJSOffsetOutOfRange: 'validation',
  KafkaJSSASLAuthenticationError: 'auth.invalid',
  KafkaJSServerDoesNotSupportApiKey: 'not_implemented',
  KafkaJSNotImplemented: 'not_implemented',
  KafkaJSUnsupportedMagicByteInMessageSet: 'not_implemented',
  KafkaJSDeleteGroupsError: 'mq.rejected',
  KafkaJSDeleteTopicRecordsError: 'mq.rejected',
  KafkaJSInvalidVarIntError: 'data.parse',
  KafkaJSInvalidLongError: 'data.parse',
  KafkaJSMemberIdRequired: 'mq.unavailable',
};

/** librdkafka's own numbers are negative; the broker's are Kafka's. */
const RDKAFKA: Table = {
  [-195]: 'mq.connection',
  [-187]: 'mq.connection',
  [-185]: 'timeout',
  [-192]: 'timeout',
  [-193]: 'net.dns',
  [-184]: 'resource.limit',
  [-188]: 'not_found',
  [-190]: 'not_found',
  [-169]: 'auth.invalid',
  [-181]: 'tls.handshake',
  [-172]: 'code.bug',
  [-186]: 'code.bug',
  [-196]: 'mq.connection',
  [-194]: 'mq.connection',
};

/** Reply codes of AMQP 0-9-1. 404 and 503 are not those of HTTP. */
const AMQP: Table = {
  311: 'too_large',
  312: 'not_found',
  313: 'mq.unavailable',
  320: 'mq.connection',
  402: 'validation',
  403: 'auth.forbidden',
  404: 'not_found',
  405: 'mq.locked',
  406: 'conflict',
  501: 'net.protocol',
  502: 'mq.rejected',
  503: 'mq.rejected',
  504: 'mq.rejected unknown',
  505: 'mq.rejected',
  506: 'mq.unavailable',
  530: 'mq.rejected',
  540: 'not_implemented',
  541: 'mq.unavailable',
};

const NATS: Table = {
  BAD_AUTHENTICATION: 'auth.invalid',
  AUTHORIZATION_VIOLATION: 'auth.invalid',
  AUTHENTICATION_EXPIRED: 'auth.expired transient',
  AUTHENTICATION_TIMEOUT: 'net.timeout',
  PERMISSIONS_VIOLATION: 'auth.forbidden',
  CONNECTION_REFUSED: 'net.refused',
  CONNECTION_TIMEOUT: { reason: 'net.timeout', ambiguous: false },
  CONNECTION_CLOSED: 'mq.connection',
  CONNECTION_DRAINING: 'net.closed_client',
  DISCONNECT: 'mq.connection',
  STALE_CONNECTION: 'mq.connection',
  MAX_CONNECTIONS_EXCEEDED: 'mq.unavailable',
  MAX_PAYLOAD_EXCEEDED: 'too_large',
  TIMEOUT: 'timeout',
  '503': 'mq.unavailable',
  NO_RESPONDERS: 'mq.unavailable',
  '408': 'timeout',
  BAD_SUBJECT: 'validation',
  BAD_JSON: 'data.parse permanent',
  BAD_PAYLOAD: 'validation',
  INVALID_PAYLOAD: 'validation',
  CANCELLED: 'abort',
  JETSTREAM_NOT_ENABLED: 'not_implemented',
  NATS_PROTOCOL_ERR: 'net.protocol',
  SSL_ERR: 'tls.handshake',
  CLIENT_CERT_REQ: 'tls.handshake',
};

const NATS_NAMES: Table = {
  NoRespondersError: 'mq.unavailable',
  AuthorizationError: 'auth.invalid',
  UserAuthenticationExpiredError: 'auth.expired transient',
  PermissionViolationError: 'auth.forbidden',
  ClosedConnectionError: 'mq.connection',
  DrainingConnectionError: 'net.closed_client',
  InvalidSubjectError: 'validation',
};

/** MQTT 3 and 5. */
const MQTT: Table = {
  1: 'net.protocol permanent',
  2: 'auth.forbidden',
  3: 'mq.unavailable',
  4: 'auth.invalid',
  5: 'auth.forbidden',
  134: 'auth.invalid',
  135: 'auth.forbidden',
  136: 'mq.unavailable',
  137: 'mq.unavailable',
  138: 'auth.forbidden',
  149: 'too_large',
  151: 'quota.exhausted rate_limited',
  159: 'throttled',
};

export const kafka: Family = { name: 'kafka', names: KAFKA_NAMES, recognise: byKafka };

function byKafka(fields: ErrorFields): Finding | undefined {
  if (fields.name.startsWith('KafkaJS')) {
    const typed = lookUp(KAFKA, fields.get('type'), 'type');
    if (typed) return typed;
    // Without a cause it is about invalid arguments. With a cause it wraps any error that kafkajs does not retry.
    if (
      fields.name === 'KafkaJSNonRetriableError' &&
      fields.get('cause') == null &&
      fields.get('originalError') == null
    )
      return found('explicit.permanent', 'name');
    return fields.name === 'KafkaJSSASLAuthenticationError' ? found('auth.invalid', 'name') : undefined;
  }
  // node-rdkafka's LibrdKafkaError.
  const origin = fields.get('origin');
  return origin === 'local' || origin === 'kafka' || fields.is('LibrdKafkaError')
    ? lookUp(RDKAFKA, fields.code, 'code')
    : undefined;
}

export const amqp: Family = {
  name: 'amqp',
  sorts: ['numbered', 'bare'],
  recognise: byAmqp,
  names: { IllegalOperationError: 'net.closed_client' },
};

function byAmqp(fields: ErrorFields): Finding | undefined {
  const said = /\b(\d{3}) \(([A-Z]+(?:-[A-Z]+)+)\) with message\b/.exec(fields.message);
  if (said === null && fields.get('methodId') === undefined) return undefined;
  if (fields.message.startsWith('Handshake terminated'))
    return found(said?.[1] === '403' ? 'auth.invalid' : 'mq.rejected', 'message');
  const number = fields.number('code') ?? (said === null ? undefined : Number(said[1]));
  // 406 is not only sent for a queue that was declared differently.
  if (number === 406 && /\bmessage size\b/.test(fields.message)) return found('too_large', 'message');
  if (number === 406 && /\backnowledgement\b.*\btimed out\b/.test(fields.message)) return found('timeout', 'message');
  return lookUp(AMQP, number, 'code');
}

export const nats: Family = { name: 'nats', vendorNames: NATS_NAMES, recognise: byNats };

function byNats(fields: ErrorFields): Finding | undefined {
  if (fields.is('NatsError')) return lookUp(NATS, fields.code, 'code');
  if (fields.is('JetStreamApiError')) {
    const status = readNumber(fields.get('error'), 'code') ?? fields.number('code');
    return status === 503 ? found('mq.unavailable', 'code') : status === 404 ? found('not_found', 'code') : undefined;
  }
  // mqtt.js gives the broker's number.
  if (typeof fields.code === 'number' && /^Connection refused: /.test(fields.text('message') ?? ''))
    return lookUp(MQTT, fields.code, 'code');
  return undefined;
}
