import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Registry } from 'holdfast/config';
import { openTestHoldfast, type TestOptions } from 'holdfast/testing';
import { afterEach } from 'vitest';
import { connectors } from '../connectors.js';
import { Documents } from '../documents.js';
import { GithubServer } from '../github-server.js';

export const YAML = readFileSync(fileURLToPath(new URL('../holdfast.yaml', import.meta.url)), 'utf8');

/** What is to be closed when a test ends, the last one first. */
export const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A folder that is removed when the test ends. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ingestion-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

export interface SceneOptions extends TestOptions {
  /** The port of the mail server, and the password that the connector uses. */
  readonly mail?: { readonly port: number; readonly password?: string };
  readonly onFile?: (path: string) => void;
  /** What follows the configuration of the example. */
  readonly yaml?: string;
}

/** The four connectors on a virtual clock, before a server of issues that listens. */
export async function openScene({ mail, onFile, yaml = '', ...options }: SceneOptions = {}) {
  const server = new GithubServer();
  const url = await server.open();
  closing.push(() => server.close());
  const folder = newFolder();
  mkdirSync(join(folder, 'files'));
  const documents = new Documents(join(folder, 'documents'));
  const tasks = connectors(documents, {
    imap: { host: '127.0.0.1', port: mail?.port ?? 9, secure: false, password: mail?.password ?? 'secret' },
    github: { url, perPage: 2 },
    ...(onFile && { onFile }),
  });
  const config = new Registry();
  config.load(`${YAML}${yaml}`);
  // Answers take as long as they take: a busy machine is no reason to move the clock on.
  const kit = await openTestHoldfast({ tasks: Object.values(tasks), config, patienceMs: 20_000, ...options });
  closing.push(() => kit.close());
  return {
    kit,
    tasks,
    server,
    documents,
    folder: join(folder, 'files'),
    /** Each settled execution of a task: its state, and its reason or result. */
    async story(id: number) {
      const { state, reason, attempts, executions, result } = await kit.holdfast.get(id);
      return { state, reason, attempts, executions, result };
    },
  };
}
