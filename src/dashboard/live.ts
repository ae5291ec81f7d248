import type { Milliseconds } from '../duration.ts';
import type { Operations } from '../queue/operations.ts';

/** How often the store is looked at while a page is open. */
const LOOK_EVERY: Milliseconds = 2_000;

/** Looking takes at most one twentieth of the time, so that a slow store is not asked all the time. */
const LOOKING_SHARE = 20;

/** Proxies close connections on which nothing is sent. */
const HEARTBEAT: Milliseconds = 15_000;

/** A store that takes longer to answer is away: its own calls go on trying for half a minute. */
const AWAY_AFTER: Milliseconds = 5_000;

/** How many sources are compared. */
const MOST_SOURCES = 100;

/** How many messages wait for a page that reads slowly. */
const MOST_UNREAD = 16;

const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };

/** What pages are told of. */
const TOPICS = ['tasks', 'sources'] as const;
type Topic = (typeof TOPICS)[number];

const AWAY = 'event: away\ndata: {}\n\n';
const BACK = 'event: back\ndata: {}\n\n';

interface Page {
  send(text: string): void;
  close(): void;
}

/**
 * Tells open pages that something has changed, so that they ask for what they show, and that the store does not answer. However many pages are open, one loop looks at the store.
 * It ends when the last page is closed.
 */
export class Live {
  readonly #holdfast: Operations;
  readonly #pages = new Set<Page>();
  #seen: Partial<Record<Topic, string>> = {};
  #timer: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #isLooking = false;
  /** Whether the store did not answer the last look. */
  #isAway = false;

  constructor(holdfast: Operations) {
    this.#holdfast = holdfast;
  }

  /** A stream of server-sent events for one page. */
  stream(): Response {
    const encoder = new TextEncoder();
    let page: Page | undefined;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          page = {
            send: (text) => {
              // A page that reads nothing any more is told later.
              if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(text));
            },
            close: () => controller.close(),
          };
          this.#open(page);
        },
        cancel: () => page && this.#leave(page),
      },
      { highWaterMark: MOST_UNREAD },
    );
    return new Response(body, { headers: HEADERS });
  }

  /** Only the headers of a stream. */
  headers(): Response {
    return new Response(null, { headers: HEADERS });
  }

  /** Ends all streams. */
  close(): void {
    for (const page of this.#pages) {
      this.#leave(page);
      page.close();
    }
  }

  #open(page: Page): void {
    this.#pages.add(page);
    page.send('retry: 3000\n\n');
    if (this.#isAway) page.send(AWAY);
    this.#heartbeat ??= setInterval(() => this.#tell(': still here\n\n'), HEARTBEAT).unref();
    if (this.#timer === undefined && !this.#isLooking) this.#lookIn(0);
  }

  #leave(page: Page): void {
    this.#pages.delete(page);
    if (this.#pages.size > 0) return;
    clearTimeout(this.#timer);
    clearInterval(this.#heartbeat);
    this.#timer = undefined;
    this.#heartbeat = undefined;
    this.#seen = {};
  }

  #lookIn(time: Milliseconds): void {
    this.#timer = setTimeout(() => void this.#look(), time).unref();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    const began = performance.now();
    const isLate = setTimeout(() => this.#away(), AWAY_AFTER).unref();
    try {
      const { tasks, sources } = await this.#present();
      this.#back();
      this.#compare('tasks', tasks);
      this.#compare('sources', sources);
    } catch {
      // The next look may succeed.
      this.#away();
    }
    clearTimeout(isLate);
    this.#isLooking = false;
    this.#timer = undefined;
    const took = performance.now() - began;
    if (this.#pages.size === 0) return;
    this.#lookIn(this.#isAway ? LOOK_EVERY : Math.max(LOOK_EVERY, took * LOOKING_SHARE));
  }

  #away(): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#tell(AWAY);
  }

  #back(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#tell(BACK);
  }

  async #present(): Promise<Readonly<Record<Topic, string>>> {
    const { administration } = this.#holdfast;
    const counts = await administration.totals();
    const sources = await administration.sourcesInTrouble(MOST_SOURCES);
    return {
      tasks: JSON.stringify(counts),
      sources: JSON.stringify(sources.map(({ name, hold, state }) => [name, hold?.at, state?.restriction])),
    };
  }

  #compare(topic: Topic, present: string): void {
    const before = this.#seen[topic];
    this.#seen[topic] = present;
    if (before !== undefined && before !== present) this.#tell(`event: ${topic}\ndata: {}\n\n`);
  }

  #tell(text: string): void {
    for (const page of this.#pages) page.send(text);
  }
}
