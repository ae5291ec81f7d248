import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

/** A mail server on this machine, which is thrown away. Every user has the password `secret`, and a mailbox of his own. */
export class Dovecot {
  readonly port: number;
  readonly #folder: string;
  #child: ChildProcess | undefined;

  private constructor(port: number, folder: string) {
    this.port = port;
    this.#folder = folder;
  }

  static async open(): Promise<Dovecot> {
    const server = new Dovecot(await freePort(), mkdtempSync(join(tmpdir(), 'holdfast-imap-')));
    chmodSync(server.#folder, 0o755);
    writeFileSync(server.#file('dovecot.conf'), configuration(server.port, server.#folder));
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    this.#child = spawn('dovecot', ['-F', '-c', this.#file('dovecot.conf')], { stdio: 'ignore' });
    while (!(await accepts(this.port))) {
      if (this.#child.exitCode !== null) throw new Error(`dovecot ended: ${readFileSync(this.#file('log'), 'utf8')}`);
      await setTimeout(10);
    }
  }

  /** Ends the server, as an outage does. Its mail stays. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }

  /** Puts a message into the mailbox INBOX of a user. */
  deliver(user: string, subject: string): void {
    const inbox = this.#file(join('mail', user));
    for (const part of ['new', 'cur', 'tmp']) mkdirSync(join(inbox, part), { recursive: true, mode: 0o777 });
    for (const part of ['', 'new', 'cur', 'tmp']) chmodSync(join(inbox, part), 0o777);
    const id = `${process.hrtime.bigint()}`;
    const text = `Message-ID: <${id}@example>\r\nFrom: a@example\r\nSubject: ${subject}\r\n\r\nHello.\r\n`;
    writeFileSync(join(inbox, 'new', `${id}.example`), text, { mode: 0o666 });
    chmodSync(join(inbox, 'new', `${id}.example`), 0o666);
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true });
  }

  #file(name: string): string {
    return join(this.#folder, name);
  }
}

function configuration(port: number, folder: string): string {
  const { uid, gid, username } = userInfo();
  // As root, the mail belongs to somebody else: dovecot gives nobody mail as root.
  const [owner, group] = uid === 0 ? [65_534, 65_534] : [uid, gid];
  const users = uid === 0 ? '' : `default_internal_user = ${username}\ndefault_login_user = ${username}\n`;
  return `base_dir = ${folder}/run
state_dir = ${folder}/state
log_path = ${folder}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_failure_delay = 0
mail_location = maildir:${folder}/mail/%u
mail_max_userip_connections = 1
first_valid_uid = 1
${users}passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=${owner} gid=${group} home=${folder}/mail/%u
}
service anvil {
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = 0
  }
}
`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('data', () => resolve(socket.destroy() && true));
    socket.on('error', () => resolve(false));
  });
}
