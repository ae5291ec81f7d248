// Inside a network of its own, in which this machine has a public address: a server there, and `holdfast` calls against it.
// Argument: JSON { address, redirects: { path: location }, calls: [[…args]] }. Says what each call said, and what was heard.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';

const { address, redirects, calls, cli } = JSON.parse(process.argv[2]);
const heard = [];
const server = createServer((request, response) => {
  heard.push(`${request.method} ${request.headers.host}${request.url}`);
  const location = redirects[request.url];
  if (location) response.writeHead(302, { location }).end();
  else response.end(`from ${request.headers.host}`);
});
server.listen(80);
await once(server, 'listening');

const said = [];
for (const args of calls) {
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  const [exit] = await once(child, 'close');
  said.push({ exit, stdout, stderr });
}
server.close();
process.stdout.write(`${JSON.stringify({ address, said, heard })}\n`);
