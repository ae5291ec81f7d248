import type { Command } from 'commander';
import { declareStep } from '../operate.ts';

export function declare(command: Command): void {
  command.addHelpText(
    'after',
    '\nOne that runs is asked to stop, at the next renewal of its worker. The history of each stays.',
  );
  declareStep(command, {
    name: 'cancel',
    asks: (count) => `Cancel ${count} tasks?`,
    take: (holdfast, id, act) => holdfast.cancel(id, act),
    words: ({ state }) =>
      state === 'running' ? 'is asked to stop: its worker hears of it at its next renewal' : state,
  });
}
