import type { Command } from 'commander';
import { declareStep } from './task-action.ts';

export function declare(command: Command): void {
  declareStep(command, {
    name: 'hold',
    take: (holdfast, id, act) => holdfast.hold(id, act),
    words: () => 'held',
  });
}
