import type { Milliseconds } from '../../duration.ts';
import { isWaiting } from '../../task.ts';
import { ownIdentity } from '../liveness.ts';
import type { PendingLeaves } from '../pending-leaves.ts';
import type {
  Claim,
  ClaimRequest,
  ImportedTask,
  Lease,
  Move,
  Moved,
  News,
  NewTask,
  NewWorker,
  Recalls,
  Receipt,
  Recovery,
  Renewal,
  Saved,
  Settled,
  Settlement,
  Stray,
  TaskStore,
  Trouble,
} from '../store.ts';
import { policyVersions } from '../worker-row.ts';
import { recordStray } from './actions.ts';
import { Checkpoints } from './checkpoints.ts';
import { Claiming, type ClaimingParts } from './claim.ts';
import type { Counting } from './counters.ts';
import type { Sql } from './driver.ts';
import type { Enqueuing } from './enqueue.ts';
import { Importing } from './import.ts';
import type { Moving } from './move.ts';
import type { Read } from './records.ts';
import type { LostLeases } from './recover.ts';
import { Settling } from './settle.ts';
import { StartAtOnce } from './start-at-once.ts';
import type { Writer } from './writer.ts';

interface Parts extends ClaimingParts {
  readonly moving: Moving;
  readonly enqueuing: Enqueuing;
  readonly writer: Writer;
  readonly read: Read;
  readonly now: () => number;
  readonly pendingLeaves: PendingLeaves;
  readonly counting: Counting;
}

/** The operations on tasks: each is an operation of the writer. */
export class SqliteTasks implements TaskStore {
  readonly enqueue: (tasks: readonly NewTask[]) => Promise<readonly Receipt[]>;
  readonly import: (tasks: readonly ImportedTask[]) => Promise<readonly Receipt[]>;
  readonly settle: (settlements: readonly Settlement[]) => Promise<readonly Settled[]>;
  readonly #sql: Sql;
  readonly #writer: Writer;
  readonly #lostLeases: LostLeases;
  readonly #pendingLeaves: PendingLeaves;
  readonly #checkpoints: Checkpoints;
  readonly #claiming: Claiming;
  readonly #startAtOnce: StartAtOnce;
  readonly #moving: Moving;
  readonly #read: Read;
  readonly #now: () => number;
  readonly #notify: (news: News) => void;

  constructor(parts: Parts, notify: (news: News) => void) {
    const { sql, writer, enqueuing, places, facts, lostLeases, read, now } = parts;
    this.#read = read;
    this.#now = now;
    this.#sql = sql;
    this.#writer = writer;
    this.#lostLeases = lostLeases;
    this.#pendingLeaves = parts.pendingLeaves;
    this.#checkpoints = new Checkpoints(sql);
    this.#claiming = new Claiming(parts, this.#checkpoints);
    this.#startAtOnce = new StartAtOnce(parts, this.#claiming);
    this.#moving = parts.moving;
    this.#notify = notify;
    const settling = new Settling(parts, this.#claiming, parts.counting);
    this.enqueue = writer.gathering(
      (tasks: readonly NewTask[], now, next?: ClaimRequest) =>
        this.#startAtOnce.enqueue(tasks, next, now) ?? enqueuing.enqueue(tasks, now),
      () => notify('work'),
      // A worker of this process that waits for work can claim it in the transaction that records it.
      () => notify('work'),
    );
    const importing = new Importing(sql, enqueuing, places, facts);
    this.import = writer.gathering(
      (tasks: readonly ImportedTask[], now) => importing.import(tasks, now),
      () => notify('work'),
      () => notify('work'),
    );
    this.settle = writer.gathering(
      (settlements: readonly Settlement[], now) => {
        for (const { lease, progress } of settlements) {
          if (progress !== undefined) this.#checkpoints.save(lease, { progress }, now);
        }
        return settling.settle(settlements, now);
      },
      (answers) => {
        const news = new Set(settling.takeNews());
        if (answers.some((answer) => answer.answer === 'settled' && isWaiting(answer.state))) news.add('work');
        for (const each of news) notify(each);
      },
    );
  }

  join({ name, leaseFor, mayRunFor = 0, takes, program, publishes }: NewWorker): Promise<number> {
    return this.#writer.write((now) => {
      this.#publish(publishes);
      const { host, pid, pid_started, boot, pid_space } = ownIdentity();
      return this.#sql.run(
        `INSERT INTO hf_workers (name, joined_at, lease_for, lease_until, may_run_for, takes, host, pid, pid_started, boot,
           pid_space, policies, program)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        name,
        now,
        leaseFor,
        now + leaseFor,
        mayRunFor === 'none' ? null : Math.ceil(mayRunFor),
        JSON.stringify(takes ?? { capabilities: {} }),
        host,
        pid,
        pid_started,
        boot,
        pid_space,
        policiesText(publishes, now),
        program ?? null,
      ).id;
    });
  }

  async publish(types: NewWorker['publishes'], workers: readonly number[]): Promise<void> {
    await this.#writer.write((now) => {
      this.#publish(types);
      for (const id of workers) {
        this.#sql.run('UPDATE hf_workers SET policies = ? WHERE id = ?', policiesText(types, now), id);
      }
    });
  }

  #publish(types: NewWorker['publishes']): void {
    for (const [type, published] of Object.entries(types)) {
      this.#sql.run(
        `INSERT INTO hf_types (type, published) VALUES (?, ?)
         ON CONFLICT (type) DO UPDATE SET published = excluded.published WHERE published <> excluded.published`,
        type,
        published,
      );
    }
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    const nothing = this.#writer.isBusy
      ? undefined
      : await this.#read(() => this.#claiming.lookFirst(request, this.#now()));
    const claim = (now: number) => this.#startAtOnce.given(request) ?? this.#claiming.claim(request, now);
    return nothing ?? this.#writer.write(claim, request);
  }

  renew(worker: number, leases: readonly Lease[], claimingFor: Milliseconds = 0): Promise<Renewal> {
    // It may be carried out much later, if another process holds the lock of the file.
    const until = this.#now() - claimingFor;
    return this.#writer.write((now) => {
      const renewed = this.#sql.run(
        'UPDATE hf_workers SET lease_until = ? + lease_for, held_when_lost = NULL WHERE id = ? AND gone = 0',
        now,
        worker,
      );
      const rows = new Map(
        this.#sql
          .all<HeldRow>('SELECT id, execution, token, cancel FROM hf_running WHERE worker = ?', worker)
          .map((row) => [row.id, row]),
      );
      const held = (lease: Lease) => {
        const row = rows.get(lease.task);
        return row?.execution === lease.execution && row.token === lease.token ? row : undefined;
      };
      const named = leases.filter(held).map(({ task }) => task);
      if (named.length < rows.size) this.#lostLeases.giveUp(worker, named, Math.min(now, until), now);
      return {
        known: renewed.changes > 0,
        lost: leases.filter((lease) => !held(lease)),
        cancelled: leases.filter((lease) => held(lease)?.cancel === 1),
      };
    });
  }

  save(lease: Lease, saved: Saved): Promise<boolean> {
    return this.#writer.write((now) => this.#checkpoints.save(lease, saved, now));
  }

  recalls(worker: number, waiting: readonly Lease[]): Promise<Recalls> {
    return this.#read((sql) => {
      const cancelled = sql.all<HeldRow>(
        'SELECT id, execution, token, cancel FROM hf_running WHERE worker = ? AND cancel = 1',
        worker,
      );
      const heldIds = new Set(
        waiting.length === 0
          ? []
          : sql.column<number>(HELD_BACK, JSON.stringify(waiting.map(({ task }) => task)), this.#now()),
      );
      return {
        cancelled: cancelled.map(({ id: task, execution, token }) => ({ task, execution, token })),
        held: waiting.filter(({ task }) => heldIds.has(task)),
      };
    });
  }

  recover(worker: number, limit: number): Promise<Recovery> {
    return this.#writer.write((now) => this.#claiming.recover(worker, limit, now));
  }

  async reportTrouble(worker: number, trouble: Trouble | undefined): Promise<void> {
    await this.#writer.write((now) => {
      const text = trouble === undefined ? null : JSON.stringify({ ...trouble, since: now });
      this.#sql.run('UPDATE hf_workers SET trouble = ? WHERE id = ?', text, worker);
    });
  }

  async stopping(worker: number): Promise<void> {
    await this.#writer.write(() => this.#lostLeases.noteStopping(worker));
  }

  async forbidSecondRun(leases: readonly Lease[]): Promise<void> {
    await this.#writer.write(() => this.#claiming.forbidSecondRunOf(leases));
  }

  recordStray(stray: Stray): Promise<void> {
    return this.#writer.write((now) => recordStray(this.#sql, stray, now));
  }

  async leave(worker: number): Promise<void> {
    await this.#writer.write((now) => this.#lostLeases.dismiss(worker, now));
    this.#pendingLeaves.delete(worker);
    this.#notify('work');
  }

  leaveLater(worker: number): void {
    this.#pendingLeaves.add(worker);
  }

  amend(id: number, before: string, after: string): Promise<boolean> {
    return this.#writer.write(() => {
      const amended = this.#sql.run(
        `UPDATE hf_tasks SET payload = :after WHERE id = :id AND payload = :before
         AND NOT EXISTS (SELECT 1 FROM hf_running WHERE id = :id)
         AND NOT EXISTS (SELECT 1 FROM hf_resting WHERE id = :id AND state <> 'held')`,
        { id, before, after },
      );
      if (amended.changes > 0) this.#sql.run('UPDATE hf_facts SET key_from = executions WHERE task = ?', id);
      return amended.changes > 0;
    });
  }

  async move(ids: readonly number[], move: Move): Promise<readonly Moved[]> {
    const moved = await this.#writer.write((now) => ids.map((id) => this.#moving.move(id, move, now)));
    if (moved.some((one) => one.moved && isWaiting(one.to))) this.#notify('work');
    if (moved.some((one) => !one.moved && one.why === 'requested')) this.#notify('recall');
    return moved;
  }
}

/**
 * The given tasks whose source is held, down, or tested by another task, or whose queue is paused. A pace or limit that is used
 * up does not count, because these tasks have been allowed to start.
 */
const HELD_BACK = `
  SELECT t.id FROM json_each(?) j JOIN hf_tasks t ON t.id = j.value JOIN hf_classes c ON c.id = t.class
  JOIN hf_queues q ON q.id = c.queue LEFT JOIN hf_running r ON r.id = t.id
  LEFT JOIN hf_sources h ON h.name = t.source LEFT JOIN hf_source_states s ON s.source = t.source
  CROSS JOIN (SELECT ? AS now) n
  WHERE q.paused_at IS NOT NULL OR (h.name IS NOT NULL AND coalesce(h.until > n.now, 1))
    OR s.until_released OR s.shut_until > n.now OR (s.probing AND NOT r.probe)`;

/** Since now. */
function policiesText(publishes: NewWorker['publishes'], since: number): string | null {
  const of = policyVersions(publishes);
  return of ? JSON.stringify({ since, of }) : null;
}

interface HeldRow {
  readonly id: number;
  readonly execution: number;
  readonly token: string;
  readonly cancel: number;
}
