import type { Writable } from '../writable.ts';
import type { Claimed, Lease } from './store.ts';

/** What every claimed task has. */
type Always = Pick<
  Claimed,
  'lease' | 'revision' | 'type' | 'queue' | 'source' | 'priority' | 'payload' | 'submittedAt' | 'facts'
>;

/**
 * Objects of a class, and not of literals. If a garbage collection finds most of the first objects of a literal in use, which those of
 * tasks claimed ahead are, V8 makes all later ones as long-lived objects, and a worker spends 15 % of its time on collecting them.
 */
class ClaimedTask implements Always {
  readonly lease: Lease;
  readonly revision: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly payload: string;
  readonly submittedAt: number;
  readonly facts: Claimed['facts'];

  constructor({ lease, revision, type, queue, source, priority, payload, submittedAt, facts }: Always) {
    this.lease = lease;
    this.revision = revision;
    this.type = type;
    this.queue = queue;
    this.source = source;
    this.priority = priority;
    this.payload = payload;
    this.submittedAt = submittedAt;
    this.facts = facts;
  }
}

class LeaseOfTask implements Lease {
  readonly task: number;
  readonly execution: number;
  readonly token: string;

  constructor(task: number, execution: number, token: string) {
    this.task = task;
    this.execution = execution;
    this.token = token;
  }
}

/** A claimed task, to which the store adds what only some have. */
export function claimedTask(of: Always): Writable<Claimed> {
  return new ClaimedTask(of);
}

export function leaseOf(task: number, execution: number, token: string): Lease {
  return new LeaseOfTask(task, execution, token);
}
