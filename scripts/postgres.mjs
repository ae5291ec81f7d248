// Starts a PostgreSQL server that is thrown away, for whoever wants to try: prints where it is, and runs until Ctrl-C.
//   npm run postgres
import { startCluster } from '../test/postgres/cluster.mjs';

const asked = new Promise((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, resolve);
});
const cluster = await startCluster();
process.stdout.write(`${cluster.url()}\n`);
process.stderr.write('It runs until Ctrl-C; then all that is in it is removed.\n');
await asked;
await cluster.stop();
