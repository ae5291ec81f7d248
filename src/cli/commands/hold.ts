import type { Command } from 'commander';
import { declareAction } from './task-action.ts';

export function declare(command: Command): void {
  declareAction(command, {
    name: 'hold',
    run: (holdfast, id, options) => holdfast.hold(id, options),
    words: () => 'held',
  });
}
