import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { latency } from '../figures.mjs';
import { expectEqual, moment } from '../measuring.mjs';
import { atCopyOf } from '../places.mjs';

const HOLDFAST = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const SAMPLES = 15;

export const programs = {
  /** From the start of a command to its end: those that open nothing, and those that look at the deep store. */
  cli(options) {
    return atCopyOf('deep', options, (address) => [
      timed('cli --version', ['--version']),
      timed('cli --help', ['--help']),
      ...['status', 'list'].map((command) => ({
        ...timed(`cli ${command}`, [command, '--store', address]),
        size: options.size,
      })),
    ]);
  },
};

function timed(scenario, args) {
  const waits = Array.from({ length: SAMPLES }, () => {
    const from = moment();
    const { status, stderr } = spawnSync(process.execPath, [HOLDFAST, ...args], { encoding: 'utf8' });
    expectEqual(status, 0, `as the exit code of holdfast ${args[0]}. ${stderr}`);
    return moment() - from;
  });
  // The first one reads the program from the disk.
  return { system: 'holdfast', scenario, concurrency: 1, durability: 'full', ...latency(waits.slice(1)) };
}
