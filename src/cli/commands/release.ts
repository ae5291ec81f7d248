import type { Command } from 'commander';
import { until } from '../../views/times.ts';
import { declareAction } from './task-action.ts';

export function declare(command: Command): void {
  declareAction(command, {
    name: 'release',
    needsWorker: true,
    run: (holdfast, id, options) => holdfast.release(id, options),
    words: ({ dueAt }, _, now) => (dueAt ? `is waiting, due ${until(dueAt.getTime(), now)}` : 'due now'),
  });
}
