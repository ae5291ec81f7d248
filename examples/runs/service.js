// @ts-check
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';

/**
 * How the service answers a replay: with a verdict; with a status and perhaps a wait in seconds; or not at all.
 * @typedef {{ verdict: string } | { status: number, retryAfter?: number } | 'silence'} Answer
 */

/** A replay service on this machine that answers each run as it was told, in turn; the last answer is given from then on. */
export class ReplayService extends EventEmitter {
  /** The ids of the runs that were asked for, in order. @type {string[]} */
  asked = [];
  /** The responses that wait for `answer`. @type {import('node:http').ServerResponse[]} */
  #silent = [];
  #server = createServer((request, response) => this.#replay(request, response));

  /** @param {Readonly<Record<string, readonly Answer[]>>} answers for each run; without any it has passed */
  constructor(answers) {
    super();
    this.answers = answers;
  }

  /** Listens on a free port, and answers its URL. */
  async open() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${port}`;
  }

  /**
   * Answers what met silence so far.
   * @param {string} verdict
   */
  answer(verdict) {
    for (const response of this.#silent.splice(0)) response.end(JSON.stringify({ verdict }));
  }

  async close() {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   */
  async #replay(request, response) {
    const { id } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const answer = this.#answerTo(id);
    if (answer === 'silence') this.#silent.push(response);
    this.asked.push(id);
    this.emit('asked', id);
    if (answer === 'silence') return;
    if ('verdict' in answer) return response.end(JSON.stringify(answer));
    const { status, retryAfter } = answer;
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) });
    return response.end(`as told, ${status}`);
  }

  /**
   * @param {string} id
   * @returns {Answer}
   */
  #answerTo(id) {
    const before = this.asked.filter((one) => one === id).length;
    const answers = this.answers[id] ?? [];
    return answers[Math.min(before, answers.length - 1)] ?? { verdict: 'passed' };
  }
}
