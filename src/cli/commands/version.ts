import type { Command } from 'commander';
import { documentOf } from '../../views/json-shapes.ts';
import { act } from '../action.ts';
import { versionOf } from '../version.ts';

export function declare(command: Command): void {
  act(command, async ({ terminal }) => {
    const [version, node, { platform }] = [versionOf(), process.versions.node, process];
    if (terminal.json) terminal.document(documentOf('version', { version, node, platform }));
    else terminal.result(`holdfast ${version} (Node ${node}, ${platform})`);
    return 0;
  });
}
