import type { Command } from 'commander';
import { nextOfLost } from '../../documents/lost-task.ts';
import { declareAction } from './task-action.ts';

export function declare(command: Command): void {
  command.addHelpText(
    'after',
    '\nOne that runs is asked to stop: within a second on this host, else at the next renewal of its worker. The history stays.',
  );
  declareAction(command, {
    name: 'cancel',
    asks: (count) => `Cancel ${count} tasks?`,
    run: (holdfast, id, options) => holdfast.cancel(id, options),
    words: ({ state }) => (state === 'running' ? 'is asked to stop' : state),
    next: nextOfLost,
  });
}
