import type { Command } from 'commander';
import { declareAction } from './task-action.ts';

export function declare(command: Command): void {
  declareAction(command, {
    name: 'hold',
    take: (holdfast, id, act) => holdfast.hold(id, act),
    words: () => 'held',
  });
}
