import type { Because } from '../../src/failure/decide.ts';
import type { FailureGroupState, FailureVerb, RetryHelps } from '../../src/failure/groups.ts';
import type { FailureKind, Fault } from '../../src/failure/outcome.ts';
import type { ExecutionEntry, HeldBy } from '../../src/store/store.ts';
import type { Json, TaskState } from '../../src/task.ts';

// What the pages read of the documents of the API. They are the documents of `--json`, which docs describe; times are RFC 3339.

export interface TaskJson {
  readonly id: number;
  readonly type: string;
  readonly state: TaskState;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category: string | null;
  readonly needs: Readonly<Record<string, Json>> | null;
  readonly key: string | null;
  readonly input: Json;
  /** Input, result and progress are null, because the person may not see them. */
  readonly hidden?: boolean;
  readonly result: Json;
  readonly progress: Json;
  readonly progress_at: string | null;
  readonly idempotent: boolean;
  readonly submitted_at: string;
  readonly created_at: string;
  readonly due_at: string | null;
  readonly deadline: string | null;
  readonly ended_at: string | null;
  readonly executions: number;
  readonly attempts: number;
  readonly attempts_by_reason: readonly {
    readonly reason: string;
    readonly kind: FailureKind;
    readonly count: number;
  }[];
  readonly deferrals: number;
  readonly recoveries: number;
  readonly suspect: boolean;
  readonly reason: string | null;
  readonly held_by: HeldBy | null;
  readonly unreadable: readonly string[];
  readonly running: { readonly worker: string; readonly since: string; readonly cancel_requested: boolean } | null;
}

interface FailureJson {
  readonly kind: FailureKind;
  readonly reason: string;
  readonly fault: Fault;
  readonly ambiguous: boolean;
  readonly retry_after_ms: number | null;
  readonly code: string | null;
  readonly name: string;
  readonly message: string;
  readonly evidence: { readonly rule: string; readonly field: string | null };
  readonly fingerprint: string | null;
  readonly stack: string | null;
  readonly causes: readonly {
    readonly path: string;
    readonly name: string;
    readonly message: string;
    readonly stack: string | null;
  }[];
}

interface BecauseJson {
  readonly step: Because['step'];
  readonly rule: string;
  readonly count: number | null;
  readonly limit: number | null;
  readonly formula: string | null;
  readonly jitter: { readonly low_ms: number; readonly high_ms: number; readonly roll: number } | null;
  readonly policy_version: string;
  readonly text: string;
}

export interface ExecutionJson {
  readonly kind: 'execution';
  readonly execution: number;
  readonly worker: string;
  readonly started_at: string;
  readonly ended_at: string;
  readonly duration_ms: number;
  readonly outcome: ExecutionEntry['outcome'];
  readonly next: TaskState;
  readonly next_in_ms: number | null;
  readonly charge: ExecutionEntry['charge'];
  readonly failure: FailureJson | null;
  readonly message: string | null;
  readonly because: BecauseJson | null;
  readonly late: boolean;
}

export interface ActionJson {
  readonly kind: 'action';
  readonly at: string;
  readonly actor: string;
  readonly verb: string;
  readonly note: string | null;
  readonly from: TaskState;
  readonly to: TaskState;
}

export interface StrayJson {
  readonly kind: 'stray';
  readonly at: string;
  readonly execution: number;
  readonly worker: string;
  readonly failure: FailureJson | null;
}

export type HistoryJson = ExecutionJson | ActionJson | StrayJson;

export interface ListedTask extends TaskJson {
  /** Its last failure, if it has not succeeded since. */
  readonly error: { readonly reason: string; readonly message: string } | null;
}

export interface ListDocument {
  readonly items: readonly ListedTask[];
  /** For `before` of the next page. */
  readonly next: string | null;
  readonly total: { readonly value: number | null; readonly exact: boolean };
}

export interface ShowDocument {
  readonly task: TaskJson;
  readonly budget: {
    readonly attempts: number;
    readonly max_attempts: number;
    readonly failure_type: FailureKind | null;
    readonly first_attempt_at: string;
    readonly last_attempt_at: string;
    readonly total_delay_ms: number;
  } | null;
  readonly history: readonly HistoryJson[];
  readonly choices: readonly ChoiceJson[];
  /** Null if a newer version wrote options of its policy that this one does not know. */
  readonly explain: Omit<ExplainDocument, 'task'> | null;
}

export interface ExplainDocument {
  readonly task: TaskJson;
  readonly headline: string;
  readonly held_by: readonly string[];
  readonly checks: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly text: string;
    readonly holder?: string;
  }[];
  readonly because: BecauseJson | null;
  readonly next_failure: {
    readonly rule: string;
    readonly from: string;
    readonly next: TaskState;
    readonly reason: string;
    readonly charge: ExecutionEntry['charge'];
    readonly delay_ms: number | null;
    readonly min_ms: number | null;
    readonly max_ms: number | null;
    readonly because: BecauseJson | null;
    readonly ends: readonly string[];
    readonly text: string;
  } | null;
  readonly next: string;
  readonly actions: readonly { readonly words: string; readonly command: string | null }[];
  readonly text: string;
}

export interface StatusDocument {
  readonly store: string;
  readonly attention: readonly {
    readonly kind: string;
    readonly count: number;
    readonly text: string;
    readonly command: string;
    readonly reason: string | null;
  }[];
  readonly by_state: Readonly<Record<TaskState, number>>;
  readonly retrying: number;
  readonly due: number;
  readonly next_due_at: string | null;
  readonly oldest_ready: readonly { readonly queue: string; readonly since: string }[];
  readonly oldest_running: readonly { readonly queue: string; readonly since: string }[];
  readonly workers: readonly {
    readonly id: number;
    readonly name: string;
    readonly alive: boolean;
    readonly running: number;
  }[];
}

/** One of the answers to a task that needs a person. */
export interface ChoiceJson {
  readonly as: string;
  /** What it comes to. An answer that is not `as` changes something on the machine of the command. */
  readonly answer: 'succeeded' | 'retry' | 'dead';
  readonly words: string;
  readonly does: string | null;
  readonly command: string;
}

export interface InboxDocument {
  readonly total: number;
  readonly items: readonly {
    readonly since: string | null;
    readonly question: string;
    readonly error: string | null;
    readonly steps: readonly string[];
    readonly choices: readonly ChoiceJson[];
    readonly task: TaskJson;
  }[];
}

export interface FailureGroupJson {
  readonly id: string;
  readonly type: string;
  readonly fingerprint: string;
  readonly kind: FailureKind;
  readonly reason: string;
  readonly name: string;
  readonly message: string;
  readonly frame: string | null;
  readonly task: number;
  readonly first_at: string;
  readonly last_at: string;
  readonly count: number;
  readonly dead: number;
  readonly needs_manual: number;
  readonly retries: { readonly succeeded: number; readonly failed: number };
  readonly retry_helps: RetryHelps | null;
  readonly sources: Readonly<Record<string, number>>;
  readonly policy_versions: Readonly<Record<string, number>>;
  readonly hours: readonly { readonly at: string; readonly count: number }[];
  readonly actions: readonly {
    readonly at: string;
    readonly verb: FailureVerb;
    readonly actor: string;
    readonly note: string | null;
    /** When a mute ends. */
    readonly until: string | null;
  }[];
  readonly state: FailureGroupState;
}

/** Who looks, and what they may do. */
export interface MeDocument {
  readonly actor: string;
  /** By permission: view, enqueue, retry, cancel, hold, release, resolve, redrive, failures, sources, queues, workers, schedules. */
  readonly permissions: Readonly<Record<string, boolean>>;
  readonly read_only: boolean;
  readonly version: string;
  readonly store: { readonly kind: string; readonly name: string };
  readonly environment: string | null;
}
