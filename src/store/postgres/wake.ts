import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import type { News } from '../store.ts';
import type { PgClient } from './client.ts';
import type { Database } from './database.ts';

/**
 * Other processes are told at most this often, and at most this often of urgent news: each NOTIFY wakes every worker, and takes a
 * lock that all transactions with a NOTIFY share while they commit.
 */
const TOLD_EVERY_MS: Milliseconds = 100;
const TOLD_URGENTLY_EVERY_MS: Milliseconds = 10;

/** How long the test of a new listener waits to hear of itself. */
const HEARD_WITHIN_MS: Milliseconds = 2_000;

/** A listener that has heard nothing for so long is tested again: a connection that only goes silent breaks nowhere. */
const TESTED_EVERY_MS: Milliseconds = 60_000;

/** A listener that was lost is made anew after this, doubling up to the longest; so is one that heard nothing. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 60_000;

/** What a new listener tells itself, instead of news. */
const PROBE = 'probe';

/**
 * Tells listeners when work may have become ready: at once for what this process wrote, and by LISTEN for what others did. A
 * pooler may swallow what is listened for, so a new listener tests whether it hears of itself; where it does not, polling
 * finds the work.
 */
export class Wake {
  readonly #database: Database;
  readonly #connect: (() => PgClient) | undefined;
  readonly #channel: string;
  readonly #clock: Clock;
  readonly #listeners = new Set<(news: News) => void>();
  /** What others have not been told yet. */
  readonly #untold = new Set<News>();
  /** What others are told by, so that nobody wakes for his own. */
  readonly #self = randomUUID();
  /** Listens, or is about to. */
  #ear: Ear | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;
  #telling: { readonly at: Milliseconds; readonly timer: NodeJS.Timeout } | undefined;
  #retry: NodeJS.Timeout | undefined;
  /** When it was heard last; undefined while nothing is heard. */
  #heardAt: Milliseconds | undefined;
  #pause = FIRST_PAUSE_MS;
  #closed = false;

  /** `connect`: absent where nobody is to listen. */
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

  /** Tells everyone who listens in this process, and, now and then, those in others. `isUrgent`: workers may be idle. */
  call(news: News, isUrgent = false): void {
    this.#wake(news);
    this.tellOthers(news, isUrgent);
  }

  tellOthers(news: News, isUrgent = false): void {
    this.#untold.add(news);
    const at = this.#toldAt + (isUrgent ? TOLD_URGENTLY_EVERY_MS : TOLD_EVERY_MS);
    if (this.#closed || (this.#telling && this.#telling.at <= at)) return;
    clearTimeout(this.#telling?.timer);
    const wait = at - performance.now();
    if (wait <= 0) this.#tell();
    else this.#telling = { at, timer: setTimeout(() => this.#tell(), wait) };
  }

  get isHearing(): boolean {
    return this.#heardAt !== undefined;
  }

  /** What a call is to send by NOTIFY, so that it is found out whether this is still heard; undefined where it need not be. */
  probe(): string | undefined {
    const isDue = this.#heardAt !== undefined && this.#clock.monotonic() - this.#heardAt >= TESTED_EVERY_MS;
    return isDue ? `${this.#self} ${PROBE}` : undefined;
  }

  /** That call was answered. What it sent comes within a moment, or the connection has gone silent. */
  probed(): void {
    const [ear, heardAt] = [this.#ear, this.#heardAt];
    setTimeout(() => {
      if (this.#ear === ear && this.#heardAt === heardAt) ear?.close();
    }, HEARD_WITHIN_MS).unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#telling?.timer);
    this.#listeners.clear();
    this.#stop();
  }

  #wake(news: News): void {
    for (const listener of [...this.#listeners]) listener(news);
  }

  #tell(): void {
    this.#telling = undefined;
    this.#toldAt = performance.now();
    const news = [...this.#untold].join();
    this.#untold.clear();
    void this.#database.tell('SELECT pg_notify($1, $2)', [this.#channel, `${this.#self} ${news}`]);
  }

  #start(): void {
    if (!this.#connect || this.#ear || this.#closed || this.#listeners.size === 0) return;
    clearTimeout(this.#retry);
    const ear = new Ear(this.#connect, this.#channel, {
      heard: (payload) => {
        this.#heardAt = this.#clock.monotonic();
        const [self, news = 'any'] = payload.split(' ');
        if (self === this.#self || news === PROBE) return;
        for (const each of news.split(',')) this.#wake(isNews(each) ? each : 'any');
      },
      lost: () => {
        if (this.#ear !== ear) return;
        this.#ear = undefined;
        this.#heardAt = undefined;
        this.#retry = setTimeout(() => this.#start(), this.#pause).unref();
        this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE_MS);
      },
    });
    this.#ear = ear;
    void this.#test(ear);
  }

  async #test(ear: Ear): Promise<void> {
    const probe = `${randomUUID()} ${PROBE}`;
    const answer = await ear.hears(probe, () =>
      this.#database.tell('SELECT pg_notify($1, $2)', [this.#channel, probe]),
    );
    if (this.#ear !== ear || !answer) return;
    this.#pause = FIRST_PAUSE_MS;
    this.#heardAt = this.#clock.monotonic();
    // What was told while nobody listened.
    this.#wake('any');
  }

  #stop(): void {
    clearTimeout(this.#retry);
    const ear = this.#ear;
    this.#ear = undefined;
    this.#heardAt = undefined;
    ear?.close();
  }
}

function isNews(text: string): text is News {
  return text === 'work' || text === 'recall' || text === 'workers';
}

interface Hearer {
  heard(payload: string): void;
  /** It hears nothing any more, or never did. */
  lost(): void;
}

/** A connection that listens. */
class Ear {
  readonly #hearer: Hearer;
  readonly #listening: string;
  readonly #client: PgClient;
  #probe = '';
  #answer: (hears: boolean) => void = () => {};
  #isClosed = false;

  constructor(connect: () => PgClient, channel: string, hearer: Hearer) {
    this.#hearer = hearer;
    this.#listening = `LISTEN ${channel}`;
    this.#client = connect();
    this.#client.on('error', () => this.close());
    this.#client.on('end', () => this.close());
    this.#client.on('notification', ({ payload = '' }) => {
      if (payload === this.#probe) this.#answer(true);
      else hearer.heard(payload);
    });
  }

  /** Connects, and finds out whether what `tell` sends comes back. One that hears nothing is closed. */
  async hears(probe: string, tell: () => Promise<boolean>): Promise<boolean> {
    this.#probe = probe;
    const heard = new Promise<boolean>((resolve) => {
      this.#answer = resolve;
    });
    try {
      await Promise.race([this.#client.connect(), heard]);
      // That a process listens is no reason for it to go on.
      this.#client.unref();
      await this.#client.query({ text: this.#listening, query_timeout: HEARD_WITHIN_MS });
    } catch {
      // Polling finds the work until the database is there again.
      this.close();
    }
    const timer = setTimeout(() => this.close(), HEARD_WITHIN_MS).unref();
    if (this.#isClosed || !(await tell())) this.close();
    const answer = await heard;
    clearTimeout(timer);
    return answer;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#answer(false);
    // Its connection is of no use any more, whether it can be ended in good order or not.
    this.#client.unref();
    void this.#client.end().catch(() => {});
    this.#hearer.lost();
  }
}
