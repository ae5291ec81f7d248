// The other side of the demo's requests, on this machine: says its port, then answers as servers do on a bad day.
import { createServer } from 'node:http';

let orders = 0;
let isUp = false;

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    // The money may be on its way; nobody will know.
    if (request.url === '/payments') return request.socket.destroy();
    if (request.url.startsWith('/hooks/')) return response.writeHead(isUp ? 204 : 503).end();
    orders += 1;
    if (orders === 1) return response.writeHead(429, { 'retry-after': '1' }).end('not so fast\n');
    if (orders === 2) return response.writeHead(503).end('being restarted\n');
    return response.writeHead(200, { 'content-type': 'application/json' }).end('{"order":1009,"accepted":true}\n');
  });
});
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.once('message', () => {
  isUp = true;
});
process.once('disconnect', () => process.exit());
