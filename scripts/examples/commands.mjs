// @ts-check
import { spawnSync } from 'node:child_process';

/** Far more than any of it takes, so that nothing hangs for good. */
const LONGEST_MS = 600_000;

/**
 * The command that a README starts its example with: the first line of a block of shell that runs the example with Node.
 * @param {string} readme
 * @returns {readonly string[] | undefined} the arguments of `node`
 */
export function commandIn(readme) {
  for (const [, block = ''] of readme.matchAll(/^```sh\n(.*?)^```/gms)) {
    for (const line of block.split('\n')) {
      const command = /(?:^|&& )node (examples\/.*)$/.exec(line.replace(/\s#.*/, '').trim())?.[1];
      if (command !== undefined) return command.split(/\s+/);
    }
  }
  return undefined;
}

/**
 * How a program is run.
 * @typedef {{ readonly quietly?: boolean, readonly longestMs?: number }} Running
 */

/**
 * Runs a program of this project, its output shown unless it is to run quietly. Answers what went wrong, if anything.
 * @param {readonly string[]} args of `node`
 * @param {string} root
 * @param {Running} [running]
 */
export function runNode(args, root, { quietly = false, longestMs = LONGEST_MS } = {}) {
  if (!quietly) process.stdout.write(`\n$ node ${args.join(' ')}\n`);
  const { status, signal, error } = spawnSync(process.execPath, args, {
    cwd: root,
    stdio: quietly ? 'ignore' : ['ignore', 'inherit', 'inherit'],
    timeout: longestMs,
    killSignal: 'SIGKILL',
  });
  if (status === 0) return undefined;
  const how = error?.message ?? (signal ? `ended by ${signal}` : `exit ${status}`);
  return `node ${args.join(' ')}: ${how}`;
}
