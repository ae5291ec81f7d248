// Measures what a claim costs on PostgreSQL: how long it takes, and how much CPU it uses on the server.
//   npm run claims:postgres -- [--only one-source,fair] [--rounds 3] [--scale 1] [--dist dist]
// `--scale 0.1` makes the large scenarios ten times smaller. `--dist` measures another build, to compare two versions.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startCluster } from '../test/postgres/cluster.mjs';
import { openBench } from './claims-postgres/bench.mjs';
import { SCENARIOS } from './claims-postgres/scenarios.mjs';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    scale: { type: 'string', default: '1' },
    dist: { type: 'string', default: 'dist' },
  },
});
const only = values.only?.split(',');
const unknown = only?.find((name) => !(name in SCENARIOS));
if (unknown !== undefined) throw new Error(`No scenario ${unknown}. There are: ${Object.keys(SCENARIOS).join(', ')}`);

const cluster = await startCluster({ fsync: false });
try {
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    if (only && !only.includes(name)) continue;
    for (let round = 1; round <= Number(values.rounds); round++) {
      const bench = await openBench({ cluster, dist: resolve(values.dist), database: `round_${round}` });
      try {
        for (const line of await scenario.run(bench, Number(values.scale))) console.log(`${name}: ${line}`);
      } finally {
        await bench.close();
      }
    }
  }
} finally {
  await cluster.stop();
}
