import { isWaiting } from '../../task.ts';
import type {
  Claim,
  ClaimRequest,
  Lease,
  Move,
  Moved,
  NewTask,
  NewWorker,
  Receipt,
  Recovered,
  Renewal,
  Settled,
  Settlement,
  TaskStore,
} from '../store.ts';
import { Claiming } from './claiming.ts';
import type { Sql } from './driver.ts';
import type { FactsTable } from './facts.ts';
import type { Lanes } from './lanes.ts';
import { ownIdentity } from './liveness.ts';
import { Moving } from './moving.ts';
import type { Places } from './places.ts';
import type { Reaper } from './reaper.ts';
import type { Read } from './records.ts';
import { Settling } from './settling.ts';
import type { Writer } from './writer.ts';

interface Parts {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly lanes: Lanes;
  readonly places: Places;
  readonly facts: FactsTable;
  readonly reaper: Reaper;
  readonly read: Read;
  readonly now: () => number;
}

/** The verbs over tasks: each one an operation of the writer. */
export class SqliteTasks implements TaskStore {
  readonly enqueue: (tasks: readonly NewTask[]) => Promise<readonly Receipt[]>;
  readonly settle: (settlements: readonly Settlement[]) => Promise<readonly Settled[]>;
  readonly #sql: Sql;
  readonly #writer: Writer;
  readonly #lanes: Lanes;
  readonly #places: Places;
  readonly #reaper: Reaper;
  readonly #claiming: Claiming;
  readonly #moving: Moving;
  readonly #read: Read;
  readonly #now: () => number;
  readonly #notify: () => void;

  constructor(parts: Parts, notify: () => void) {
    const { sql, writer, lanes, places, facts, reaper, read, now } = parts;
    this.#read = read;
    this.#now = now;
    this.#sql = sql;
    this.#writer = writer;
    this.#lanes = lanes;
    this.#places = places;
    this.#reaper = reaper;
    this.#claiming = new Claiming(sql, lanes, places, facts, reaper);
    this.#moving = new Moving(sql, places, facts);
    this.#notify = notify;
    const settling = new Settling(sql, places, facts, this.#claiming);
    const enqueueAll = writer.gathering((tasks: readonly NewTask[], now) =>
      tasks.map((task) => this.#enqueueOne(task, now)),
    );
    const settleAll = writer.gathering((settlements: readonly Settlement[], now) => settling.settle(settlements, now));
    this.enqueue = async (tasks) => {
      const receipts = await enqueueAll(tasks);
      this.#notify();
      return receipts;
    };
    this.settle = async (settlements) => {
      const answers = await settleAll(settlements);
      if (answers.some((answer) => answer.answer === 'settled' && isWaiting(answer.state))) this.#notify();
      return answers;
    };
  }

  join({ name, leaseFor, takes, publishes }: NewWorker): Promise<number> {
    return this.#writer.write((now) => {
      for (const [type, published] of Object.entries(publishes)) {
        this.#sql.run(
          `INSERT INTO hf_types (type, published) VALUES (?, ?)
           ON CONFLICT (type) DO UPDATE SET published = excluded.published WHERE published <> excluded.published`,
          type,
          published,
        );
      }
      const { host, pid, pid_started, boot, pid_space } = ownIdentity();
      return this.#sql.run(
        `INSERT INTO hf_workers (name, joined_at, lease_for, lease_until, takes, host, pid, pid_started, boot, pid_space)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        name,
        now,
        leaseFor,
        now + leaseFor,
        JSON.stringify(takes ?? { capabilities: {} }),
        host,
        pid,
        pid_started,
        boot,
        pid_space,
      ).id;
    });
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    const nothing = this.#writer.isBusy
      ? undefined
      : await this.#read(() => this.#claiming.lookFirst(request, this.#now()));
    return nothing ?? this.#writer.write((now) => this.#claiming.claim(request, now));
  }

  renew(worker: number, leases: readonly Lease[]): Promise<Renewal> {
    return this.#writer.write((now) => {
      const renewed = this.#sql.run(
        'UPDATE hf_workers SET lease_until = ? + lease_for WHERE id = ? AND gone = 0',
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
      return {
        known: renewed.changes > 0,
        lost: leases.filter((lease) => !held(lease)),
        cancelled: leases.filter((lease) => held(lease)?.cancel === 1),
      };
    });
  }

  recover(worker: number, limit: number): Promise<readonly Recovered[]> {
    return this.#writer.write((now) => this.#claiming.recover(worker, limit, now));
  }

  async leave(worker: number): Promise<void> {
    await this.#writer.write(() => this.#reaper.dismiss(worker));
    this.#notify();
  }

  async move(ids: readonly number[], move: Move): Promise<readonly Moved[]> {
    const moved = await this.#writer.write((now) => ids.map((id) => this.#moving.move(id, move, now)));
    if (moved.some((one) => one.moved && isWaiting(one.to))) this.#notify();
    return moved;
  }

  #enqueueOne(task: NewTask, now: number): Receipt {
    const { type, key } = task;
    const known =
      key === undefined
        ? undefined
        : this.#sql.get<{ task: number }>('SELECT task FROM hf_keys WHERE key = ? AND type = ?', key, type);
    if (known) return { id: known.task, created: false };
    const group = this.#lanes.classOf(task.queue, type, task.category, task.needs);
    const submittedAt = task.submittedAt ?? now;
    const runAt = task.dueAt ?? now + task.delay;
    const deadline = task.deadline ?? null;
    const { id } = this.#sql.run(
      `INSERT INTO hf_tasks (class, source, priority, submitted_at, created_at, run_at, deadline, idempotent, key, policy, payload)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      group,
      task.source,
      task.priority,
      submittedAt,
      now,
      runAt,
      deadline,
      task.idempotent === undefined ? null : task.idempotent ? 1 : 0,
      key ?? null,
      task.policy ?? null,
      task.payload,
    );
    if (key !== undefined) this.#sql.run('INSERT INTO hf_keys (type, key, task) VALUES (?, ?, ?)', type, key, id);
    const place = { id, class: group, source: task.source, priority: task.priority, submittedAt, suspect: false };
    this.#places.enter('new', place, runAt, deadline, now);
    return { id, created: true };
  }
}

interface HeldRow {
  readonly id: number;
  readonly execution: number;
  readonly token: string;
  readonly cancel: number;
}
