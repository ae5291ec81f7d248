/**
 * What the snippets of the pages use without declaring it, because it is the reader's own: an open Holdfast, a connection, a function of the
 * application. A snippet imports what comes from a package.
 */
export const ASSUMED = `
import type { Holdfast, RunningTask, StoreOpener, TaskDefinition } from 'holdfast';
declare global {
  const holdfast: Holdfast;
  const store: StoreOpener;
  const tasks: TaskDefinition<any, any>[];
  const task: RunningTask;
  const input: any;
  const filter: string;
  const error: unknown;
  const done: number;

  // Task types of the reader, and their inputs.
  const sync: TaskDefinition<{ mailbox: string }, void>;
  const syncMailbox: TaskDefinition<{ mailbox: string }, void>;
  const index: TaskDefinition<{ ids: number[] }, void>;
  const images: { image: string }[];
  const plan: { from: string; to: string }[];
  const run: { id: string; submitted: string; category: string };

  // Functions of the reader.
  function analyse(input: unknown): Promise<string>;
  function handle(input: unknown, signal: AbortSignal): Promise<string>;
  function isDeclined(error: unknown): boolean;
  function isValid(input: unknown): boolean;
  function keyOf(move: unknown): string;
  function mail(text: string): Promise<void>;
  function makeThumbnail(image: string): Promise<string>;
  function replayAtTheService(run: unknown): Promise<void>;
  function shrink(file: string, signal: AbortSignal): Promise<string>;
  function storeRows(rows: unknown[]): Promise<void>;
  function userOf(request: Request): Promise<{ name: string; isAdmin: boolean } | undefined>;
  const search: { bulk(pages: unknown[]): Promise<{ ok: boolean; version: number; error: string }[]> };

  // Connections of the reader, and libraries that Holdfast does not install.
  const app: any;
  const pool: import('pg').Pool;
  const drizzleOrKnex: import('knex').Knex;
  const kysely: import('kysely').Kysely<{}>;
  const prisma: { $transaction<T>(run: (tx: { $queryRawUnsafe(sql: string, ...values: unknown[]): Promise<unknown> }) => Promise<T>): Promise<T> };
}
declare module 'pino' {
  export default function pino(): import('holdfast').Logger;
}
`;
