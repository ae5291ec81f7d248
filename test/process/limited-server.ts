import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SimulatedServer } from '../../src/simulator/server.ts';

export interface Call {
  /** In milliseconds since the server was opened. */
  readonly at: number;
  /** The process id of the caller, which it says in `x-worker`. */
  readonly worker: number;
  readonly status: 200 | 429 | 503;
}

const STATUS = { served: 200, down: 503, throttled: 429 } as const;

/** A real server on loopback that can be down, and that serves a limited number of calls in any second. It counts its calls. */
export class LimitedServer implements AsyncDisposable {
  readonly calls: Call[] = [];
  /** Told of each call before it is answered. */
  onCall: (call: Call) => void = () => {};
  /** How long a failed call takes. */
  failsAfterMs = 0;
  readonly #server: Server;
  readonly #limit: SimulatedServer;
  readonly #opened = performance.now();
  #isDown = false;

  private constructor(capacity: number) {
    this.#limit = new SimulatedServer({ downFrom: 0, downUntil: 0, capacity });
    this.#server = createServer((request, response) => {
      const status = STATUS[this.#isDown ? 'down' : this.#limit.answer(this.now)];
      const call = { at: this.now, worker: Number(request.headers['x-worker']), status };
      this.calls.push(call);
      this.onCall(call);
      setTimeout(() => response.writeHead(status).end(), status === 503 ? this.failsAfterMs : 0);
    });
  }

  static async open(capacity: number): Promise<LimitedServer> {
    const limited = new LimitedServer(capacity);
    limited.#server.listen(0, '127.0.0.1');
    await once(limited.#server, 'listening');
    return limited;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  get now(): number {
    return performance.now() - this.#opened;
  }

  goDown(): void {
    this.#isDown = true;
  }

  comeBack(): void {
    this.#isDown = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
