import type { Command } from 'commander';
import { duplicateRisk } from '../../documents/duplicate.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import type { Cli } from '../cli.ts';
import { Problem } from '../problem.ts';
import { type ActionFlags, declareAction } from './task-action.ts';

interface Flags extends ActionFlags {
  readonly acceptDuplicate?: boolean;
  readonly newKey?: boolean;
}

export function declare(command: Command): void {
  command
    .option('--accept-duplicate', 'even if it has succeeded, or may have happened already')
    .option('--new-key', 'with a new idempotency key, even if it only waits')
    .addHelpText(
      'after',
      '\nOne that waits is due now, and its count goes on. One that ended or needs a person starts a new round at zero.',
    );
  declareAction<Flags>(command, {
    name: 'retry',
    needsWorker: true,
    check: refuseDuplicate,
    run: (holdfast, id, options, { newKey = false }) => holdfast.retry(id, { ...options, newKey }),
    words: (_, before) => (before.state === 'scheduled' ? 'due now' : 'due now, in a new round'),
  });
}

/** @throws Problem for a task whose retry could do its work a second time. */
export async function refuseDuplicate(
  cli: Cli,
  holdfast: Operations,
  task: Task,
  flags: Pick<Flags, 'acceptDuplicate'>,
): Promise<void> {
  if (flags.acceptDuplicate) return;
  const risk = await duplicateRisk(cli, holdfast, task);
  if (risk) throw new Problem('state_conflict', risk.what, risk);
}
