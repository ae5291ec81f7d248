import type { Command } from 'commander';
import { versionOf } from '../../documents/version.ts';
import { act } from '../action.ts';

export function declare(command: Command): void {
  act(command, async ({ terminal }) => {
    const [version, node, { platform }] = [versionOf(), process.versions.node, process];
    terminal.answer('version', { version, node, platform }, () =>
      terminal.result(`holdfast ${version} (Node ${node}, ${platform})`),
    );
  });
}
