import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** How a way to a server fails: the statement, or its answer, never arrives, and both sides see their connection cut. */
export type Loss = 'statement' | 'answer';

/** A way to a server that fails as it is told. */
export interface TestProxy {
  /** The same database, by way of here. */
  url(direct: string): string;
  /** Loses the next statement that has this text, or the answer to it, once. Resolves when it did. */
  lose(what: Loss, text: string): Promise<void>;
  /** Freezes the connection over which this text is said next, with it. Resolves when it did. */
  delay(text: string): Promise<void>;
  /** Passes nothing on, in no direction, over the connections that stand; what is said is kept. */
  freeze(): void;
  /** The same for those that come, too. */
  swallow(): void;
  /** Passes on what was kept, and all that follows. */
  thaw(): void;
  /** Cuts all connections, and forgets what was kept of them. */
  cut(): void;
  /** How many connections were made so far, and how many of them stand. */
  readonly accepted: number;
  readonly standing: number;
  /** Resolves when something is said that is kept. */
  kept(): Promise<void>;
  close(): Promise<void>;
}

/** What the server ends every answer with: it is ready for the next, in some state; what was asked is committed. */
const READY = 'Z\0\0\0\x05';
const READY_BYTES = 6;

/** Starts a proxy on the loopback interface, in front of the server of this URL. */
export async function startProxy(serverUrl: string): Promise<TestProxy> {
  const { hostname, port } = new URL(serverUrl);
  const connections = new Set<Connection>();
  const state: State = { losses: [], swallows: false, onKept: () => {} };
  let accepted = 0;
  const server = createServer((client) => {
    accepted += 1;
    connections.add(new Connection(client, connect(Number(port), hostname), state));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = (server.address() as AddressInfo).port;
  const freeze = () => {
    for (const connection of connections) connection.freeze();
  };
  const cut = () => {
    for (const connection of connections) connection.cut();
  };
  return {
    url: (direct) => Object.assign(new URL(direct), { host: `127.0.0.1:${own}` }).href,
    lose: (what, text) => new Promise((resolve) => state.losses.push({ what, text, onLost: resolve })),
    delay: (text) => new Promise((resolve) => state.losses.push({ what: 'time', text, onLost: resolve })),
    freeze,
    swallow() {
      state.swallows = true;
      freeze();
    },
    thaw() {
      state.swallows = false;
      for (const connection of connections) connection.thaw();
    },
    cut,
    get accepted() {
      return accepted;
    },
    get standing() {
      return [...connections].filter(({ stands }) => stands).length;
    },
    kept: () =>
      new Promise((resolve) => {
        state.onKept = resolve;
      }),
    async close() {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
}

interface State {
  losses: { readonly what: Loss | 'time'; readonly text: string; readonly onLost: () => void }[];
  swallows: boolean;
  onKept: () => void;
}

/** One client's connection, and ours to the server for it. */
class Connection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #state: State;
  #isFrozen: boolean;
  /** What to do once an answer that is being lost is complete. */
  #onAnswered: (() => void) | undefined;
  #tail = '';
  #kept: (() => void)[] = [];

  constructor(client: Socket, server: Socket, state: State) {
    this.#client = client;
    this.#server = server;
    this.#state = state;
    this.#isFrozen = state.swallows;
    client.on('error', () => {}).on('data', (said) => this.#pass(() => this.#ask(said)));
    server.on('error', () => {}).on('data', (said) => this.#pass(() => this.#answer(said)));
    // What a client said before it went away may still arrive.
    client.on('close', () => this.#pass(() => server.end()));
    server.on('end', () => this.#pass(() => client.end())).on('close', () => this.#pass(() => client.destroy()));
  }

  get stands(): boolean {
    return !this.#client.destroyed;
  }

  cut(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const pass of this.#kept.splice(0)) pass();
  }

  #pass(pass: () => void): void {
    if (this.#isFrozen) {
      this.#kept.push(pass);
      this.#state.onKept();
    } else pass();
  }

  #ask(said: Buffer): void {
    const text = said.toString('latin1');
    const i = this.#state.losses.findIndex((loss) => text.includes(loss.text));
    const [loss] = i < 0 ? [] : this.#state.losses.splice(i, 1);
    const lost = () => {
      this.cut();
      loss?.onLost();
    };
    if (loss?.what === 'answer') this.#onAnswered = lost;
    if (loss?.what === 'time') {
      this.freeze();
      loss.onLost();
    }
    if (loss?.what === 'statement') lost();
    else this.#pass(() => this.#server.write(said));
  }

  #answer(said: Buffer): void {
    if (!this.#onAnswered) {
      this.#client.write(said);
      return;
    }
    this.#tail = (this.#tail + said.toString('latin1')).slice(-READY_BYTES);
    if (this.#tail.startsWith(READY)) this.#onAnswered();
  }
}
