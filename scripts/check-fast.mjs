// Lint, types, quick tests and unused exports, all at once. Shows what each has to say, the tests last.
//   npm run check:fast
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

const checks = await Promise.all(['lint', 'types', 'unused', 'test:quick'].map(run));
for (const { name, output } of checks) {
  if (output.trim() !== '') process.stdout.write(`── ${name}\n${output.trimEnd()}\n`);
}
process.exitCode = checks.every(({ passed }) => passed) ? 0 : 1;

async function run(name) {
  const child = spawn('npm', ['run', '--silent', name], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { name, output: out + errors, passed: code === 0 };
}
