import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { hostname, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { root } from './packed.ts';

/** A block of a page that is a file: its first line is a comment with the file's name. */
const FILE = /^```(?:ts|js|json|yaml|ini|sh)\n(?:\/\/|#) ([\w./-]+\.[a-z]+)\n(.*?)^```/gms;
const CONSOLE = /^```console\n(.*?)^```/gms;

export interface Step {
  readonly command: string;
  /** What the page shows under it. */
  readonly output: string;
}

export async function readPage(page: string): Promise<string> {
  return readFile(join(root, page), 'utf8');
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** The text of a page with a free port in place of each that it names. */
export async function withFreePorts(text: string): Promise<string> {
  const ports = new Set([...text.matchAll(/127\.0\.0\.1:(\d{4})/g)].map(([, port]) => port as string));
  let changed = text;
  for (const port of ports) changed = changed.replaceAll(port, `${await freePort()}`);
  return changed;
}

/** Writes the files that a page shows. A file that is shown twice has its last text. */
export async function writeFilesOf(text: string, folder: string): Promise<void> {
  for (const [, name = '', content = ''] of text.matchAll(FILE)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
}

/** What a page types into a terminal, and what it says comes of it. */
export function stepsOf(text: string): readonly Step[] {
  return [...text.matchAll(CONSOLE)].flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [command = '', ...output] = step.split('\n');
        return { command, output: output.join('\n') };
      }),
  );
}

/** Numbers, times and the spaces beside them differ from run to run. The words do not. */
function comparable(output: string): string {
  return (
    output
      .replaceAll(hostname(), 'vm')
      .replaceAll(userInfo().username, 'root')
      .replace(/\/tmp\/[\w-]+|\/srv\/shop/g, 'FOLDER')
      .replace(/\b[0-9a-f]{10}\b/g, 'ID')
      .replace(/[·▁-█]{24}/g, 'TREND')
      // On a slow machine a source is probed before the next command asks.
      .replace(/, \d+ probes? failed/g, '')
      .replace(/just now|now\b|\d+(\.\d+)?m?s ago/g, 'JUST')
      .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z)?/g, 'TIME')
      .replace(/\b\d\d:\d\d:\d\d\b( UTC)?/g, 'TIME')
      .replace(/(\d+(\.\d+)? ?(ms|s|m|h|d|min|day|days)\b ?)+/g, 'DURATION ')
      .replace(/\d+(\.\d+)?/g, '0')
      .replace(/[─-]{3,}/g, '---')
      .replace(/[ \t]+/g, ' ')
      .trim()
  );
}

/** What a page shows may leave something out: `…` stands for anything in its line, and alone in a line for any lines. */
function pattern(shown: string): RegExp {
  const literal = shown
    .split('\n')
    .map((line) => (line === '…' ? '[^]*?' : line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')));
  return new RegExp(`^${literal.join('\\n')}$`);
}

/** A terminal in a folder: its commands run one after the other, those that end with `&` beside the others. */
export class Terminal {
  readonly #folder: string;
  readonly #beside: ChildProcess[] = [];
  readonly #env: Record<string, string | undefined>;

  constructor(folder: string, env: Readonly<Record<string, string | undefined>> = {}) {
    this.#folder = folder;
    this.#env = {
      ...process.env,
      NO_COLOR: '1',
      FORCE_COLOR: undefined,
      HOME: folder,
      TZ: 'UTC',
      COLUMNS: '100',
      ...env,
    };
  }

  /** What a command prints, on stdout and stderr. */
  async run(command: string): Promise<string> {
    const exported = /^export (\w+)=(\S+)$/.exec(command);
    if (exported) {
      this.#env[exported[1] as string] = exported[2] as string;
      return '';
    }
    if (command.endsWith(' &')) {
      this.#beside.push(this.#start(`exec ${command.slice(0, -2)}`, 'ignore'));
      return '';
    }
    const child = this.#start(`{ ${command.replace(/ {2,}#.*/, '')}\n} 2>&1`, 'pipe');
    let output = '';
    child.stdout?.on('data', (chunk) => {
      output += chunk;
    });
    await once(child, 'close');
    return output;
  }

  /** Runs a command until what it prints has these words. */
  async runUntil(command: string, words: RegExp): Promise<string> {
    for (;;) {
      const output = await this.run(command);
      if (words.test(output)) return output;
    }
  }

  /** Runs the steps, and compares what each prints with what the page shows. */
  async follow(steps: readonly Step[], until: Readonly<Record<string, RegExp>> = {}): Promise<void> {
    for (const { command, output } of steps) {
      const words = until[command];
      const printed = words ? await this.runUntil(command, words) : await this.run(command);
      if (process.env.PRINT_DOCS) process.stdout.write(`$ ${command}\n${printed}`);
      else expect(`$ ${command}\n${comparable(printed)}`).toMatch(pattern(`$ ${command}\n${comparable(output)}`));
    }
  }

  async close(): Promise<void> {
    for (const child of this.#beside) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  }

  #start(command: string, stdout: 'ignore' | 'pipe'): ChildProcess {
    return spawn('bash', ['-c', command], {
      cwd: this.#folder,
      env: this.#env,
      stdio: ['ignore', stdout, 'ignore'],
    });
  }
}

/** Makes packages of this checkout available in a folder: `typescript` and types, which a page says to install. */
export async function linkPackages(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const link = join(folder, 'node_modules', name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(root, 'node_modules', name), link).catch(() => {});
  }
}
