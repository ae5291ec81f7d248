import type { Milliseconds } from '../duration.ts';
import { ClosedError, StoreError } from '../errors.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { harmless, type Logger } from '../log.ts';
import type { Mistakes } from '../mistakes.ts';
import { refuseUnknown, wholeNumber } from '../options.ts';
import { RENEWALS_PER_LEASE } from '../store/leases.ts';
import type { Claimed, Lease, Recovered, Store, Takes, World } from '../store/store.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import { Announcer } from '../worker/announcer.ts';
import { Asking } from '../worker/asking.ts';
import { cleanUp } from '../worker/clean-up.ts';
import type { Configuration } from '../worker/configuration.ts';
import type { AnyTask } from '../worker/define-task.ts';
import { intactPayload } from '../worker/intact.ts';
import { KnownRetries } from '../worker/known-retries.ts';
import type { KnownSources } from '../worker/known-sources.ts';
import { Membership } from '../worker/membership.ts';
import { outcomeBy } from '../worker/outcome-by.ts';
import { type OwnHandlers, STILL_RUNS } from '../worker/own-handlers.ts';
import { definitionForRecovered, policyForRecovered, publications } from '../worker/policy-for.ts';
import { type RecoveryOptions, recover, settleRecovered } from '../worker/recovery.ts';
import { claimedAsPublished, storeIdempotence } from '../worker/second-run.ts';
import { Settler } from '../worker/settler.ts';
import type { Unwritten } from '../worker/stopped.ts';
import { AWAITS_EMPTY, type Suspects } from '../worker/suspects.ts';
import { tellTelemetry } from '../worker/traces.ts';
import { parseWorkerOptions } from '../worker/worker-options.ts';
import { type ClaimHolder, type ClaimOptions, type ClaimStatus, ManualClaim } from './claim.ts';

export interface ClaimsContext {
  readonly store: Store;
  readonly world: World;
  readonly definitions: ReadonlyMap<string, AnyTask>;
  readonly configuration: Configuration;
  readonly defaultName: string;
  readonly sizeLimit: number;
  readonly log: Logger;
  readonly mistakes: Mistakes;
  readonly telemetry: Telemetry | undefined;
  readonly ownHandlers: OwnHandlers;
  readonly suspects: Suspects;
  readonly knownSources: KnownSources;
}

const OPTIONS = ['id', 'types', 'queues', 'categories', 'capabilities', 'leaseFor', 'name'];

interface ClaimSettings {
  readonly name: string;
  readonly leaseFor: Milliseconds;
  readonly takes: Takes;
  readonly id?: number;
}

/** A worker's row with at most one claim, so that renewing one claim never extends another one. */
interface ClaimRow {
  /** Claims with the same name, lease and filters can use it one after the other. */
  readonly key: string;
  readonly membership: Membership;
  readonly announcer: Announcer;
  readonly settler: Settler;
  readonly leaseFor: Milliseconds;
  usedAt: Milliseconds;
}

/** Makes claims by hand. Each claim has its own worker row. There are no timers here. */
export class Claims {
  readonly #context: ClaimsContext;
  readonly #log: Logger;
  readonly #asking: Asking;
  readonly #retries: KnownRetries;
  readonly #outcomeOf: ClaimHolder['outcomeOf'];
  readonly #open = new Set<ManualClaim>();
  readonly #rows = new Set<ClaimRow>();
  /** The rows without a claim, the last used one last. */
  readonly #free: ClaimRow[] = [];
  readonly #cleaning = new Set<Promise<void>>();
  #claiming: Promise<unknown> = Promise.resolve();
  #recoveredAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(context: ClaimsContext) {
    this.#context = context;
    this.#log = harmless(context.log);
    this.#asking = new Asking(context.store.tasks);
    this.#retries = new KnownRetries(context.store, context.world.clock);
    this.#outcomeOf = outcomeBy(context.configuration, context.mistakes);
  }

  /** Whether it has a worker's row in the store. */
  get joined(): boolean {
    return this.#rows.size > 0;
  }

  /** One claim after the other: two at once could each return a suspect. */
  claim(options: ClaimOptions): Promise<ManualClaim | undefined> {
    const settings = this.#parse(options);
    const claim = this.#claiming.then(() => this.#claim(settings));
    this.#claiming = claim.catch(() => {});
    return claim;
  }

  /** Hands back open claims, removes the rows, and waits for clean-ups that are running. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#claiming;
    await Promise.all([...this.#open].map((claim) => claim.close()));
    await Promise.all([...this.#rows].map(({ membership }) => membership.leave()));
    await Promise.all(this.#cleaning);
  }

  /** The claims that are still open, or whose settlement could not be written. */
  get unwritten(): readonly Unwritten[] {
    return [...this.#open].map((claim) => claim.unwritten);
  }

  /** Rows that could not be removed are removed as soon as the store can be reached. */
  leaveLater(): void {
    for (const { membership } of this.#rows) membership.leaveLater();
  }

  #parse(options: ClaimOptions): ClaimSettings {
    refuseUnknown(options, OPTIONS, 'claim');
    const { id, ...others } = options;
    const { name = this.#context.defaultName, leaseFor, takes } = parseWorkerOptions(others);
    return { name, leaseFor, takes, ...(id !== undefined && { id: wholeNumber(id, 'id', 1) }) };
  }

  async #claim(settings: ClaimSettings): Promise<ManualClaim | undefined> {
    if (this.#closed) throw new ClosedError('Holdfast');
    const row = this.#rowFor(settings);
    try {
      const taken = await this.#take(row, settings);
      if (taken) return await this.#hold(row, taken);
      this.#release(row);
      return undefined;
    } catch (error) {
      // The store may have leased a task to this row. The next claim must not renew that lease.
      this.#rows.delete(row);
      await row.membership.leave();
      throw error;
    }
  }

  async #take(row: ClaimRow, settings: ClaimSettings): Promise<Claimed | undefined> {
    const due = this.#now() - this.#recoveredAt >= row.leaseFor / RENEWALS_PER_LEASE;
    if (due) await this.#recover(row);
    const taken = await this.#ask(row, settings);
    // Lost tasks are recovered first, before the answer is that nothing is ready.
    if (taken || due || (await this.#recover(row)) === 0) return taken;
    return this.#ask(row, settings);
  }

  async #ask(row: ClaimRow, { takes, id }: ClaimSettings): Promise<Claimed | undefined> {
    for (;;) {
      const { allowed } = this.#context.suspects;
      if (!allowed) return undefined;
      const worker = await row.membership.join();
      if (allowed.alone) this.#context.suspects.noteAsked();
      const { known, tasks, nextDueIn, expired } = await this.#asking.ask((store) =>
        store.claim({
          ...takes,
          ...(id !== undefined && { only: [id] }),
          worker,
          limit: 1,
          ...allowed,
          except: this.#context.ownHandlers.withoutLease,
        }),
      );
      if (!known) row.membership.forget(worker);
      const { definitions, configuration, suspects, ownHandlers } = this.#context;
      await settleRecovered(expired, this.#recoveryBy(row));
      // More tasks are due than one claim makes ready.
      const again = !known || (tasks.length === 0 && nextDueIn === 0);
      const [task] = tasks;
      if (task && (await this.#endWithoutStart(row, task))) continue;
      const policy = task && policyForRecovered(task, definitions, configuration);
      if (task && policy) {
        const refusal = ownHandlers.abortEarlier(task.lease)
          ? STILL_RUNS
          : suspects.mayBegin(task, policy)
            ? undefined
            : AWAITS_EMPTY;
        if (refusal) {
          await row.settler.settle(task, policy, { outcome: refusal, ranFor: 0 });
          return undefined;
        }
      }
      if (!again) return task;
    }
  }

  /**
   * Settles a task that must not start: its attempts are used up, or its row is damaged and a person is asked. Returns whether it
   * was such a task.
   */
  async #endWithoutStart(row: ClaimRow, task: Claimed): Promise<boolean> {
    const { definitions, configuration } = this.#context;
    const outcome = this.#outcomeWithoutStart(task);
    if (!outcome) return false;
    const policy = policyForRecovered(task, definitions, configuration);
    await row.settler.settle(task, policy, { outcome, ranFor: 0 });
    return true;
  }

  #outcomeWithoutStart(task: Claimed): Outcome | undefined {
    const { verdict } = task.facts;
    if (verdict !== undefined) return { kind: 'verdict', reason: verdict };
    try {
      intactPayload(task);
      return undefined;
    } catch (error) {
      return this.#outcomeOf(error, { now: this.#context.world.clock.now(), type: task.type });
    }
  }

  async #recover(row: ClaimRow): Promise<number> {
    const worker = await row.membership.join();
    const { count } = await recover(worker, this.#recoveryBy(row));
    this.#recoveredAt = this.#now();
    return count;
  }

  #recoveryBy({ settler }: ClaimRow): RecoveryOptions {
    const { definitions, configuration, suspects, world } = this.#context;
    const shared = { definitions, configuration, suspects, clock: world.clock, log: this.#log };
    return { ...shared, asking: this.#asking, settler, onEnded: this.#cleanUp };
  }

  /** Only `close` waits for this. */
  readonly #cleanUp = (definition: AnyTask, lost: Recovered): void => {
    const cleaning = cleanUp(definition, lost, this.#log).finally(() => this.#cleaning.delete(cleaning));
    this.#cleaning.add(cleaning);
  };

  async #hold(row: ClaimRow, taken: Claimed): Promise<ManualClaim> {
    const { store, world, definitions, configuration, sizeLimit, suspects, telemetry } = this.#context;
    const { type } = taken;
    const published = definitions.has(type) ? undefined : await store.records.published(type);
    const claimed = claimedAsPublished(definitionForRecovered({ type, published }, definitions), published, taken);
    const known = { ...claimed, ...(published !== undefined && { published }) };
    const policyNow = () => policyForRecovered(known, definitions, configuration);
    const policy = policyNow();
    await this.#storeIdempotence(row, claimed, policy);
    const claim = new ManualClaim(claimed, policy, {
      clock: world.clock,
      leaseFor: row.leaseFor,
      sizeLimit,
      settle: (settled, ending) => row.settler.settle(settled, policyNow(), ending),
      outcomeOf: this.#outcomeOf,
      renew: (lease) => this.#renew(row, lease),
      save: (lease, saved) => this.#asking.ask((tasks) => tasks.save(lease, saved)),
      onProgress: (event) => row.announcer.tell(event),
      letGo: (it, reported) => {
        if (!this.#open.delete(it)) return;
        telemetry?.claimEnded(claimed);
        suspects.end(claimed, reported);
        this.#release(row);
      },
      trouble: ({ id }, error) => {
        if (!(error instanceof StoreError || error instanceof ClosedError)) return;
        this.#log.warn({ err: error, task: id }, 'A claim could not be handed back; its lease runs out by itself');
      },
    });
    if (this.#closed) {
      await claim.release({ begun: false });
      throw new ClosedError('Holdfast');
    }
    this.#open.add(claim);
    suspects.begin(claimed, () => claim.isHeld);
    row.announcer.tell({ kind: 'started', task: claimed, policy });
    return claim;
  }

  /**
   * If only the definition says that the task must not run twice, this is stored before the work begins. If that fails, the task
   * is handed back.
   */
  async #storeIdempotence({ settler }: ClaimRow, claimed: Claimed, policy: Policy): Promise<void> {
    try {
      await storeIdempotence(this.#asking, [claimed]);
    } catch (error) {
      const message = 'It could not be stored that it must not run twice.';
      const outcome = { kind: 'interruption', started: false, message } as const;
      await settler.settle(claimed, policy, { outcome, ranFor: 0 }).catch(() => {});
      throw error;
    }
  }

  async #renew(row: ClaimRow, lease: Lease): Promise<ClaimStatus> {
    const worker = row.membership.id;
    if (worker === undefined) return 'lost';
    const { known, lost, cancelled } = await this.#asking.ask((tasks) => tasks.renew(worker, [lease]));
    if (!known) row.membership.forget(worker);
    if (!known || lost.length > 0) return 'lost';
    return cancelled.length > 0 ? 'cancel_requested' : 'valid';
  }

  /** A free row for claims like this one, or a new one. Rows that were not used for the length of their lease are removed. */
  #rowFor({ name, leaseFor, takes, id }: ClaimSettings): ClaimRow {
    const now = this.#now();
    // A claim of one task by id takes nothing else, so its row is not reused.
    const shown = id === undefined ? takes : { ...takes, types: [] };
    const key = JSON.stringify([name, leaseFor, shown]);
    const at = this.#free.findLastIndex((row) => row.key === key);
    const [row = this.#newRow(key, name, leaseFor, shown)] = at < 0 ? [] : this.#free.splice(at, 1);
    for (const unused of this.#free.filter((one) => now - one.usedAt >= one.leaseFor)) {
      this.#free.splice(this.#free.indexOf(unused), 1);
      this.#rows.delete(unused);
      void unused.membership.leave();
    }
    return row;
  }

  #release(row: ClaimRow): void {
    row.usedAt = this.#now();
    this.#free.push(row);
  }

  #newRow(key: string, name: string, leaseFor: Milliseconds, takes: Takes): ClaimRow {
    const { world, definitions, configuration, telemetry, knownSources: sources } = this.#context;
    const announcer = new Announcer(name, this.#log, (event) => telemetry && tellTelemetry(telemetry, event, name));
    const settler = new Settler({
      asking: this.#asking,
      world,
      log: this.#log,
      announcer,
      sources,
      retries: this.#retries,
    });
    // If a write fails, the caller gets the error. It is not repeated in the background.
    settler.giveUp();
    const membership = new Membership({
      asking: this.#asking,
      clock: world.clock,
      log: this.#log,
      name,
      leaseFor,
      takes,
      // A claim that is not renewed ends with its lease.
      mayRunFor: () => 0,
      publishes: () => publications(definitions.values(), configuration),
      held: () => [],
      claimingFor: () => 0,
      mayBeCutOff: false,
      isIdle: () => false,
      inBackground: (beat) => beat,
      onJoined() {},
      afterBeat() {},
    });
    const row = { key, membership, announcer, settler, leaseFor, usedAt: this.#now() };
    this.#rows.add(row);
    return row;
  }

  #now(): Milliseconds {
    return this.#context.world.clock.monotonic();
  }
}
