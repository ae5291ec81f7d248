import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions } from 'playwright-core';

export const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const TOKEN = 'a-token-of-the-tests-of-the-dashboard';

/** A real `holdfast ui` on a store. */
export interface RunningDashboard {
  readonly url: string;
  /** Lets a browser in. */
  readonly link: string;
  /** For the pages of a browser: they are let in. */
  readonly options: BrowserContextOptions;
  /** Does something through the API. */
  post(path: string, body: object): Promise<void>;
  stop(): Promise<void>;
}

export async function startDashboard(store: string, ...flags: readonly string[]): Promise<RunningDashboard> {
  const args = [CLI, '--store', store, 'ui', '--port', '0', ...flags];
  const env = { ...process.env, HOLDFAST_UI_TOKEN: TOKEN };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const url = await addressOf(child);
  return {
    url,
    link: `${url}?token=${TOKEN}`,
    options: { extraHTTPHeaders: { authorization: `Bearer ${TOKEN}` } },
    async post(path, body) {
      const headers = {
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        'x-holdfast': '1',
      };
      const answer = await fetch(`${url}api/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(await answer.text());
    },
    async stop() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

async function addressOf(child: ChildProcess): Promise<string> {
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface(stream).on('line', (line) => said.push(line));
  }
  for (;;) {
    const found = /http:\/\/[\d.]+:\d+\//.exec(said.join('\n'))?.[0];
    if (found) return found;
    if (child.exitCode !== null) throw new Error(`holdfast ui has ended: ${said.join('\n')}`);
    await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), once(child, 'exit')]);
  }
}
