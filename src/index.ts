/**
 * Defines tasks, opens a store, enqueues and works.
 * @module holdfast
 */

export type { Clock } from './clock.ts';
export type { DurationInput, Milliseconds } from './duration.ts';
export {
  ClosedError,
  type ConfigProblem,
  ERROR_CODES,
  type ErrorCode,
  FailureGroupNotFoundError,
  HoldfastError,
  InvalidConfigError,
  InvalidInputError,
  LeaseLostError,
  PayloadError,
  RedriveConflictError,
  RedriveNotFoundError,
  ResultTimeoutError,
  ScheduleNotFoundError,
  StateConflictError,
  StoreError,
  TaskFailedError,
  TaskNotFoundError,
  UniqueConflictError,
  WorkerNotFoundError,
} from './errors.ts';
export type { ObservedRetries } from './failure/adaptive.ts';
export {
  type Backoff,
  type BackoffInput,
  custom,
  type ExponentialOptions,
  exponential,
  fixed,
  immediate,
  type LinearOptions,
  linear,
  none,
  schedule,
} from './failure/backoff.ts';
export { classify } from './failure/classify/classify.ts';
export type { ClassifyContext } from './failure/classify/matched-rule.ts';
export { messageRules } from './failure/classify/message-rules.ts';
export { REASONS, type Reason, type ReasonInfo } from './failure/classify/reasons.ts';
export { type Classifier, type ClassifyRule, classifierFrom, type RuleMatch } from './failure/classify/rules.ts';
export {
  type Because,
  type Charge,
  type ChargedCount,
  type Decision,
  decide,
  type Facts,
  type SourceFacts,
  STEPS,
  type Step,
} from './failure/decide.ts';
export type { FailureGroup, FailureGroupAction, FailureGroupState, FailureVerb, RetryHelps } from './failure/groups.ts';
export { type Jitter, type JitterInput, proportional, type Roll } from './failure/jitter.ts';
export { describeOrigin, type ExplainedPolicy, type Level, type Origin, type PolicyValue } from './failure/layers.ts';
export {
  type End,
  type Evidence,
  FAILURE_KINDS,
  FAULTS,
  type Failure,
  type FailureKind,
  type Fault,
  type InnerError,
  type Outcome,
} from './failure/outcome.ts';
export {
  definePolicy,
  type Policy,
  type PolicyOptions,
  type ReadOptions,
  type RuleOptions,
  type WholePolicy,
} from './failure/policy.ts';
export { presets } from './failure/presets.ts';
export {
  Failed,
  NeedsManual,
  PermanentFailure,
  RateLimited,
  RetryLater,
  type SignalOptions,
} from './failure/signals.ts';
export type { NameFilter, NumberRange } from './filter.ts';
export type { AsJson, CarriedAsJson } from './json-types.ts';
export type { LimitOptions } from './limits.ts';
export { LOG_LEVELS, type Logger, type LogLevel } from './log.ts';
export type { Pace, PaceInput } from './pace.ts';
export type { ClaimOptions, ClaimStatus, ManualClaim, SettledClaim } from './queue/claim.ts';
export type {
  EnqueueOptions,
  FollowUp,
  GroupOptions,
  GroupReceipts,
  TaskToEnqueue,
  UniqueOptions,
} from './queue/enqueue.ts';
export type { FailureGroupView, FailureListOptions, Failures, MuteOptions } from './queue/failures.ts';
export { Holdfast } from './queue/holdfast.ts';
export type { TaskToImport } from './queue/import.ts';
export type { PolicyQuestion } from './queue/inspect.ts';
export { type HoldfastOptions, openHoldfast, type QueueOptions } from './queue/open.ts';
export type { ActionOptions, ResolveOptions, RetryOptions, SeenTask, TaskActionOptions } from './queue/operate.ts';
export type {
  RedriveFilterOptions,
  RedriveOptions,
  RedrivePlan,
  Redrives,
  SelectionOptions,
} from './queue/redrives.ts';
export type { ResultOptions } from './queue/results.ts';
export type { Schedule, ScheduleOptions, Schedules } from './queue/schedules.ts';
export type { HoldSourceOptions, Sources } from './queue/sources.ts';
export type { Stats, StatsBin, StatsOptions, StatsReport } from './queue/stats.ts';
export type { ListOptions } from './queue/task-reader.ts';
export type { Task } from './queue/task-view.ts';
export type { PostgresHandle, SqliteHandle, Within } from './queue/within.ts';
export type { RedriveState } from './redrive.ts';
export type { RemovableState } from './retention.ts';
export type { RestrictionCause } from './source/change.ts';
export type { RedriveFilter, RedriveOfTask, RedriveRecord } from './store/redrives.ts';
export type { ScheduleOrigin } from './store/schedules.ts';
export type {
  ActionEntry,
  Claimed,
  Counts,
  ExecutionEntry,
  HeldBy,
  HistoryEntry,
  Imported,
  ImportedTask,
  LastFailure,
  Lease,
  LimitOrigin,
  PrunedTask,
  QueueRecord,
  QueueSettings,
  Receipt,
  SourceRecord,
  SourceState,
  Store,
  StoreDescription,
  StoreOpener,
  StrayEntry,
  Takes,
  Unique,
  WorkerRecord,
  World,
} from './store/store.ts';
export {
  IMPORT_STATES,
  type ImportState,
  type Json,
  type Needs,
  QUEUE_ORDERS,
  type QueueOrder,
  TASK_STATES,
  type TaskState,
  TRANSITIONS,
  type UniqueConflict,
  type UniqueScope,
} from './task.ts';
export { type JsonLogOptions, jsonLog } from './telemetry/json-log.ts';
export { LOG_EVENTS, type LogEvent } from './telemetry/log-lines.ts';
export { type OpenTelemetryApi, openTelemetry } from './telemetry/open-telemetry.ts';
export type { Telemetry, TraceHeaders } from './telemetry/tracing.ts';
export type { Explanation, PossibleAction } from './views/explain.ts';
export type { PastExplanation, PastState } from './views/explain-at.ts';
export type { ExplainedFailure } from './views/explain-failure.ts';
export type { AssumedPolicy } from './views/explain-if.ts';
export type { Check, Holder } from './views/readiness.ts';
export type { BatchOptions } from './worker/batches.ts';
export type { Configuration, TaskNames } from './worker/configuration.ts';
export {
  type BatchedTask,
  type BatchReturn,
  type BatchTaskOptions,
  type DefinitionOf,
  defineTask,
  type HealthCheck,
  type LostExecution,
  type RunningTask,
  type TaskDefinition,
  type TaskOptions,
  type Verified,
  type VerifyCheck,
} from './worker/define-task.ts';
export type { Group, GroupTask } from './worker/group.ts';
export type { KeepForInput, RetentionOptions } from './worker/retention-options.ts';
export type { Stopped, Unwritten } from './worker/stopped.ts';
export { type Finished, Worker, type WorkerEvent, type WorkerOptions } from './worker/worker.ts';
