// Shows the main job in a temporary folder: moves real files, runs real commands and sends real requests, some of which fail
// for real, then says what needs a person. Nothing is faked: the collision, the forbidden file and the busy folder are the
// system's own, and the requests go to a server on this machine that answers as servers do on a bad day.
//   npm run demo
import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const isRoot = process.getuid?.() === 0;
/** Root may do everything, so as root the demo drops to another user, for whom a forbidden file is forbidden. */
const NOBODY = 65_534;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'));
const at = (...parts) => join(folder, ...parts);

function say(text) {
  process.stdout.write(`\n── ${text}\n\n`);
}

function shown(args) {
  return args.map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg}'`)).join(' ');
}

/** Runs the command line as a user would type it, live. */
function holdfast(args, wrap = (command) => command) {
  process.stdout.write(`$ holdfast ${shown(args)}\n`);
  const [program, ...rest] = wrap([process.execPath, cli, ...args]);
  return spawnSync(program, rest, {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: environment,
    ...(rest[0] !== '-m' && user),
  });
}

const environment = { ...process.env, HOLDFAST_STORE: at('demo.db') };
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** What a command prints as JSON, unseen. */
function json(args) {
  const options = { cwd: folder, env: environment, encoding: 'utf8', ...user };
  return JSON.parse(spawnSync(process.execPath, [cli, ...args, '--json'], options).stdout);
}

function newestTask() {
  return json(['list', '--limit', '1']).items[0].id;
}

/** Runs a command beside what follows. */
function start(args) {
  process.stdout.write(`$ holdfast ${shown(args)} &\n`);
  return spawn(process.execPath, [cli, ...args], { cwd: folder, env: environment, stdio: 'ignore', ...user });
}

async function untilTrue(isTrue) {
  while (!isTrue()) await setTimeout(200);
}

function prepare() {
  for (const name of ['inbox', 'archive', 'vault', 'busy']) mkdirSync(at(name));
  const files = ['report.txt', 'photo.jpg', 'notes.txt'].map((name) => at('inbox', name));
  for (const file of files) writeFileSync(file, 'what came in\n');
  writeFileSync(at('archive', 'notes.txt'), 'the notes that were here first\n');
  writeFileSync(at('vault', 'secret.txt'), 'not yours to move\n');
  writeFileSync(at('flaky.sh'), FLAKY);
  const ours = [folder, at('inbox'), at('archive'), at('busy'), ...files];
  if (isRoot) for (const path of ours) chownSync(path, NOBODY, NOBODY);
  chmodSync(at('vault'), 0o555);
}

/** Fails twice, as a network does, then succeeds. */
const FLAKY = `echo x >> tries
[ "$(wc -l < tries)" -ge 3 ] && { echo "3 mails fetched"; exit 0; }
echo "fetch: connect to mail.example.org port 993: Connection refused" >&2
exit 1
`;

/** A mount point of its own cannot be moved: it is in use. Returns how to run a command beside one, if this machine can. */
function busyNamespace() {
  if (!isRoot || process.platform !== 'linux') return undefined;
  const inside = (command) => ['unshare', '-m', '--', 'sh', '-c', MOUNT_AND_DROP, at('busy'), ...command];
  const probe = inside([process.execPath, '-e', '']);
  return spawnSync(probe[0], probe.slice(1), { stdio: 'ignore' }).status === 0 ? inside : undefined;
}

const MOUNT_AND_DROP = `mount -t tmpfs none "$0" && exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups -- "$@"`;

prepare();
say('Three files go to the archive. One of them collides with what is there, and nothing is ever overwritten.');
holdfast(['mv', 'inbox/report.txt', 'inbox/photo.jpg', 'inbox/notes.txt', 'archive/']);

say('A file in a folder that this user may not change. Its policy tries it three times, a minute apart; we watch one.');
holdfast(['mv', 'vault/secret.txt', 'archive/', '--timeout', '1s']);

const inside = busyNamespace();
if (inside) {
  say('A folder that is in use: something is mounted on it. Locked things are given a day and ten tries.');
  holdfast(['mv', 'busy', 'archive/', '--timeout', '1s'], inside);
} else {
  say(
    'A folder that is in use would come next; making one needs root and unshare, which this machine does not give us.',
  );
}

say('A command that fails twice, as networks do, and then succeeds.');
holdfast(['run', '--backoff', 'exp:400ms:x2', '--', 'sh', 'flaky.sh']);

say('A command that was called wrongly: trying again cannot help, so it is not tried again.');
holdfast(['run', '--', 'sh', '-c', 'echo "usage: backup TARGET" >&2; exit 64']);

const server = fork(fileURLToPath(new URL('demo-server.mjs', import.meta.url)));
const [{ port }] = await once(server, 'message');
const url = `http://127.0.0.1:${port}`;
const local = ['--allow-private', '--backoff', 'exp:300ms:x2'];

say(
  'A webhook. The server says "not so fast, in a second", then fails, then takes it. Being told to wait costs no attempt.',
);
holdfast(['http', 'POST', `${url}/orders`, '-d', '{"order":1009}', '--idempotency-header', ...local]);

say(
  'Three webhooks for a host that is down. A second failure shows that it is not the task: all of them wait, and pay nothing.',
);
const hooks = [1, 2, 3].map((hook) => {
  holdfast([
    'http',
    'POST',
    `${url}/hooks/${hook}`,
    '-d',
    '{}',
    '--idempotency-header',
    '--detach',
    '--quiet',
    ...local,
  ]);
  return String(newestTask());
});
const worker = start(['worker', '--quiet']);
await untilTrue(() => json(['sources']).items.some(({ state }) => state === 'down'));
holdfast(['sources']);

say('The host comes back. The next request that is let through to test it finds out, and the others follow.');
server.send('up');
holdfast(['wait', ...hooks]);
holdfast(['show', hooks[0]]);
worker.kill();
await once(worker, 'exit');

say('A payment, whose answer is lost. It may have happened, and a second one does harm: so a person is asked.');
holdfast(['http', 'POST', `${url}/payments`, '-d', '{"amount":"42.10"}', ...local]);
server.disconnect();

say('And one that is only recorded, for later.');
holdfast(['run', '--detach', '--', 'echo', 'good morning']);

say('What is where, and what needs a person:');
holdfast(['status']);

const name = isRoot ? `sudo -u \\#${NOBODY} ` : '';
process.stdout.write(`
The database is ${at('demo.db')}. To look into it:

  ${name}node dist/cli/main.js -s ${at('demo.db')} list
  ${name}node dist/cli/main.js -s ${at('demo.db')} show 3
  ${name}node dist/cli/main.js -s ${at('demo.db')} resolve 3
`);
