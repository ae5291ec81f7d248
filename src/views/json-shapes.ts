import { span } from '../duration.ts';
import { BACKOFF_SPANS } from '../failure/backoff.ts';
import type { Because } from '../failure/decide.ts';
import type { Failure } from '../failure/outcome.ts';
import type { ReadOptions } from '../failure/policy.ts';
import { SPAN_OPTIONS } from '../failure/policy-fields.ts';
import { isRecord } from '../options.ts';
import type { Task } from '../queue/task-view.ts';
import type { HistoryEntry, Imported, WorkerRecord } from '../store/store.ts';
import { snakeCase } from './snake-case.ts';
import { suspectRuleOf } from './suspect-rule.ts';
import { rfc3339 } from './times.ts';

/** A document of `--json`: its name and version come first and are part of the contract. */
export function documentOf(name: string, content: object): object {
  return { schema: `holdfast.${name}/v1`, ...content };
}

/** Unknown values are null, so that every task has the same members. Input and result are the task's own JSON, unchanged. */
export function taskJson(task: Task): object {
  return {
    id: task.id,
    type: task.type,
    state: task.state,
    queue: task.queue,
    source: task.source,
    priority: task.priority,
    category: task.category ?? null,
    needs: task.needs ?? null,
    key: task.key ?? null,
    unique: task.unique ?? null,
    input: task.input,
    result: task.result ?? null,
    progress: task.progress ?? null,
    progress_at: rfc3339(task.progressAt),
    policy: task.retry ? policyJson(task.retry) : null,
    idempotent: task.idempotent,
    submitted_at: rfc3339(task.submittedAt),
    created_at: rfc3339(task.createdAt),
    due_at: rfc3339(task.dueAt),
    waits_for_group: task.waitsForGroup ?? false,
    deadline: rfc3339(task.deadline),
    ended_at: rfc3339(task.endedAt),
    executions: task.executions,
    attempts: task.attempts,
    attempts_by_reason: task.attemptsByReason,
    deferrals: task.deferrals,
    recoveries: task.recoveries,
    suspect: task.suspect,
    lost_in_a_row: task.lostInARow,
    suspect_rule: suspectRuleOf(task) ?? null,
    reason: task.reason ?? null,
    held_by: task.heldBy ?? null,
    held_for_ms: task.heldFor ?? null,
    unreadable: task.unreadable ?? [],
    running: task.running
      ? {
          worker: task.running.worker,
          since: rfc3339(task.running.since),
          cancel_requested: task.running.cancelRequested,
        }
      : null,
  };
}

export function historyJson(entry: HistoryEntry): object {
  if (entry.kind === 'stray') {
    const { kind, at, execution, worker, failure } = entry;
    return { kind, at: rfc3339(at), execution, worker, failure: failure ? failureJson(failure) : null };
  }
  if (entry.kind === 'action') {
    const { kind, at, actor, verb, note, from, to, imported } = entry;
    return {
      kind,
      at: rfc3339(at),
      actor,
      verb,
      note: note ?? null,
      from,
      to,
      imported: imported ? importedJson(imported) : null,
    };
  }
  return {
    kind: entry.kind,
    execution: entry.execution,
    worker: entry.worker,
    started_at: rfc3339(entry.startedAt),
    ended_at: rfc3339(entry.endedAt),
    duration_ms: entry.endedAt - entry.startedAt,
    outcome: entry.outcome,
    next: entry.next,
    next_in_ms: entry.after ?? null,
    charge: entry.charge,
    failure: entry.failure ? failureJson(entry.failure) : null,
    message: entry.message ?? null,
    because: entry.because ? becauseJson(entry.because) : null,
    late: entry.late,
  };
}

function importedJson({ executions, charged, deferrals, reason, error }: Imported): object {
  return { executions, charged, deferrals, reason: reason ?? null, error: error ?? null };
}

export function failureJson(failure: Failure): object {
  const { kind, reason, fault, ambiguous, retryAfterMs, code, name, message, evidence, fingerprint, word } = failure;
  const { stack, causes = [] } = failure;
  return {
    kind,
    reason,
    fault,
    ambiguous,
    retry_after_ms: retryAfterMs ?? null,
    code: code ?? null,
    name,
    message,
    evidence: { rule: evidence.rule, field: evidence.field ?? null },
    fingerprint: fingerprint ?? null,
    word: word ?? null,
    stack: stack ?? null,
    causes: causes.map(({ path, ...inner }) => ({
      path,
      name: inner.name,
      message: inner.message,
      code: inner.code ?? null,
      stack: inner.stack ?? null,
    })),
  };
}

export function becauseJson(because: Because): object {
  const { step, rule, count, limit, formula, jitter, policyVersion, text } = because;
  return {
    step,
    rule,
    count: count ?? null,
    limit: limit ?? null,
    formula: formula ?? null,
    jitter: jitter
      ? { low_ms: jitter.low, high_ms: jitter.high, roll: jitter.roll, density: jitter.density ?? null }
      : null,
    policy_version: policyVersion,
    text,
  };
}

export function workerJson(worker: WorkerRecord, alive: boolean): object {
  const { id, name, host, pid, joinedAt, leaseUntil, running, takes, trouble, policies } = worker;
  const { types, queues, categories, capabilities } = takes;
  return {
    id,
    name,
    host,
    pid,
    joined_at: rfc3339(joinedAt),
    lease_until: rfc3339(leaseUntil),
    running,
    alive,
    takes: { types: types ?? null, queues: queues ?? null, categories: categories ?? null, capabilities },
    policies: policies ? { since: rfc3339(policies.since), of: policies.of } : null,
    trouble: trouble ? { ...trouble, since: rfc3339(trouble.since) } : null,
  };
}

/** The options of policies and backoffs that are spans of time, in whatever form they were given. */
const SPANS = [...SPAN_OPTIONS, ...BACKOFF_SPANS];

/** Members in snake_case, spans in milliseconds with their unit in the name. Names of rules are lower-case slugs already. */
function policyJson(options: ReadOptions): unknown {
  return snakeCased(options);
}

function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const snake = snakeCase(name);
      return SPANS.includes(name) && typeof member !== 'object'
        ? [`${snake}_ms`, milliseconds(member)]
        : [name === 'delays' ? 'delays_ms' : snake, snakeCased(member)];
    }),
  );
}

/** The same the other way round, for a policy that came in a file. A span may stand there as people write it, too. */
export function policyOptions(json: unknown): unknown {
  if (!isRecord(json)) return json;
  return Object.fromEntries(Object.entries(json).map(([name, member]) => camelCased(name, member)));
}

function camelCased(name: string, member: unknown): [string, unknown] {
  if (name === 'rules' && isRecord(member)) {
    return [name, Object.fromEntries(Object.entries(member).map(([rule, options]) => [rule, policyOptions(options)]))];
  }
  const camel = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const spanned = camel.replace(/Ms$/, '');
  if (spanned !== camel && SPANS.includes(spanned)) return [spanned, withUnit(member)];
  return [camel, policyOptions(member)];
}

/** A span that a member such as `timeout_ms` gives in milliseconds, or a list of them; null is no limit. */
function withUnit(member: unknown): unknown {
  if (Array.isArray(member)) return member.map(withUnit);
  return typeof member === 'number' ? `${member}ms` : (member ?? 'none');
}

function milliseconds(value: unknown): unknown {
  try {
    return value === 'none' ? null : span(value as string | number, 'duration');
  } catch {
    return null;
  }
}
