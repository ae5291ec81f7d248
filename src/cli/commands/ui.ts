import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { Command } from 'commander';
import { createDashboard, type InnerOptions } from '../../dashboard/dashboard.ts';
import { toNodeHandler } from '../../dashboard/node.ts';
import { ALL_PERMISSIONS } from '../../dashboard/permissions.ts';
import { tokenLogin } from '../../dashboard/session.ts';
import type { Output } from '../../documents/logs.ts';
import { silent } from '../../log.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { openBrowser } from '../foreground/open-browser.ts';
import { withHoldfast } from '../opening/open-holdfast.ts';
import { readConfig } from '../opening/read-config.ts';
import type { StoreLocation } from '../opening/store-location.ts';
import { OutputReader } from '../output/output-log.ts';
import { problemOf, usage } from '../problem.ts';
import { onInterrupt } from '../terminal/interrupts.ts';
import { machineChecks } from './doctor.ts';

interface Flags {
  readonly port?: string;
  readonly host?: string;
  readonly open?: boolean;
  readonly readOnly?: boolean;
  readonly hideInputs?: boolean;
  readonly allowAnyone?: boolean;
  readonly allowHost?: readonly string[];
  readonly environment?: string;
}

const PORT = 4815;
const LOOPBACK = '127.0.0.1';
const LOOPBACK_NAMES = [LOOPBACK, '::1', 'localhost'];

/** A token that programs show, too. */
const TOKEN = 'HOLDFAST_UI_TOKEN';
const SHORTEST_TOKEN = 16;

export function declare(command: Command): void {
  command
    .option('--port <number>', `where it listens (default: ${PORT}; 0 takes any free port)`)
    .option('--host <address>', `on which address (default: ${LOOPBACK}, which only this machine reaches)`)
    .option('--open', 'open it in the browser')
    .option('--read-only', 'nothing can be changed')
    .option('--hide-inputs', 'inputs, results and outputs of tasks are neither shown nor sent')
    .option('--environment <name>', 'shown beside the name, such as production')
    .option('--allow-anyone', 'ask nobody who they are: whoever reaches the address can do everything')
    .option('--allow-host <name...>', 'with --allow-anyone on another address: host names under which it answers')
    .addHelpText(
      'after',
      `
Serves the dashboard and its JSON API until Ctrl-C. The printed link works once and lets one browser in, so that other users of this
machine stay out. For programs, and for links that work any number of times, set ${TOKEN} to a text of your own; programs send
it as \`authorization: Bearer …\`.
Other machines: mount holdfast/dashboard in a server of yours with your own authorisation (docs/guides/dashboard.md).`,
    );
  act<Flags>(command, (cli, _, flags) => ui(cli, flags));
}

async function ui(cli: Cli, flags: Flags): Promise<number> {
  const port = flags.port === undefined ? PORT : wholeNumberFlag(flags.port, '--port', 0, 65_535);
  const {
    host = LOOPBACK,
    readOnly = false,
    hideInputs = false,
    environment,
    allowAnyone = false,
    allowHost = [],
  } = flags;
  const token = tokenFrom(cli);
  const isLocal = LOOPBACK_NAMES.includes(host);
  if (!isLocal && token === undefined && !allowAnyone) throw tooOpen(cli, host);
  return withHoldfast(cli, { purpose: 'look' }, async (holdfast, location) => {
    const user = { name: cli.actor, can: ALL_PERMISSIONS.filter((each) => !hideInputs || each !== 'inputs') };
    const visitor = { name: cli.actor, can: user.can.filter((each) => each !== 'commands') };
    let address = '';
    const login = tokenLogin({
      user,
      token,
      onUsed: (query) => cli.terminal.note(`for another browser: ${address}${query}`),
    });
    const options: InnerOptions = {
      authorize: allowAnyone ? () => visitor : login.authorize,
      readOnly,
      command: (words) => cli.command(words),
      log: { ...silent, error: (fields, message) => cli.terminal.warn(unexpectedWords(fields, message)) },
      outputOf: (task) => outputKept(location, task),
      machineChecks: () => machineChecks(location),
      refusedConfig: async () => (await readConfig(cli))?.refused,
      ...(environment !== undefined && { environment }),
      // Where a token is asked for, any host name is safe: a page of another site does not know the token.
      ...(isLocal
        ? { hosts: LOOPBACK_NAMES }
        : allowAnyone && { hosts: [...LOOPBACK_NAMES, hostname().toLowerCase(), ...allowHost], anyAddress: true }),
    };
    const dashboard = createDashboard(holdfast, options);
    const handler = toNodeHandler(dashboard);
    const server = createServer((request, response) => void handler(request, response));
    address = await listen(server, host, port);
    const url = allowAnyone ? address : `${address}${login.query()}`;
    cli.terminal.answer('ui', { url }, () => cli.terminal.result(`The dashboard is at ${url}`));
    if (allowAnyone && !isLocal) cli.terminal.warn('Everybody who reaches this address can see and change everything.');
    cli.terminal.note('Ctrl-C ends it.');
    if (flags.open) openBrowser(url);
    await interrupted();
    await dashboard.close();
    server.close();
    server.closeAllConnections();
    return EXIT.done;
  });
}

/** What commands printed on this machine. Output that this user may not read is output that is not there. */
function outputKept(location: StoreLocation, task: number): Output {
  try {
    const reader = new OutputReader(location, task);
    const pieces = reader.news();
    return { pieces, complete: !reader.incomplete };
  } catch {
    return { pieces: [], complete: false };
  }
}

/** Answers say nothing of an unexpected error. This terminal does, so that somebody can report it. */
function unexpectedWords({ err }: { readonly err?: unknown }, message: string): string {
  return visible(`${message} ${problemOf(err).message}`);
}

function tokenFrom({ environment }: Cli): string | undefined {
  const token = environment[TOKEN];
  if (token === undefined || token === '') return undefined;
  if (token.length >= SHORTEST_TOKEN) return token;
  throw usage(`${TOKEN} is too short to be safe: it needs at least ${SHORTEST_TOKEN} characters`);
}

function tooOpen(cli: Cli, host: string) {
  return usage(`--host ${visible(host)} lets other machines in, and nobody would be asked who they are`, {
    why: ['The link that is printed goes over the network unencrypted, where others can read it.'],
    hints: [
      'mount holdfast/dashboard in a server of yours, with your own authorisation and TLS',
      `or set ${TOKEN}, and put a proxy with TLS before it`,
      `or, where everybody may do everything: ${cli.command(`ui --host ${visible(host)} --allow-anyone`)}`,
    ],
  });
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    const isTaken = cause.code === 'EADDRINUSE';
    throw usage(`cannot listen on ${host}:${port}: ${cause.message}`, {
      hints: isTaken ? ['another port: --port 0 takes any free one'] : [],
      cause,
    });
  });
  const { address, port: bound, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/`;
}

function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    const stop = onInterrupt(() => {
      stop();
      resolve();
    });
  });
}
