import type { Command } from 'commander';
import { declareStep } from '../operate.ts';
import { until } from '../times.ts';

export function declare(command: Command): void {
  declareStep(command, {
    name: 'release',
    needsWorker: true,
    take: (holdfast, id, act) => holdfast.release(id, act),
    words: ({ dueAt }, _, now) => (dueAt ? `waits again, due ${until(dueAt.getTime(), now)}` : 'due now'),
  });
}
