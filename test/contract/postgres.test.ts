import { afterAll, beforeAll } from 'vitest';
import { postgres } from '../../src/store/postgres/index.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';
import { describeModel } from './describe-model.ts';
import { describeStore } from './describe-store.ts';
import { virtualWorld } from './virtual-world.ts';

let databases: TestDatabases;
let database: TestDatabase;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    const store = await postgres(url).open(virtualWorld());
    await store.upkeep.close();
    // As for Debezium, or an upgrade by logical replication: a table without a primary key would refuse UPDATE and DELETE.
    await ask(url, 'CREATE PUBLICATION everything FOR ALL TABLES');
  });
});
afterAll(() => databases.close());

const factory = {
  async open(world: Parameters<ReturnType<typeof postgres>['open']>[0]) {
    database = await databases.take();
    return postgres(database.url).open(world);
  },
  openSecond: (world: Parameters<ReturnType<typeof postgres>['open']>[0]) => postgres(database.url).open(world),
  async close() {
    database.drop();
  },
  keepsNames: true,
} as const;

describeStore('postgres', factory);
describeModel('postgres', factory, { runs: 40 });
