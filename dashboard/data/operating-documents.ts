import type { RedriveSkip, RedriveState } from '../../src/redrive.ts';
import type { QueueOrder, TaskState } from '../../src/task.ts';
import type { ShownSourceState } from '../../src/views/source-state.ts';

// What the pages of sources, redrives, queues, workers, schedules and policies read of the documents of the API.

interface Acted {
  readonly actor: string;
  readonly note: string | null;
  readonly at: string;
}

export interface SourceJson {
  readonly name: string;
  readonly state: ShownSourceState;
  readonly since: string | null;
  readonly cause: string | null;
  readonly reason: string | null;
  readonly error: string | null;
  readonly ready: number;
  readonly running: number;
  readonly held: Acted | null;
  readonly held_until: string | null;
  readonly opens_in_ms: number | null;
  readonly failed_probes: number | null;
  readonly released_per_second: number | null;
  readonly drain_at_least_ms: number | null;
  readonly tokens: number;
  readonly limits: (LimitsJson & { readonly set_by: Acted & { readonly origin: string } }) | null;
}

export interface LimitsJson {
  readonly per_second: number | null;
  readonly burst: number | null;
  readonly concurrency: number | null;
}

export type SpanCondition = 'held' | 'needs_person' | 'down' | 'waits' | 'ramping';

export interface SpanJson {
  readonly from: string;
  /** Null: it is so now. */
  readonly to: string | null;
  readonly condition: SpanCondition;
}

export interface SourcesDocument {
  readonly items: readonly SourceJson[];
  readonly more: boolean;
  readonly since: string;
  readonly timelines: readonly { readonly source: string; readonly spans: readonly SpanJson[] }[];
}

export interface OutageJson {
  readonly from: string;
  readonly to: string | null;
  readonly condition: 'needs_person' | 'down' | 'waits';
  readonly reason: string | null;
  readonly message: string | null;
  readonly refunded: number;
}

export interface ChangeJson {
  readonly id: number;
  readonly at: string;
  readonly kind: 'source' | 'queue';
  readonly name: string;
  readonly change: 'condition' | 'hold' | 'release' | 'probe' | 'limit' | 'pause' | 'resume';
  readonly to: string | null;
  readonly held_for_ms: number | null;
  readonly limits: { readonly per_second?: number | null; readonly concurrency?: number | null } | null;
  readonly actor: string | null;
  readonly note: string | null;
}

export interface SourceDocument {
  readonly source: SourceJson;
  readonly since: string;
  readonly spans: readonly SpanJson[];
  readonly outages: readonly OutageJson[];
  readonly changes: readonly ChangeJson[];
}

export interface QueueJson {
  readonly name: string;
  readonly order: QueueOrder;
  readonly fair: boolean;
  readonly limits: LimitsJson;
  readonly paused: Acted | null;
  readonly ready: number;
  readonly running: number;
  readonly oldest_ready_at: string | null;
  readonly oldest_running_at: string | null;
  readonly scheduled: { readonly value: number; readonly exact: boolean };
}

export interface QueuesDocument {
  readonly items: readonly QueueJson[];
}

export interface WorkerJson {
  readonly id: number;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly joined_at: string;
  readonly lease_until: string;
  readonly running: number;
  readonly alive: boolean;
  readonly takes: {
    readonly types: readonly string[] | null;
    readonly queues: readonly string[] | null;
    readonly categories: readonly string[] | null;
    readonly capabilities: Readonly<Record<string, unknown>>;
  };
  readonly trouble: { readonly reason: string; readonly message: string; readonly since: string } | null;
}

export interface WorkersDocument {
  readonly items: readonly WorkerJson[];
}

export interface ScheduleJson {
  readonly name: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly missed: 'latest' | 'all' | 'skip';
  readonly overlap: 'skip' | 'queue' | 'allow';
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly input: unknown;
  readonly hidden?: boolean;
  readonly origin: { readonly by: 'code' | 'file'; readonly file?: string };
  readonly next_at: string | null;
  readonly waits: boolean;
  readonly last: { readonly tick: string; readonly at: string; readonly was: 'enqueued' | 'skipped' | 'missed' } | null;
  readonly last_task: { readonly id: number; readonly state: TaskState | null } | null;
  readonly counts: { readonly enqueued: number; readonly skipped: number; readonly missed: number };
  readonly paused: Acted | null;
}

export interface SchedulesDocument {
  readonly items: readonly ScheduleJson[];
}

export interface ScheduleDocument {
  readonly schedule: ScheduleJson;
  readonly next: readonly string[];
}

export interface RedriveJson {
  readonly id: number;
  readonly state: RedriveState;
  readonly since: string;
  readonly by: { readonly actor: string; readonly note: string | null } | null;
  readonly because: string | null;
  readonly actor: string;
  readonly note: string;
  readonly started_at: string;
  readonly filter: { readonly text: string };
  readonly per_second: number;
  readonly accept_duplicate: boolean;
  readonly selecting: boolean;
  readonly selected: number;
  readonly put_back: number;
  readonly skipped: number;
  readonly left: number;
  readonly succeeded: number;
  readonly failed_again: number;
  readonly ended_otherwise: number;
  readonly undecided: number;
  readonly takes_at_least_ms: number;
}

export interface RedrivesDocument {
  readonly items: readonly RedriveJson[];
}

export interface RedriveDocument {
  readonly redrive: RedriveJson;
  readonly skipped_by: Readonly<Partial<Record<RedriveSkip, number>>>;
}

export interface RedrivePlanDocument {
  readonly plan: {
    readonly matches: number;
    readonly may_run_twice: number;
    readonly must_not_run_twice: number;
    readonly takes_at_least_ms: number;
  };
}

export interface PolicyNumbers {
  readonly max_attempts: number;
  readonly backoff: unknown;
  readonly jitter: unknown;
  readonly on_exhausted: string;
}

export interface PoliciesDocument {
  readonly config: { readonly file: string; readonly version: string; readonly warnings: number } | null;
  readonly items: readonly (PolicyNumbers & {
    readonly name: string;
    readonly kind: 'type' | 'preset';
    readonly version: string;
    readonly rules: readonly (PolicyNumbers & { readonly name: string; readonly charge: boolean })[];
  })[];
}

export interface PolicyDocument {
  readonly name: string;
  readonly version: string;
  readonly values: readonly {
    readonly path: readonly string[];
    readonly value: unknown;
    readonly from: { readonly text: string; readonly level: string };
  }[];
}

export interface DelaysDocument {
  readonly rule: string;
  readonly max_attempts: number;
  readonly then: string | null;
  readonly because: string | null;
  readonly delays: readonly {
    readonly retry: number;
    readonly delay_ms: number;
    readonly min_ms: number;
    readonly max_ms: number;
    readonly cumulative_ms: number;
    readonly charge: string;
  }[];
}

export interface PoliciesDiffDocument {
  readonly from: string | null;
  readonly same: boolean;
  readonly items: readonly {
    readonly what: string;
    readonly name: string | null;
    readonly changes: readonly {
      readonly path: readonly string[];
      readonly before: unknown;
      readonly after: unknown;
      readonly before_from: string | null;
      readonly after_from: string | null;
    }[];
  }[];
}
