import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import type { News } from '../store.ts';
import type { PgClient } from './client.ts';
import type { Database } from './database.ts';

/**
 * The shortest time between two NOTIFYs, and between two with urgent news: each NOTIFY wakes every worker, and takes a lock that
 * all transactions with a NOTIFY share while they commit.
 */
const NOTIFY_EVERY_MS: Milliseconds = 100;
const NOTIFY_URGENT_EVERY_MS: Milliseconds = 10;

/** How long a connection waits for its own test message. */
const TEST_WITHIN_MS: Milliseconds = 2_000;

/** A connection that got no notification for this long is tested again, because a silent connection reports no error. */
const TEST_EVERY_MS: Milliseconds = 60_000;

/** A lost or silent connection is replaced after the first pause; each further pause is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 60_000;

/** A NOTIFY that does not wait for the disk: it writes nothing else, and if a crash loses it, polling finds the work. */
const NOTIFY_AT_ONCE = "SELECT pg_notify($1, $2) FROM set_config('synchronous_commit', 'off', true)";

/** A connection sends itself this instead of news to test whether it gets notifications. */
const TEST = 'probe';

/**
 * Calls listeners when work may have become ready: at once for what this process wrote, and by LISTEN for what others wrote. A
 * pooler may drop notifications, so each new connection sends itself a test message. If that does not arrive, polling finds the
 * work.
 */
export class Wake {
  readonly #database: Database;
  readonly #connect: (() => PgClient) | undefined;
  readonly #channel: string;
  readonly #clock: Clock;
  readonly #listeners = new Set<(news: News) => void>();
  /** News that other processes have not got yet. */
  readonly #unsent = new Set<News>();
  /** Sent with each NOTIFY, so that this process ignores its own. */
  readonly #processId = randomUUID();
  /** It listens, or is being opened. */
  #connection: ListenConnection | undefined;
  #notifiedAt = Number.NEGATIVE_INFINITY;
  #nextNotify: { readonly at: Milliseconds; readonly timer: NodeJS.Timeout } | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;
  /** When the last notification arrived; undefined while none can arrive. */
  #receivedAt: Milliseconds | undefined;
  #pause = FIRST_PAUSE_MS;
  #closed = false;

  /** `connect`: absent if this process does not listen. */
  constructor(database: Database, connect: (() => PgClient) | undefined, channel: string, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
    this.#connect = connect;
    this.#channel = channel;
  }

  listen(listener: (news: News) => void): () => void {
    this.#listeners.add(listener);
    this.#start();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  /** Notifies this process at once, and other processes soon. `isUrgent`: workers may be idle. */
  notify(news: News, isUrgent = false): void {
    this.notifyOwn(news);
    this.notifyOthers(news, isUrgent);
  }

  notifyOwn(news: News): void {
    for (const listener of [...this.#listeners]) listener(news);
  }

  notifyOthers(news: News, isUrgent = false): void {
    this.#unsent.add(news);
    const at = this.#notifiedAt + (isUrgent ? NOTIFY_URGENT_EVERY_MS : NOTIFY_EVERY_MS);
    if (this.#closed || (this.#nextNotify && this.#nextNotify.at <= at)) return;
    clearTimeout(this.#nextNotify?.timer);
    const wait = at - performance.now();
    if (wait <= 0) this.#send();
    else this.#nextNotify = { at, timer: setTimeout(() => this.#send(), wait) };
  }

  /** Whether notifications of other processes arrive. */
  get isListening(): boolean {
    return this.#receivedAt !== undefined;
  }

  /** The test message that the next call must send by NOTIFY; undefined if no test is due. */
  dueTest(): string | undefined {
    const isDue = this.#receivedAt !== undefined && this.#clock.monotonic() - this.#receivedAt >= TEST_EVERY_MS;
    return isDue ? `${this.#processId} ${TEST}` : undefined;
  }

  /** The test message was sent. If it does not arrive soon, the connection is silent and gets replaced. */
  testSent(): void {
    const [connection, receivedAt] = [this.#connection, this.#receivedAt];
    setTimeout(() => {
      if (this.#connection === connection && this.#receivedAt === receivedAt) connection?.close();
    }, TEST_WITHIN_MS).unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#nextNotify?.timer);
    this.#listeners.clear();
    this.#stop();
  }

  #send(): void {
    this.#nextNotify = undefined;
    this.#notifiedAt = performance.now();
    const news = [...this.#unsent].join();
    this.#unsent.clear();
    void this.#database.tryQuery(NOTIFY_AT_ONCE, [this.#channel, `${this.#processId} ${news}`]);
  }

  #start(): void {
    if (!this.#connect || this.#connection || this.#closed || this.#listeners.size === 0) return;
    clearTimeout(this.#reconnectTimer);
    const connection = new ListenConnection(this.#connect, this.#channel, {
      received: (payload) => {
        this.#receivedAt = this.#clock.monotonic();
        const [sender, news = 'any'] = payload.split(' ');
        if (sender === this.#processId || news === TEST) return;
        for (const each of news.split(',')) this.notifyOwn(isNews(each) ? each : 'any');
      },
      lost: () => {
        if (this.#connection !== connection) return;
        this.#connection = undefined;
        this.#receivedAt = undefined;
        this.#reconnectTimer = setTimeout(() => this.#start(), this.#pause).unref();
        this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE_MS);
      },
    });
    this.#connection = connection;
    void this.#test(connection);
  }

  async #test(connection: ListenConnection): Promise<void> {
    const message = `${randomUUID()} ${TEST}`;
    const works = await connection.start(message, () =>
      this.#database.tryQuery('SELECT pg_notify($1, $2)', [this.#channel, message]),
    );
    if (this.#connection !== connection || !works) return;
    this.#pause = FIRST_PAUSE_MS;
    this.#receivedAt = this.#clock.monotonic();
    // News may have been missed before.
    this.notifyOwn('any');
  }

  #stop(): void {
    clearTimeout(this.#reconnectTimer);
    const connection = this.#connection;
    this.#connection = undefined;
    this.#receivedAt = undefined;
    connection?.close();
  }
}

function isNews(text: string): text is News {
  return text === 'work' || text === 'recall' || text === 'workers' || text === 'schedules';
}

interface ConnectionEvents {
  received(payload: string): void;
  /** No notifications arrive any more, or none ever did. */
  lost(): void;
}

/** A connection that listens. */
class ListenConnection {
  readonly #events: ConnectionEvents;
  readonly #statement: string;
  readonly #client: PgClient;
  #testMessage = '';
  #endTest: (arrived: boolean) => void = () => {};
  #isClosed = false;

  constructor(connect: () => PgClient, channel: string, events: ConnectionEvents) {
    this.#events = events;
    this.#statement = `LISTEN ${channel}`;
    this.#client = connect();
    this.#client.on('error', () => this.close());
    this.#client.on('end', () => this.close());
    this.#client.on('notification', ({ payload = '' }) => {
      if (payload === this.#testMessage) this.#endTest(true);
      else events.received(payload);
    });
  }

  /** Connects and listens, and resolves to whether the test message of `send` arrives. If it does not, closes the connection. */
  async start(testMessage: string, send: () => Promise<boolean>): Promise<boolean> {
    this.#testMessage = testMessage;
    const arrival = new Promise<boolean>((resolve) => {
      this.#endTest = resolve;
    });
    try {
      await Promise.race([this.#client.connect(), arrival]);
      // A process may exit while it listens.
      this.#client.unref();
      await this.#client.query({ text: this.#statement, query_timeout: TEST_WITHIN_MS });
    } catch {
      // Polling finds the work until the database answers again.
      this.close();
    }
    const timer = setTimeout(() => this.close(), TEST_WITHIN_MS).unref();
    if (this.#isClosed || !(await send())) this.close();
    const arrived = await arrival;
    clearTimeout(timer);
    return arrived;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#endTest(false);
    // Ending may fail if the server is gone. That does not matter.
    this.#client.unref();
    void this.#client.end().catch(() => {});
    this.#events.lost();
  }
}
