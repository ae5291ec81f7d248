// Peers on the loopback that misbehave in known ways. Everything that a case opens is closed when the case is over.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createServer as createTlsServer } from 'node:tls';

export const HOST = '127.0.0.1';

export class Loopback {
  #closers = [];
  #sockets = new Set();

  /** Closes `thing` when the case is over: a function, or what has a `close`, `end`, `quit` or `destroy`. */
  closing(close) {
    this.#closers.push(close);
  }

  async close() {
    for (const close of this.#closers.toReversed()) {
      try {
        await close();
      } catch {
        // What failed in the case often cannot be closed in order either.
      }
    }
    for (const socket of this.#sockets) socket.destroy();
  }

  async #listen(server) {
    server.on('connection', (socket) => this.#keep(socket));
    server.listen(0, HOST);
    await once(server, 'listening');
    this.closing(() => {
      server.close();
      for (const socket of this.#sockets) socket.destroy();
    });
    return server.address().port;
  }

  #keep(socket) {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }

  /** A port at which nobody listens. */
  async closedPort() {
    const server = createTcpServer();
    server.listen(0, HOST);
    await once(server, 'listening');
    const { port } = server.address();
    await new Promise((resolve) => server.close(resolve));
    return port;
  }

  /** A server that does with each connection what it is told. */
  async tcp(serve) {
    return this.#listen(createTcpServer(serve));
  }

  /** Takes connections, and never says a word. */
  silent() {
    return this.tcp(() => {});
  }

  /** Resets the connection as soon as something was sent to it. */
  resetting() {
    return this.tcp((socket) => socket.once('data', () => socket.resetAndDestroy()));
  }

  /** Closes the connection in order as soon as something was sent to it, without an answer. */
  hangingUp() {
    return this.tcp((socket) => socket.once('data', () => socket.end()));
  }

  /** Speaks first, and no protocol that anybody knows. */
  babbling(text = 'welcome to the jungle\r\n\r\n') {
    return this.tcp((socket) => {
      socket.write(text);
      socket.on('data', () => socket.write(text));
    });
  }

  /** Greets, then answers each line by the first entry whose beginning it has. `null` hangs up. */
  lines(greeting, answers, fallback) {
    return this.tcp((socket) => {
      if (greeting !== undefined) socket.write(greeting);
      let rest = '';
      socket.on('data', (chunk) => {
        rest += chunk;
        for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
          const line = rest.slice(0, end).trim();
          rest = rest.slice(end + 1);
          const known = Object.entries(answers).find(([start]) => line.toUpperCase().includes(start));
          const answer = known === undefined ? fallback : known[1];
          if (answer === null) socket.resetAndDestroy();
          else if (answer !== undefined) socket.write(typeof answer === 'function' ? answer(line) : answer);
        }
      });
    });
  }

  /** An HTTP server; `serve` gets request, response and how many came before. */
  async http(serve) {
    let count = 0;
    const port = await this.#listen(
      createHttpServer((request, response) => {
        request.resume();
        response.setHeader('connection', 'close');
        serve(request, response, count++);
      }),
    );
    return `http://${HOST}:${port}`;
  }

  /** Answers everything with this status, headers and body; an object is sent as JSON. */
  answering(status, body = '', headers = {}) {
    return this.http((_request, response) => {
      const json = typeof body === 'object';
      response.writeHead(status, { 'content-type': json ? 'application/json' : 'text/plain', ...headers });
      response.end(json ? JSON.stringify(body) : body);
    });
  }

  /** An HTTP/2 server without TLS. */
  async http2(serve) {
    const server = createHttp2Server();
    server.on('stream', (stream) => {
      stream.on('error', () => {});
      serve(stream);
    });
    server.on('sessionError', () => {});
    return `http://${HOST}:${await this.#listen(server)}`;
  }

  /** A TLS server with a certificate that nobody vouches for, made out to another host. */
  async tls(serve = (socket) => socket.end(), options = {}) {
    const server = createTlsServer({ ...certificate(), ...options }, serve);
    server.on('tlsClientError', () => {});
    server.on('secureConnection', (socket) => this.#keep(socket));
    return this.#listen(server);
  }

  /** A folder that lives as long as the run. */
  runFolder() {
    const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-live-'));
    this.endOfRun(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  /** What is shared by many cases is closed when all are over, the last first. */
  endOfRun(close) {
    SHARED.unshift(close);
  }

  folder() {
    const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-live-'));
    this.closing(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }
}

const SHARED = [];

export async function closeShared() {
  for (const close of SHARED.splice(0)) await close();
}

let made;

/** A key and a certificate for `other.example`, made once a run. */
export function certificate() {
  if (made) return made;
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-live-'));
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => path.join(folder, name));
  const subject = ['-subj', '/CN=other.example', '-addext', 'subjectAltName=DNS:other.example'];
  const fresh = ['-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2'];
  execFileSync('openssl', ['req', '-x509', ...fresh, ...subject], { stdio: 'ignore' });
  made = { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  return made;
}
