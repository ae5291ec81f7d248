// Mail and files: SMTP, IMAP, POP3, FTP, SFTP.
import { generateKeyPairSync } from 'node:crypto';
import path from 'node:path';
import { Client as Ftp } from 'basic-ftp';
import { SMTPClient } from 'emailjs';
import fse from 'fs-extra';
import Imap from 'imap';
import { ImapFlow } from 'imapflow';
import Pop3 from 'node-pop3';
import nodemailer from 'nodemailer';
import ssh2 from 'ssh2';
import Sftp from 'ssh2-sftp-client';
import { each, failed, library } from './cases.mjs';
import { HOST } from './loopback.mjs';

/** What may happen to any of them before the protocol has begun. */
const WAY = {
  'nobody listens': ['transient net.refused source', async (call, on) => call(await on.closedPort(), on)],
  'the server says nothing': [
    'transient net.timeout source',
    async (call, on) => call(await on.silent(), on, { soon: true }),
  ],
};

const GOOD = {
  EHLO: '250-x\r\n250 AUTH PLAIN LOGIN\r\n',
  AUTH: '235 ok\r\n',
  'MAIL FROM': '250 ok\r\n',
  'RCPT TO': '250 ok\r\n',
  DATA: '354 go\r\n',
  QUIT: '221 bye\r\n',
};
const smtp = (on, ...answers) =>
  on.lines('220 x ESMTP\r\n', { ...Object.assign({}, ...answers), ...GOOD, ...Object.assign({}, ...answers) });

const mail = { from: 'a@a.example', to: 'b@b.example', subject: 's', text: 't' };
const callNodemailer = (port, _on, { soon = false, auth = false } = {}) =>
  nodemailer
    .createTransport({
      ...{ host: HOST, port, secure: false, ignoreTLS: true, connectionTimeout: 5_000 },
      ...{ greetingTimeout: soon ? 150 : 5_000, socketTimeout: 5_000, ...(auth && { auth: { user: 'u', pass: 'p' } }) },
    })
    .sendMail(mail);
const callEmailJs = (port, on, { soon = false, auth = false } = {}) => {
  const client = new SMTPClient({
    host: HOST,
    port,
    ssl: false,
    timeout: soon ? 150 : 5_000,
    ...(auth ? { user: 'u', password: 'p' } : {}),
  });
  on.closing(() => client.smtp.close(true));
  return failed((done) => client.send(mail, done));
};

const SMTP = {
  ...WAY,
  greylisting: [
    'transient smtp.4xx source',
    async (call, on) => call(await smtp(on, { 'RCPT TO': '451 4.7.1 Greylisted, try again later\r\n' }), on),
  ],
  'no such recipient': [
    'permanent smtp.recipient task',
    async (call, on) => call(await smtp(on, { 'RCPT TO': '550 5.1.1 No such user here\r\n' }), on),
  ],
  'a sender that is refused': [
    'permanent smtp.5xx task | permanent auth.forbidden task',
    async (call, on) => call(await smtp(on, { 'MAIL FROM': '550 5.7.1 Sender rejected\r\n' }), on),
  ],
  'a wrong password': [
    'permanent auth.invalid source',
    async (call, on) =>
      call(await smtp(on, { AUTH: '535 5.7.8 Authentication credentials invalid\r\n' }), on, { auth: true }),
  ],
  'too many messages': [
    'rate_limited throttled quota',
    async (call, on) =>
      call(await smtp(on, { 'MAIL FROM': '421 4.7.28 rate limit exceeded, too many messages\r\n' }), on),
  ],
  'a mailbox that is full for now': [
    'transient quota.exhausted quota',
    async (call, on) => call(await smtp(on, { 'RCPT TO': '452 4.2.2 Mailbox full\r\n' }), on),
  ],
  'a message that is too large': [
    'permanent too_large task',
    async (call, on) => call(await smtp(on, { DATA: '552 5.3.4 Message too big for system\r\n' }), on),
  ],
  'a server that will not talk to us': [
    'permanent smtp.5xx task',
    async (call, on) => call(await on.lines('554 5.7.1 No SMTP service here\r\n', {}), on),
  ],
  'the connection is reset after the message was sent': [
    'transient net.reset source ambiguous',
    async (call, on) =>
      call(
        await smtp(on, {
          DATA: '354 go\r\n',
          '.': null,
          'MAIL FROM': '250 ok\r\n',
          'RCPT TO': '250 ok\r\n',
          EHLO: '250 x\r\n',
          HELO: '250 x\r\n',
        }),
        on,
      ),
  ],
};

const imapGreeting = '* OK ready\r\n';
const imapServer = (on, login, select) =>
  on.lines(
    imapGreeting,
    {
      CAPABILITY: (line) => `* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n${line.split(' ')[0]} OK done\r\n`,
      LOGIN: (line) => `${line.split(' ')[0]} ${login}\r\n`,
      AUTHENTICATE: (line) => `${line.split(' ')[0]} ${login}\r\n`,
      SELECT: (line) => `${line.split(' ')[0]} ${select ?? 'OK done'}\r\n`,
      EXAMINE: (line) => `${line.split(' ')[0]} ${select ?? 'OK done'}\r\n`,
      LIST: (line) => `* LIST () "/" "INBOX"\r\n${line.split(' ')[0]} OK done\r\n`,
      LOGOUT: (line) => `* BYE\r\n${line.split(' ')[0]} OK bye\r\n`,
      NOOP: (line) => `${line.split(' ')[0]} OK done\r\n`,
    },
    (line) => `${line.split(' ')[0]} OK done\r\n`,
  );

const callImapFlow = async (port, on, { soon = false } = {}) => {
  const client = new ImapFlow({
    host: HOST,
    port,
    secure: false,
    doSTARTTLS: false,
    auth: { user: 'u', pass: 'p' },
    logger: false,
    greetingTimeout: soon ? 150 : 5_000,
    connectionTimeout: 5_000,
    disableAutoIdle: true,
  });
  client.on('error', () => {});
  on.closing(() => client.close());
  await client.connect();
  return client.mailboxOpen('INBOX');
};
const callImap = (port, on, { soon = false } = {}) =>
  failed((done) => {
    const client = new Imap({
      user: 'u',
      password: 'p',
      host: HOST,
      port,
      tls: false,
      connTimeout: 5_000,
      authTimeout: soon ? 150 : 5_000,
    });
    on.closing(() => client.destroy());
    client.once('error', done);
    client.once('ready', () => client.openBox('INBOX', done));
    client.connect();
  });
const IMAP = {
  ...WAY,
  'a wrong password': [
    'permanent auth.invalid source',
    async (call, on) => call(await imapServer(on, 'NO [AUTHENTICATIONFAILED] Invalid credentials'), on),
  ],
  'a server that cannot ask its directory': [
    'transient imap.unavailable source',
    async (call, on) => call(await imapServer(on, 'NO [UNAVAILABLE] Temporary authentication failure'), on),
  ],
  'too many connections': [
    'rate_limited throttled quota',
    async (call, on) => call(await imapServer(on, 'NO Too many simultaneous connections'), on),
  ],
  'a mailbox that is not there': [
    'permanent not_found task',
    async (call, on) => call(await imapServer(on, 'OK in', 'NO [NONEXISTENT] Unknown Mailbox'), on),
  ],
  'a mailbox that somebody else uses': [
    'transient imap.in_use task',
    async (call, on) => call(await imapServer(on, 'OK in', 'NO [INUSE] Mailbox in use'), on),
  ],
  'the server hangs up while we log in': [
    'transient net.reset source ambiguous',
    async (call, on) =>
      call(
        await on.lines(imapGreeting, {
          CAPABILITY: (line) => `* CAPABILITY IMAP4rev1\r\n${line.split(' ')[0]} OK\r\n`,
          LOGIN: null,
          AUTHENTICATE: null,
          ' ID ': null,
        }),
        on,
      ),
  ],
};

const callPop3 = async (port, on, { soon = false } = {}) => {
  const client = new Pop3({ host: HOST, port, user: 'u', password: 'p', timeout: soon ? 150 : 5_000 });
  on.closing(() => client.QUIT());
  return client.UIDL();
};

const callFtp = async (port, on, { soon = false } = {}) => {
  const client = new Ftp(soon ? 150 : 5_000);
  on.closing(() => client.close());
  await client.access({ host: HOST, port, user: 'u', password: 'p', secure: false });
  await client.remove('/a/b.txt');
};
const ftp = (on, answers) =>
  on.lines('220 ready\r\n', {
    ...answers,
    USER: '331 password\r\n',
    'PASS ': answers['PASS '] ?? '230 in\r\n',
    FEAT: '211 end\r\n',
    TYPE: '200 ok\r\n',
    STRU: '200 ok\r\n',
    OPTS: '200 ok\r\n',
  });

/** A real SSH server; `serve` does what it wants with a session's SFTP. */
async function sshServer(on, { accept = true, serve = () => {} } = {}) {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2_048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  const server = new ssh2.Server({ hostKeys: [privateKey] }, (client) => {
    on.closing(() => client.end());
    client.on('error', () => {});
    client.on('authentication', (context) => (accept ? context.accept() : context.reject()));
    client.on('ready', () =>
      client.on('session', (take) => {
        const session = take();
        session.on('sftp', (open) => serve(open(), client));
        session.on('exec', (open) => serve(open(), client));
      }),
    );
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  on.closing(() => server.close());
  return server.address().port;
}

const callSftp = async (port, on, { soon = false, ...more } = {}) => {
  const client = new Sftp();
  on.closing(() => client.end());
  await client.connect({
    host: HOST,
    port,
    username: 'u',
    password: 'p',
    readyTimeout: soon ? 150 : 5_000,
    retries: 0,
    ...more,
  });
  return client.delete('/a/b.txt');
};
const callSsh = (port, on, { soon = false, ...more } = {}) =>
  failed((done) => {
    const client = new ssh2.Client();
    on.closing(() => client.end());
    client.on('error', done);
    client.on('ready', () => client.sftp((error, sftp) => (error ? done(error) : sftp.unlink('/a/b.txt', done))));
    client.connect({ host: HOST, port, username: 'u', password: 'p', readyTimeout: soon ? 150 : 5_000, ...more });
  });
const { STATUS_CODE } = ssh2.utils.sftp;
const answersSftp = (code) => ({
  serve: (sftp) => {
    sftp.on('REMOVE', (id) => sftp.status(id, code));
    sftp.on('error', () => {});
  },
});
const SSH = {
  ...WAY,
  'a wrong password': [
    'permanent auth.invalid source',
    async (call, on) => call(await sshServer(on, { accept: false }), on),
  ],
  'a file that is not there': [
    'permanent fs.not_found task',
    async (call, on) => call(await sshServer(on, answersSftp(STATUS_CODE.NO_SUCH_FILE)), on),
  ],
  'a file that may not be removed': [
    'permanent fs.permission task',
    async (call, on) => call(await sshServer(on, answersSftp(STATUS_CODE.PERMISSION_DENIED)), on),
  ],
  'a failure without a reason': [
    'unknown sftp.failure task',
    async (call, on) => call(await sshServer(on, answersSftp(STATUS_CODE.FAILURE)), on),
  ],
  'an operation that the server does not have': [
    'permanent not_implemented task',
    async (call, on) => call(await sshServer(on, answersSftp(STATUS_CODE.OP_UNSUPPORTED)), on),
  ],
  'a host key that is not the one we know': [
    'permanent tls.certificate source',
    async (call, on) => call(await sshServer(on), on, { hostVerifier: () => false }),
  ],
  'no cipher in common': [
    'permanent tls.handshake source',
    async (call, on) => call(await sshServer(on), on, { algorithms: { kex: ['diffie-hellman-group1-sha1'] } }),
  ],
  'the peer speaks another protocol': [
    'unknown net.protocol source',
    async (call, on) => call(await on.babbling('HTTP/1.1 400 Bad Request\r\n'.repeat(1_500)), on),
  ],
};

export default [
  each('nodemailer', callNodemailer, SMTP)(
    [
      'too many recipients at once',
      'transient smtp.4xx source',
      async (on) => callNodemailer(await smtp(on, { 'RCPT TO': '452 4.5.3 Too many recipients\r\n' }), on),
    ],
    [
      'encryption that the server does not offer',
      'permanent tls.handshake source',
      async (on) =>
        nodemailer
          .createTransport({
            host: HOST,
            port: await smtp(on, { STARTTLS: '502 5.5.1 not here\r\n' }),
            requireTLS: true,
          })
          .sendMail(mail),
    ],
    [
      'nobody vouches for the certificate',
      'permanent tls.certificate source',
      async (on) => nodemailer.createTransport({ host: HOST, port: await on.tls(), secure: true }).sendMail(mail),
    ],
  ),
  each('emailjs', callEmailJs, SMTP)(),
  each('imapflow', callImapFlow, IMAP)(),
  each('imap', callImap, IMAP, {
    'the server says nothing': 'transient net.timeout source ambiguous | transient net.timeout source',
  })(),
  library(
    'node-pop3',
    ['nobody listens', 'transient net.refused source', async (on) => callPop3(await on.closedPort(), on)],
    [
      'a wrong password',
      'permanent auth.invalid source | unknown unknown task',
      async (on) =>
        callPop3(
          await on.lines('+OK ready\r\n', {
            USER: '+OK\r\n',
            PASS: '-ERR [AUTH] invalid password\r\n',
            QUIT: '+OK\r\n',
          }),
          on,
        ),
    ],
    [
      'a mailbox that somebody else uses',
      'transient imap.in_use task',
      async (on) =>
        callPop3(
          await on.lines('+OK ready\r\n', {
            USER: '+OK\r\n',
            PASS: '-ERR [IN-USE] Do you have another POP session running?\r\n',
            QUIT: '+OK\r\n',
          }),
          on,
        ),
    ],
    [
      'a temporary failure of the server',
      'transient imap.unavailable source',
      async (on) =>
        callPop3(
          await on.lines('+OK ready\r\n', { USER: '+OK\r\n', PASS: '-ERR [SYS/TEMP] try again\r\n', QUIT: '+OK\r\n' }),
          on,
        ),
    ],
    [
      'a wait between logins',
      'rate_limited throttled quota',
      async (on) =>
        callPop3(
          await on.lines('+OK ready\r\n', {
            USER: '+OK\r\n',
            PASS: '-ERR [LOGIN-DELAY] minimum time between mail checks violation\r\n',
            QUIT: '+OK\r\n',
          }),
          on,
        ),
    ],
  ),
  each('basic-ftp', callFtp, WAY, {
    'the server says nothing': 'transient net.timeout source ambiguous | transient net.timeout source',
  })(
    [
      'a wrong password',
      'permanent auth.invalid source',
      async (on) => callFtp(await ftp(on, { 'PASS ': '530 Login incorrect.\r\n' }), on),
    ],
    [
      'too many connections',
      'rate_limited throttled quota',
      async (on) => callFtp(await on.lines('421 Too many connections (8) from this IP\r\n', {}), on),
    ],
    [
      'a file that is not there',
      'permanent fs.not_found task',
      async (on) => callFtp(await ftp(on, { DELE: '550 b.txt: No such file or directory\r\n' }), on),
    ],
    [
      'a file that may not be removed',
      'permanent fs.permission task',
      async (on) => callFtp(await ftp(on, { DELE: '550 Permission denied.\r\n' }), on),
    ],
    [
      'a file that is busy',
      'transient fs.locked task',
      async (on) => callFtp(await ftp(on, { DELE: '450 File busy\r\n' }), on),
    ],
    [
      'the server closes during the command',
      'transient net.reset source ambiguous',
      async (on) => callFtp(await ftp(on, { DELE: null }), on),
    ],
  ),
  each('ssh2', callSsh, SSH)(),
  each('ssh2-sftp-client', callSftp, SSH)(),
  library(
    'fs-extra',
    [
      'a file that is not there',
      'permanent fs.not_found task',
      async (on) => fse.readJson(path.join(on.folder(), 'a.json')),
    ],
    [
      'a destination that exists',
      'permanent fs.dest_exists task',
      async (on) => {
        const folder = on.folder();
        await Promise.all(['a', 'b'].map((name) => fse.outputFile(path.join(folder, name), name)));
        return fse.move(path.join(folder, 'a'), path.join(folder, 'b'));
      },
    ],
    ['a folder where a file should be', 'permanent fs.invalid task', async (on) => fse.readFile(on.folder())],
    [
      'a folder that is not empty',
      'permanent fs.dest_exists task',
      async (on) => {
        const folder = on.folder();
        await fse.outputFile(path.join(folder, 'a/b'), 'x');
        return fse.rmdir(path.join(folder, 'a'));
      },
    ],
    [
      'a file that is no JSON',
      'unknown data.parse source ambiguous',
      async (on) => {
        const file = path.join(on.folder(), 'a.json');
        await fse.outputFile(file, '{"a":');
        return fse.readJson(file);
      },
    ],
    [
      'a name that is too long',
      'permanent fs.invalid task',
      async (on) => fse.outputFile(path.join(on.folder(), 'x'.repeat(300)), ''),
    ],
  ),
];
