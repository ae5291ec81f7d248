import { SORTS, type Sort } from '../error-fields.ts';
import type { Answer, Family, Table } from '../meaning.ts';
import { abort } from './abort.ts';
import { aws } from './aws.ts';
import { azure } from './azure.ts';
import { browsers } from './browsers.ts';
import { clients } from './clients.ts';
import { databases } from './databases.ts';
import { files } from './files.ts';
import { google } from './google.ts';
import { grpc } from './grpc.ts';
import { imap } from './imap.ts';
import { limits } from './limits.ts';
import { mappers, prisma } from './mappers.ts';
import { amqp, kafka, nats } from './messaging.ts';
import { mongodb } from './mongodb.ts';
import { mssql } from './mssql.ts';
import { mysql } from './mysql.ts';
import { network } from './network.ts';
import { postgres } from './postgres.ts';
import { processes } from './process.ts';
import { programming } from './programming.ts';
import { redis } from './redis.ts';
import {
  business,
  chat,
  firebase,
  graphql,
  meta,
  microsoft,
  models,
  oauth,
  payments,
  search,
  slack,
} from './services.ts';
import { smtp } from './smtp.ts';
import { sqlite } from './sqlite.ts';
import { system } from './system.ts';
import { tokens, validators } from './validators.ts';

/** Every family, in the order in which `recognise` is called. If two tables have the same code, the earlier one wins. */
export const FAMILIES: readonly Family[] = [
  ...[processes, system, network, mysql, postgres, prisma, sqlite, mssql, mongodb, redis, databases],
  ...[aws, azure, grpc, smtp, imap, files, kafka, amqp, nats, slack, chat, meta, graphql, browsers],
  ...[clients, abort, limits, validators, tokens, programming, mappers],
  ...[models, payments, business, microsoft, google, firebase, search, oauth],
];

/** What a code or name means, and the family whose table has it. */
export interface Entry {
  readonly answer: Answer;
  readonly family: string;
}

type Part = 'vendorCodes' | 'vendorNames' | 'bodyCodes' | 'codes' | 'vagueCodes' | 'names';

function joined(part: Part): ReadonlyMap<string, Entry> {
  const all = new Map<string, Entry>();
  for (const family of FAMILIES) {
    const table: Table = family[part] ?? {};
    for (const [code, answer] of Object.entries(table))
      if (!all.has(code)) all.set(code, { answer, family: family.name });
  }
  return all;
}

export const VENDOR_CODES = joined('vendorCodes');
export const VENDOR_NAMES = joined('vendorNames');
export const BODY_CODES = joined('bodyCodes');
export const CODES = joined('codes');
export const VAGUE_CODES = joined('vagueCodes');
export const NAMES = joined('names');

const DEFAULT_SORTS: readonly Sort[] = ['coded', 'numbered', 'bare'];

/** The families with a `recognise`, by the sorts of errors for which it is called. */
export const RECOGNISERS = Object.fromEntries(
  SORTS.map((sort) => [
    sort,
    FAMILIES.filter(({ recognise, sorts = DEFAULT_SORTS }) => recognise !== undefined && sorts.includes(sort)),
  ]),
) as unknown as Readonly<Record<Sort, readonly Family[]>>;
