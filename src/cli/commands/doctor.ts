import { readFileSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { type Check, doctorContent, isSound, storeChecks } from '../../documents/doctor.ts';
import type { Operations } from '../../queue/operations.ts';
import { inBytes } from '../../views/bytes.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import type { StoreLocation } from '../opening/store-location.ts';

/** File systems by the number that Linux gives them. SQLite's locks do not hold on the first ones. */
const NETWORK: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  16914839: '9p',
  1397113167: 'Coda',
};
const IN_MEMORY: Readonly<Record<number, string>> = { 16914836: 'tmpfs', 2240043254: 'ramfs' };

const LEAST_DISK_BYTES = 500_000_000;
const LEAST_FILE_HANDLES = 1_024;

export function declare(command: Command): void {
  command
    .option('--deep', 'check the invariants of all tasks too, which reads the whole store')
    .addHelpText('after', '\nExit 8 if anything is not sound. Each line says what was found, and what to do.');
  act<{ deep?: boolean }>(command, doctor);
}

async function doctor(cli: Cli, _: readonly string[], { deep = false }: { deep?: boolean }): Promise<number> {
  const config = await readConfig(cli);
  return withStore(cli, {}, async (holdfast, location) => {
    const checks = [
      ...(await storeChecks(cli, holdfast, config?.refused)),
      ...machineChecks(location),
      ...(deep ? await ofTasks(holdfast) : []),
    ];
    const exit = isSound(checks) ? EXIT.done : EXIT.unhealthy;
    const { terminal } = cli;
    terminal.answer('doctor', doctorContent(checks, exit), () => {
      for (const { check, found, action } of checks) {
        terminal.result(
          `${terminal.out.glyph(action === undefined ? 'succeeded' : 'dead')} ${check.replaceAll('_', ' ')}: ${found}`,
        );
        if (action !== undefined) terminal.result(`    ${terminal.out.paint('idle', action)}`);
      }
    });
    return exit;
  });
}

/** What is looked at on the machine of this process. */
export function machineChecks(location: StoreLocation): readonly Check[] {
  return [...ofDisk(location), ...ofProcess()];
}

function ofDisk(location: StoreLocation): Check[] {
  if (location.kind !== 'file') return [];
  const { type, bavail, bsize } = statfsSync(dirname(location.path));
  const network = NETWORK[type];
  const memory = IN_MEMORY[type];
  const left = bavail * bsize;
  const room = `${inBytes(left)} are left`;
  return [
    network !== undefined
      ? {
          check: 'file_system',
          found: `${network}, a network file system: locks may not hold`,
          action: 'move the store to a local disk',
        }
      : memory !== undefined
        ? {
            check: 'file_system',
            found: `${memory}: the store is gone at the next boot`,
            action: 'move the store to a disk',
          }
        : { check: 'file_system', found: 'local' },
    left < LEAST_DISK_BYTES
      ? { check: 'disk', found: room, action: 'free some space, or holdfast db prune' }
      : { check: 'disk', found: room },
  ];
}

/** The limit of this shell. A service has its own. */
function ofProcess(): Check[] {
  const limit = openFilesLimit();
  if (limit === undefined) return [];
  const found = `${limit} may be open in a process started here`;
  return [
    {
      check: 'file_handles',
      found,
      ...(limit < LEAST_FILE_HANDLES && { action: `ulimit -n ${LEAST_FILE_HANDLES * 4}` }),
    },
  ];
}

function openFilesLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // Not Linux.
    return undefined;
  }
}

async function ofTasks(holdfast: Operations): Promise<Check[]> {
  const broken = await holdfast.administration.verify();
  if (broken.length === 0) return [{ check: 'invariants', found: 'all hold' }];
  return broken.map((found) => ({
    check: 'invariants',
    found,
    action: 'holdfast bug-report, and restore a backup if tasks are missing',
  }));
}
