// Brokers and calls: AMQP, Kafka, NATS, MQTT, STOMP, web sockets, gRPC.
import { createClient as createConnect } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import * as grpc from '@grpc/grpc-js';
import amqplib from 'amqplib';
import { Kafka, logLevel } from 'kafkajs';
import mqtt from 'mqtt';
import { connect as connectNats } from 'nats';
import { createChannel, createClient as createNice } from 'nice-grpc';
import rhea from 'rhea';
import stompit from 'stompit';
import WebSocket, { WebSocketServer } from 'ws';
import { each, failed, library } from './cases.mjs';
import { HOST } from './loopback.mjs';

const REFUSED = ['nobody listens', 'transient net.refused source'];

// ── AMQP 0-9-1 ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
const frame = (channel, classId, methodId, ...args) => {
  const method = Buffer.alloc(4);
  method.writeUInt16BE(classId, 0);
  method.writeUInt16BE(methodId, 2);
  const payload = Buffer.concat([method, ...args]);
  const head = Buffer.alloc(7);
  head.writeUInt8(1, 0);
  head.writeUInt16BE(channel, 1);
  head.writeUInt32BE(payload.length, 3);
  return Buffer.concat([head, payload, Buffer.from([0xce])]);
};
const u16 = (n) => Buffer.from([n >> 8, n & 255]);
const u32 = (n) => Buffer.from([n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255]);
const short = (text) => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
const long = (text) => Buffer.concat([u32(text.length), Buffer.from(text)]);
const START = frame(0, 10, 10, Buffer.from([0, 9]), u32(0), long('PLAIN AMQPLAIN'), long('en_US'));
const TUNE = frame(0, 10, 30, u16(10), u32(131_072), u16(0));
const closeConnection = (code, text) => frame(0, 10, 50, u16(code), short(text), u16(0), u16(0));
const closeChannel = (code, text) => frame(1, 20, 40, u16(code), short(text), u16(50), u16(10));

/** An AMQP broker that goes along until the method that `at` names, and answers that with `reply`. */
const amqpServer = (on, at, reply) =>
  on.tcp((socket) => {
    let started = false;
    let rest = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      if (!started) {
        started = true;
        rest = rest.subarray(8);
        socket.write(START);
      }
      while (rest.length >= 7 && rest.length >= rest.readUInt32BE(3) + 8) {
        const size = rest.readUInt32BE(3);
        const method = `${rest.readUInt16BE(7)}.${rest.readUInt16BE(9)}`;
        rest = rest.subarray(size + 8);
        if (method === at) {
          if (reply === null) socket.resetAndDestroy();
          else socket.write(reply);
        } else if (method === '10.11') socket.write(TUNE);
        else if (method === '10.40') socket.write(frame(0, 10, 41, short('')));
        else if (method === '20.10') socket.write(frame(1, 20, 11, u32(0)));
        else if (method === '10.50') socket.write(frame(0, 10, 51));
      }
    });
  });
const callAmqp = async (port, on) => {
  const connection = await amqplib.connect(`amqp://u:p@${HOST}:${port}`, { timeout: 2_000 });
  on.closing(() => connection.close());
  // The reason of a connection's end comes as an event; the promise only says that the channel is gone.
  const ended = failed((done) => connection.once('error', done));
  const channel = await connection.createChannel();
  channel.on('error', () => {});
  return Promise.race([ended, channel.assertQueue('q')]);
};

const callRhea = (port, on) =>
  failed((done) => {
    const connection = rhea
      .create_container()
      .connect({ host: HOST, port, reconnect: false, username: 'u', password: 'p' });
    on.closing(() => connection.close());
    connection.on('connection_error', (context) => done(context.connection.error));
    connection.on('disconnected', (context) => done(context.error ?? new Error('Connection closed')));
    connection.on('error', done);
  });

// ── Kafka, NATS, MQTT, STOMP ───────────────────────────────────────────────────────────────────────────────────────────────
const callKafka = async (port, on, soon = false) => {
  const kafka = new Kafka({
    brokers: [`${HOST}:${port}`],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: soon ? 300 : 2_000,
    retry: { retries: 0, initialRetryTime: 10 },
  });
  const producer = kafka.producer();
  on.closing(() => producer.disconnect());
  await producer.connect();
  return producer.send({ topic: 't', messages: [{ value: 'x' }] });
};

const INFO = (more = {}) =>
  `INFO ${JSON.stringify({ server_id: 'x', version: '2.10.0', max_payload: 1_000, proto: 1, headers: true, ...more })}\r\n`;
const natsServer = (on, answers, more) => on.lines(INFO(more), { CONNECT: undefined, PING: 'PONG\r\n', ...answers });
const callNats = async (port, on, act = (connection) => connection.request('a', '', { timeout: 150 })) => {
  const connection = await connectNats({
    servers: `${HOST}:${port}`,
    timeout: 1_000,
    reconnect: false,
    maxReconnectAttempts: 0,
    waitOnFirstConnect: false,
  });
  on.closing(() => connection.close());
  return act(connection);
};

const callMqtt = (port, on, options = {}) =>
  failed((done) => {
    const client = mqtt.connect({
      host: HOST,
      port,
      protocol: 'mqtt',
      reconnectPeriod: 0,
      connectTimeout: 200,
      ...options,
    });
    on.closing(() => client.endAsync(true));
    client.on('error', done);
    client.on('connect', () => client.publish('a', 'b', { qos: 1 }, done));
    client.on('close', () => done(new Error('Connection closed')));
  });
/** MQTT 3.1.1 and 5 differ by the length of the acknowledgement. */
const connack = (on, code, five = false) =>
  on.tcp((socket) =>
    socket.once('data', () => socket.write(Buffer.from(five ? [0x20, 3, 0, code, 0] : [0x20, 2, 0, code]))),
  );

const callStomp = (port, on) =>
  failed((done) => {
    stompit.connect(
      { host: HOST, port, timeout: 1_000, connectHeaders: { host: '/', login: 'u', passcode: 'p' } },
      (error, client) => {
        if (error) return done(error);
        on.closing(() => client.destroy());
        client.on('error', done);
        client.subscribe({ destination: '/q' }, (wrong) => wrong && done(wrong));
      },
    );
  });

// ── Web sockets ────────────────────────────────────────────────────────────────────────────────────────────────────────────
const callWs = (port, on, options) =>
  failed((done) => {
    const socket = new WebSocket(`ws://${HOST}:${port}`, { handshakeTimeout: 150, ...options });
    on.closing(() => socket.terminate());
    socket.on('error', done);
    socket.on('close', (code, reason) =>
      done(Object.assign(new Error(`WebSocket closed: ${reason}`), { code, wasClean: true })),
    );
  });
const wsServer = (on, act, options) =>
  new Promise((resolve) => {
    const server = new WebSocketServer({ host: HOST, port: 0, ...options }, () => resolve(server.address().port));
    server.on('connection', (socket) => {
      socket.on('error', () => {});
      act(socket);
    });
    on.closing(() => {
      for (const client of server.clients) client.terminate();
      server.close();
    });
  });

// ── gRPC ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────
/** Messages are empty on the wire, and objects on either side. */
const [toNothing, toObject] = [() => Buffer.alloc(0), () => ({})];
const plain = {
  requestSerialize: toNothing,
  requestDeserialize: toObject,
  responseSerialize: toNothing,
  responseDeserialize: toObject,
};
const SERVICE = { say: { path: '/t.Talk/Say', requestStream: false, responseStream: false, options: {}, ...plain } };
async function grpcServer(on, say) {
  const server = new grpc.Server();
  server.addService(SERVICE, { say });
  const port = await failed((done) => server.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), done));
  on.closing(() => server.forceShutdown());
  return port;
}
const callGrpc = (port, on, { credentials = grpc.credentials.createInsecure(), ...options } = {}) =>
  failed((done) => {
    const Talk = grpc.makeGenericClientConstructor(SERVICE, 'Talk');
    const client = new Talk(`${HOST}:${port}`, credentials);
    on.closing(() => client.close());
    client.say({}, new grpc.Metadata(), { deadline: Date.now() + 5_000, ...options }, done);
  });
const callNice = (port, on, { deadline = 5_000 } = {}) => {
  const channel = createChannel(`${HOST}:${port}`);
  on.closing(() => channel.close());
  const say = { path: '/t.Talk/Say', requestStream: false, responseStream: false, options: {}, ...plain };
  const signal = AbortSignal.timeout(deadline);
  return createNice({ say }, channel).say({}, { signal });
};
/** Connect's client for a method without a schema of its own: google.protobuf.Empty both ways. */
const { EmptySchema } = await import('@bufbuild/protobuf/wkt');
const TALK = { kind: 'service', typeName: 't.Talk', method: {}, methods: [] };
const SAY = {
  kind: 'rpc',
  methodKind: 'unary',
  name: 'Say',
  localName: 'say',
  input: EmptySchema,
  output: EmptySchema,
  parent: TALK,
  idempotency: undefined,
  deprecated: false,
  proto: {},
  toString: () => 'Say',
};
TALK.methods.push(SAY);
TALK.method.say = SAY;
const callConnectGrpc = (port, _on, { timeoutMs = 5_000 } = {}) =>
  createConnect(TALK, createGrpcTransport({ baseUrl: `http://${HOST}:${port}` })).say({}, { timeoutMs });
const callConnect = (port, _on, { timeoutMs = 5_000 } = {}) =>
  createConnect(TALK, createConnectTransport({ baseUrl: `http://${HOST}:${port}`, httpVersion: '1.1' })).say(
    {},
    { timeoutMs },
  );

const status =
  (code, details = 'd', metadata) =>
  (_call, done) =>
    done({ code, details, ...(metadata && { metadata }) });
const tells = (code) => async (call, on) => call(await grpcServer(on, status(grpc.status[code])), on);
const GRPC = {
  'nobody listens': [
    'transient grpc.unavailable source | transient net.refused source',
    async (call, on) => call(await on.closedPort(), on),
  ],
  UNAVAILABLE: ['transient grpc.unavailable source', tells('UNAVAILABLE')],
  RESOURCE_EXHAUSTED: ['rate_limited throttled quota', tells('RESOURCE_EXHAUSTED')],
  NOT_FOUND: ['permanent not_found task', tells('NOT_FOUND')],
  INVALID_ARGUMENT: ['permanent validation task', tells('INVALID_ARGUMENT')],
  UNAUTHENTICATED: ['permanent auth.invalid source', tells('UNAUTHENTICATED')],
  PERMISSION_DENIED: ['permanent auth.forbidden task', tells('PERMISSION_DENIED')],
  ABORTED: ['transient grpc.aborted task', tells('ABORTED')],
  INTERNAL: ['unknown grpc.internal source ambiguous', tells('INTERNAL')],
  ALREADY_EXISTS: ['permanent conflict task', tells('ALREADY_EXISTS')],
  FAILED_PRECONDITION: ['permanent grpc.failed_precondition task', tells('FAILED_PRECONDITION')],
  'a method that the server does not have': ['permanent not_implemented task', tells('UNIMPLEMENTED')],
};

const connectSays = (httpStatus, code, headers) => async (on) =>
  callConnect(new URL(await on.answering(httpStatus, { code, message: 'm' }, headers)).port, on);

export default [
  library(
    'amqplib',
    [...REFUSED, async (on) => callAmqp(await on.closedPort(), on)],
    [
      'a wrong password',
      'permanent auth.invalid source',
      async (on) =>
        callAmqp(await amqpServer(on, '10.11', closeConnection(403, 'ACCESS_REFUSED - Login was refused')), on),
    ],
    [
      'a host that is not there', // It keeps nothing of the reason that the broker gave.
      'unknown mq.rejected task',
      async (on) =>
        callAmqp(await amqpServer(on, '10.40', closeConnection(530, 'NOT_ALLOWED - vhost / not found')), on),
    ],
    [
      'a queue that was declared otherwise',
      'permanent conflict task',
      async (on) =>
        callAmqp(
          await amqpServer(on, '50.10', closeChannel(406, "PRECONDITION_FAILED - inequivalent arg 'durable'")),
          on,
        ),
    ],
    [
      'a queue that somebody has for themselves',
      'transient mq.locked source',
      async (on) => callAmqp(await amqpServer(on, '50.10', closeChannel(405, 'RESOURCE_LOCKED')), on),
    ],
    [
      'a right that is missing',
      'permanent auth.forbidden task',
      async (on) => callAmqp(await amqpServer(on, '50.10', closeChannel(403, 'ACCESS_REFUSED')), on),
    ],
    [
      'a broker that is shut down',
      'transient mq.connection source ambiguous',
      async (on) =>
        callAmqp(
          await amqpServer(
            on,
            '50.10',
            closeConnection(320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"),
          ),
          on,
        ),
    ],
    [
      'the connection is reset',
      'transient mq.connection source ambiguous | transient net.reset source ambiguous',
      async (on) => callAmqp(await amqpServer(on, '50.10', null), on),
    ],
    [
      'the peer speaks another protocol',
      'unknown net.protocol source',
      async (on) => callAmqp(await on.babbling(), on),
    ],
    [
      'the broker says nothing',
      'transient net.timeout source | transient net.timeout source ambiguous | transient mq.connection source ambiguous',
      async (on) => callAmqp(await on.silent(), on),
    ],
  ),
  library(
    'rhea',
    [...REFUSED, async (on) => callRhea(await on.closedPort(), on)],
    [
      'the connection is reset',
      'transient net.reset source ambiguous',
      async (on) => callRhea(await on.resetting(), on),
    ],
    [
      'the peer speaks another protocol',
      'unknown net.protocol source',
      async (on) => callRhea(await on.babbling('HTTP/1.1 400 Bad Request\r\n\r\n'), on),
    ],
  ),
  library(
    'kafkajs',
    [
      'nobody listens',
      'transient mq.connection source ambiguous | transient net.refused source | transient mq.connection source',
      async (on) => callKafka(await on.closedPort(), on),
    ],
    [
      'the broker says nothing',
      'transient timeout task ambiguous | transient net.timeout source ambiguous | transient mq.connection source ambiguous',
      async (on) => callKafka(await on.silent(), on, true),
    ],
    [
      'the broker hangs up',
      'transient mq.connection source ambiguous | transient net.reset source ambiguous',
      async (on) => callKafka(await on.resetting(), on),
    ],
    [
      'a message that is none',
      'permanent validation task | permanent code.bug task | permanent explicit.permanent task',
      async (on) => {
        const producer = new Kafka({ brokers: ['127.0.0.1:1'], logLevel: logLevel.NOTHING }).producer();
        void on;
        return producer.send({ messages: [] });
      },
    ],
  ),
  library(
    'nats',
    [...REFUSED, async (on) => callNats(await on.closedPort(), on)],
    [
      'a wrong password',
      'permanent auth.invalid source',
      async (on) => callNats(await natsServer(on, { CONNECT: "-ERR 'Authorization Violation'\r\n" }), on),
    ],
    [
      'no answer comes in time',
      'transient timeout task ambiguous',
      async (on) => callNats(await natsServer(on, {}), on),
    ],
    [
      'nobody answers to the subject',
      'transient mq.unavailable source',
      async (on) =>
        callNats(
          await on.tcp((socket) => {
            socket.write(INFO());
            let inbox;
            socket.on('data', (chunk) => {
              const text = String(chunk);
              if (text.includes('PING')) socket.write('PONG\r\n');
              const subscribed = /SUB (_INBOX\.\S+)\.\* (\d+)/.exec(text);
              if (subscribed) inbox = subscribed.slice(1);
              const asked = /PUB a (_INBOX\.\S+) /.exec(text);
              if (asked) socket.write(`HMSG ${asked[1]} ${inbox[1]} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n`);
            });
          }),
          on,
        ),
    ],
    [
      'a message that is too large',
      'permanent too_large task',
      async (on) =>
        callNats(await natsServer(on, {}), on, (connection) => connection.publish('a', new Uint8Array(2_000))),
    ],
    [
      'a connection that was closed',
      'transient mq.connection source ambiguous | unknown net.closed_client task',
      async (on) =>
        callNats(await natsServer(on, {}), on, async (connection) => {
          await connection.close();
          return connection.publish('a', '');
        }),
    ],
    // It has one code for this and for a request that nobody answered in time.
    ['the server says nothing', 'transient timeout task ambiguous', async (on) => callNats(await on.silent(), on)],
  ),
  library(
    'mqtt',
    [...REFUSED, async (on) => callMqtt(await on.closedPort(), on)],
    ['a wrong password', 'permanent auth.invalid source', async (on) => callMqtt(await connack(on, 4), on)],
    [
      'a broker that is not available',
      'transient mq.unavailable source',
      async (on) => callMqtt(await connack(on, 3), on),
    ],
    [
      'a right that is missing',
      'permanent auth.forbidden task | permanent auth.invalid source',
      async (on) => callMqtt(await connack(on, 5), on),
    ],
    [
      'MQTT 5: a broker that is busy',
      'transient mq.unavailable source',
      async (on) => callMqtt(await connack(on, 137, true), on, { protocolVersion: 5 }),
    ],
    [
      'MQTT 5: a quota that is used up',
      'rate_limited quota.exhausted quota',
      async (on) => callMqtt(await connack(on, 151, true), on, { protocolVersion: 5 }),
    ],
    [
      'MQTT 5: too many connections at once',
      'rate_limited throttled quota',
      async (on) => callMqtt(await connack(on, 159, true), on, { protocolVersion: 5 }),
    ],
    [
      'the broker says nothing',
      'transient net.timeout source | transient mq.connection source | transient net.timeout source ambiguous',
      async (on) => callMqtt(await on.silent(), on),
    ],
    [
      'the connection is reset',
      'transient net.reset source ambiguous',
      async (on) => callMqtt(await on.resetting(), on),
    ],
  ),
  library(
    'stompit',
    [...REFUSED, async (on) => callStomp(await on.closedPort(), on)],
    [
      'a wrong password',
      'permanent auth.invalid source | unknown unknown task',
      async (on) =>
        callStomp(
          await on.tcp((socket) =>
            socket.once('data', () => socket.write('ERROR\nmessage:Bad CONNECT\n\nAccess refused for user\0')),
          ),
          on,
        ),
    ],
    [
      'the connection is reset',
      'transient net.reset source ambiguous',
      async (on) => callStomp(await on.resetting(), on),
    ],
  ),
  library(
    'ws',
    [...REFUSED, async (on) => callWs(await on.closedPort(), on)],
    ['the handshake takes too long', 'transient net.timeout source', async (on) => callWs(await on.silent(), on)],
    [
      'the server answers 401',
      'permanent auth.invalid source',
      async (on) => callWs(new URL(await on.answering(401)).port, on),
    ],
    [
      'the server answers 503',
      'transient http.5xx source',
      async (on) => callWs(new URL(await on.answering(503)).port, on),
    ],
    [
      'the server goes away',
      'transient net.reset source ambiguous',
      async (on) => callWs(await wsServer(on, (socket) => socket.close(1001)), on),
    ],
    [
      'a policy was broken',
      'permanent auth.forbidden task',
      async (on) => callWs(await wsServer(on, (socket) => socket.close(1008, 'no')), on),
    ],
    [
      'the server is overloaded',
      'transient api.unavailable source ambiguous | transient api.unavailable source',
      async (on) => callWs(await wsServer(on, (socket) => socket.close(1013)), on),
    ],
    [
      'a message that is too large for us',
      'permanent too_large task',
      async (on) => callWs(await wsServer(on, (socket) => socket.send('x'.repeat(200))), on, { maxPayload: 100 }),
    ],
    [
      'a frame that is none',
      'unknown net.protocol source',
      async (on) =>
        callWs(await wsServer(on, (socket) => socket._socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]))), on),
    ],
    [
      'the peer is no web socket',
      'unknown unknown task | unknown http.3xx task | unknown net.protocol source',
      async (on) => callWs(new URL(await on.answering(200)).port, on),
    ],
  ),
  each('@grpc/grpc-js', callGrpc, GRPC)(
    [
      'the deadline is over',
      'transient timeout task ambiguous',
      async (on) => callGrpc(await grpcServer(on, () => {}), on, { deadline: Date.now() + 150 }),
    ],
    [
      'push-back that asks for a wait',
      'rate_limited throttled quota after 2.5s',
      async (on) => {
        const metadata = new grpc.Metadata();
        metadata.set('grpc-retry-pushback-ms', '2500');
        return callGrpc(await grpcServer(on, status(grpc.status.RESOURCE_EXHAUSTED, 'slow', metadata)), on);
      },
    ],
    [
      'the connection is reset',
      'transient grpc.unavailable source | transient grpc.unavailable source ambiguous | transient net.reset source ambiguous',
      async (on) => callGrpc(await on.resetting(), on),
    ],
    [
      'nobody vouches for the certificate',
      'transient grpc.unavailable source | permanent tls.certificate source',
      async (on) =>
        callGrpc(await on.tls(undefined, { ALPNProtocols: ['h2'] }), on, { credentials: grpc.credentials.createSsl() }),
    ],
    [
      'the server broke off',
      'unknown grpc.unknown source ambiguous',
      async (on) =>
        callGrpc(
          await grpcServer(on, () => {
            throw new Error('bug');
          }),
          on,
        ),
    ],
  ),
  each(
    'nice-grpc',
    callNice,
    GRPC,
  )([
    'the caller stops waiting',
    'transient timeout task ambiguous | transient abort worker ambiguous',
    async (on) => callNice(await grpcServer(on, () => {}), on, { deadline: 150 }),
  ]),
  each(
    '@connectrpc/connect, over gRPC',
    callConnectGrpc,
    GRPC,
  )(
    [
      'the deadline is over',
      'transient timeout task ambiguous',
      async (on) => callConnectGrpc(await grpcServer(on, () => {}), on, { timeoutMs: 150 }),
    ],
    // It tells of the stream that was cancelled with the connection.
    [
      'the connection is reset',
      'transient net.reset source ambiguous | transient abort worker ambiguous',
      async (on) => callConnectGrpc(await on.resetting(), on),
    ],
  ),
  library(
    '@connectrpc/connect, over HTTP',
    [
      'nobody listens',
      'transient net.refused source | transient grpc.unavailable source',
      async (on) => callConnect(await on.closedPort(), on),
    ],
    ['unavailable', 'transient grpc.unavailable source', connectSays(503, 'unavailable')],
    [
      'resource_exhausted',
      'rate_limited throttled quota after 4s | rate_limited throttled quota',
      connectSays(429, 'resource_exhausted', { 'retry-after': '4' }),
    ],
    ['permission_denied', 'permanent auth.forbidden task', connectSays(403, 'permission_denied')],
    ['failed_precondition', 'permanent grpc.failed_precondition task', connectSays(400, 'failed_precondition')],
    [
      'a proxy that answers 503 with a page',
      'transient grpc.unavailable source',
      async (on) => callConnect(new URL(await on.answering(503, '<html>', { 'content-type': 'text/html' })).port, on),
    ],
    [
      'the deadline is over',
      'transient timeout task ambiguous',
      async (on) => callConnect(await on.silent(), on, { timeoutMs: 150 }),
    ],
  ),
];
