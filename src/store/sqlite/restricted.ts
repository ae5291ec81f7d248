import { FULL, PER_SUCCESS, REFILL_EVERY, tokensAfter, untilToken } from '../../budget.ts';
import type { Pace } from '../../pace.ts';
import { nextStartAfter, PROBE_HOLDS_FOR, startsAllowed, stricter, underPace } from '../../starts.ts';
import type { HeldBy, RestrictionCause } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import type { Sql } from './driver.ts';
import { isUnbound, type Lanes, TRACK, UNRESTRICTED } from './lanes.ts';

/** Everything that restricts a source. */
interface Rules {
  readonly held: number;
  readonly held_until: number | null;
  readonly revision: number | null;
  readonly cause: RestrictionCause | null;
  readonly shut_until: number | null;
  readonly until_released: number | null;
  readonly probing: number | null;
  readonly per_second: number | null;
  readonly burst: number | null;
  readonly ramping: number | null;
  readonly limit_per_second: number | null;
  readonly limit_burst: number | null;
  readonly concurrency: number | null;
  readonly tokens: number | null;
  readonly counted_at: number | null;
  readonly next_start: number | null;
  readonly backlog_next: number | null;
}

/** What a source may start now, and when this changes by itself. */
interface StartCheck {
  /** Why none of its tasks may start. */
  readonly heldBy: HeldBy | null;
  readonly noToken: boolean;
  readonly opensAt: number | null;
}

/** How many tasks one claim may still take from a source. */
export interface Allowance {
  readonly source: string;
  starts: number;
  tokens: number;
  /** Whether its lanes of tasks that need a token are not active. */
  noToken: boolean;
  readonly ramping: boolean;
  /** While it ramps: whether the next start is for the backlog. */
  backlogNext: boolean;
}

/** A leased task: the values that its source's limits need. */
interface Started {
  readonly id: number;
  readonly source: string;
  readonly needsToken: boolean;
}

/** How many sources one claim opens, so that no call waits long if very many open at the same time. */
const MOST_OPENED = 200;

const NOT_ENDING = Number.MAX_SAFE_INTEGER;

const NO_PROBES: ReadonlySet<number> = new Set();

/**
 * The sources with a hold, a restriction, a limit, or a budget that is not full: what they may start, and which of their lanes
 * are active. Their rows in `hf_restricted` are written only here.
 */
export class Restricted {
  readonly #sql: Sql;
  readonly #lanes: Lanes;
  readonly #catalogue: Catalogue;
  /** Whether the present claim has opened a restricted source, or started a task of one. */
  #touched = false;
  /** The sources that the present claim has read; undefined for a source that is not restricted. */
  readonly #allowances = new Map<string, Allowance | undefined>();
  #now = 0;
  /** Changes of sources since the last call, except those by claims. */
  #news = new Set<'work' | 'recall'>();

  constructor(sql: Sql, lanes: Lanes, catalogue: Catalogue) {
    this.#catalogue = catalogue;
    this.#sql = sql;
    this.#lanes = lanes;
  }

  /** Whether any source or queue may be restricted. */
  get any(): boolean {
    return this.#catalogue.restrictions;
  }

  /** Whether the present claim may have changed when a source opens. */
  get touched(): boolean {
    return this.#touched;
  }

  /** Called before a read outside of a transaction: other processes may have restricted a source. */
  look(): void {
    this.#catalogue.lookForRestrictions();
  }

  // ── Claims ──

  /** Begins a claim: opens the sources that are due, if `isDue`. `more`: there may be more of them than one claim opens. */
  begin(now: number, isDue: boolean): { readonly more: boolean } {
    this.#allowances.clear();
    this.#now = now;
    this.#touched = false;
    if (!isDue) return { more: false };
    const due = this.#sql.column<string>(
      'SELECT source FROM hf_restricted WHERE opens_at <= ? ORDER BY opens_at LIMIT ?',
      now,
      MOST_OPENED,
    );
    for (const source of due) this.#refresh(source, now);
    this.#touched = due.length > 0;
    return { more: due.length === MOST_OPENED };
  }

  /** How many tasks may still be taken from a source; undefined if it is not restricted. */
  allowanceOf(source: string, track: number): Allowance | undefined {
    if (track !== TRACK.token && this.#catalogue.isFree(source)) return undefined;
    if (this.#allowances.has(source)) {
      const known = this.#allowances.get(source);
      if (known || track !== TRACK.token) return known;
    }
    const allowance = this.#lookUp(source, track);
    this.#allowances.set(source, allowance);
    return allowance;
  }

  /** A claim takes this many tasks of a source. */
  take(allowance: Allowance, count: number, track: number): void {
    allowance.starts -= count;
    if (track === TRACK.token) allowance.tokens -= count;
    if (allowance.ramping) allowance.backlogNext = track === TRACK.new;
  }

  /** If no more tasks of a source, or none that need a token, may be taken, their lanes are deactivated. */
  deactivateIfUsedUp(allowance: Allowance): 'open' | 'no_token' | 'held' {
    if (allowance.starts < 1) {
      // The real cause is written at the end of the claim.
      this.#write(allowance.source, { heldBy: 'pace', noToken: false, opensAt: null }, allowance);
      return 'held';
    }
    if (allowance.tokens >= 1 || allowance.noToken) return 'open';
    allowance.noToken = true;
    this.#write(allowance.source, { heldBy: null, noToken: true, opensAt: null }, allowance);
    return 'no_token';
  }

  /** Whether no task of a source may be claimed ahead. */
  forbidsAhead(source: string, track: number): boolean {
    return !isUnbound(track) || !this.#catalogue.isFree(source);
  }

  /** Counts leased tasks against the limits of their sources, and returns which of them are probes. */
  started(tasks: readonly Started[], now: number): ReadonlySet<number> {
    if (this.#allowances.size === 0 && !tasks.some(({ needsToken }) => needsToken)) return NO_PROBES;
    const bySource = new Map<string, Started[]>();
    for (const [source, allowance] of this.#allowances) if (allowance) bySource.set(source, []);
    for (const task of tasks) {
      const known = bySource.get(task.source);
      if (known) known.push(task);
      else if (task.needsToken) bySource.set(task.source, [task]);
    }
    const probes = new Set<number>();
    this.#touched ||= bySource.size > 0;
    for (const [source, started] of bySource) {
      for (const id of this.#count(source, started, now)) probes.add(id);
      this.#refresh(source, now);
    }
    this.#allowances.clear();
    return probes;
  }

  #count(source: string, started: readonly Started[], now: number): readonly number[] {
    if (started.length === 0) return [];
    const rules = this.#rulesOf(source);
    const backlogNext = this.#allowances.get(source)?.backlogNext;
    const pace = paceOf(rules);
    const next_start = pace ? nextStartAfter(pace, rules.next_start, started.length, now) : rules.next_start;
    this.#sql.run(
      'UPDATE hf_restricted SET next_start = ?, backlog_next = ? WHERE source = ?',
      next_start,
      backlogNext ? 1 : 0,
      source,
    );
    const taken = started.filter(({ needsToken }) => needsToken).length;
    if (taken > 0) this.#setTokens(source, Math.max(0, tokensOf(rules, now) - taken), now);
    const ids = JSON.stringify(started.map(({ id }) => id));
    const probing = rules.probing === 1;
    if (probing || rules.concurrency !== null) {
      this.#sql.run(
        'UPDATE hf_running SET limited_source = ?, probe = ? WHERE id IN (SELECT value FROM json_each(?))',
        source,
        probing ? 1 : 0,
        ids,
      );
    }
    return probing ? started.map(({ id }) => id) : [];
  }

  #lookUp(source: string, track: number): Allowance | undefined {
    const isRestricted = this.#sql.get('SELECT 1 FROM hf_restricted WHERE source = ?', source) !== undefined;
    if (!isRestricted && track !== TRACK.token) return undefined;
    const rules = this.#rulesOf(source);
    const tokens = Math.floor(tokensOf(rules, this.#now));
    return {
      source,
      starts: this.#startsOf(source, rules),
      tokens,
      noToken: tokens < 1,
      ramping: rules.ramping === 1,
      backlogNext: rules.backlog_next === 1,
    };
  }

  #startsOf(source: string, rules: Rules): number {
    if (this.#check(source, rules, this.#now).heldBy !== null) return 0;
    const pace = paceOf(rules);
    return Math.min(
      rules.probing === 1 ? 1 : Number.POSITIVE_INFINITY,
      pace ? startsAllowed(pace, rules.next_start, this.#now) : Number.POSITIVE_INFINITY,
      rules.concurrency === null ? Number.POSITIVE_INFINITY : rules.concurrency - this.#runningOf(source),
    );
  }

  // ── Settlements ──

  /**
   * The sources whose limits count any of these running tasks, and whether limits of queues do. When the tasks have ended, others
   * may start. `ids` is JSON.
   */
  countedBy(ids: string): { readonly sources: ReadonlySet<string>; readonly queues: boolean } {
    const rows = this.#sql.rows<[source: string | null, queue: number | null]>(
      `SELECT limited_source, limited_queue FROM hf_running
       WHERE id IN (SELECT value FROM json_each(?)) AND (limited_source IS NOT NULL OR limited_queue IS NOT NULL)`,
      ids,
    );
    return {
      sources: new Set(rows.flatMap(([source]) => source ?? [])),
      queues: rows.some(([, queue]) => queue !== null),
    };
  }

  /** Adds the tokens of successes to the budgets of their sources; `ids` is JSON. */
  addSuccesses(ids: string, now: number): void {
    if (!this.#catalogue.restrictions || !this.#sql.get('SELECT 1 FROM hf_budgets LIMIT 1')) return;
    const rows = this.#sql.rows<[source: string, count: number]>(
      `SELECT t.source, count(*) FROM json_each(?) j JOIN hf_tasks t ON t.id = j.value
       WHERE t.source IN (SELECT source FROM hf_budgets) GROUP BY 1`,
      ids,
    );
    for (const [source, count] of rows) {
      this.addTokens(source, count * PER_SUCCESS, now);
      this.refresh(source, now);
    }
  }

  /** Adds to a budget that is not full. */
  addTokens(source: string, tokens: number, now: number): void {
    const [row] = this.#sql.rows<[tokens: number, countedAt: number]>(
      'SELECT tokens, counted_at FROM hf_budgets WHERE source = ?',
      source,
    );
    if (row) this.#setTokens(source, tokensAfter(row[0], Math.max(0, now - row[1])) + tokens, now);
  }

  /** Removes budgets that are full again, up to a limit, and returns how many. */
  forgetFullBudgets(most: number, now: number): number {
    const before = this.#countBudgets();
    const full = this.#sql.column<string>(
      'SELECT source FROM hf_budgets WHERE tokens + (? - counted_at) * 1.0 / ? >= ? LIMIT ?',
      now,
      REFILL_EVERY,
      FULL,
      most,
    );
    for (const source of full) this.#refresh(source, now);
    return before - this.#countBudgets();
  }

  #countBudgets(): number {
    return this.#sql.column<number>('SELECT count(*) FROM hf_budgets')[0] as number;
  }

  #setTokens(source: string, tokens: number, now: number): void {
    if (tokens >= FULL) {
      this.#sql.run('DELETE FROM hf_budgets WHERE source = ?', source);
      return;
    }
    this.#sql.run(
      `INSERT INTO hf_budgets (source, tokens, counted_at) VALUES (:source, :tokens, :now)
       ON CONFLICT (source) DO UPDATE SET tokens = :tokens, counted_at = :now`,
      { source, tokens, now },
    );
  }

  // ── hf_active ──

  /** Updates `hf_active` and `hf_restricted` after a limit of a source, or what it counts, has changed. */
  refresh(source: string, now: number): void {
    const change = this.#refresh(source, now);
    if (change === 'opened') this.#news.add('work');
    if (change === 'held') this.#news.add('recall');
  }

  /** Whether sources were opened or held since the last call. */
  takeNews(): Iterable<'work' | 'recall'> {
    const news = this.#news;
    if (news.size > 0) this.#news = new Set();
    return news;
  }

  #refresh(source: string, now: number): 'opened' | 'held' | 'same' {
    const ended = this.#sql.run('DELETE FROM hf_sources WHERE name = ? AND until <= ?', source, now).changes > 0;
    const rules = this.#rulesOf(source);
    if (!ended && rules.tokens !== null && tokensOf(rules, now) >= FULL) {
      this.#sql.run('DELETE FROM hf_budgets WHERE source = ?', source);
      return this.#refresh(source, now);
    }
    const before = this.#lanes.laneStateOf(source);
    const check = this.#check(source, rules, now);
    const pace = paceOf(rules);
    const next_start = rules.next_start === null || !pace ? null : underPace(pace, rules.next_start, now);
    if (isRestricted(rules)) {
      this.#write(source, check, {
        ramping: rules.ramping === 1,
        backlogNext: rules.ramping === 1 && rules.backlog_next === 1,
        nextStart: next_start,
      });
    } else {
      this.#lanes.changeLaneState(source, UNRESTRICTED, () =>
        this.#sql.run('DELETE FROM hf_restricted WHERE source = ?', source),
      );
      this.#catalogue.unrestrict();
    }
    const isHeld = check.heldBy !== null;
    if (before.held && !isHeld) return 'opened';
    if (before.noToken && !check.noToken && !isHeld) return 'opened';
    return isHeld && !before.held ? 'held' : 'same';
  }

  #write(
    source: string,
    { heldBy, noToken, opensAt }: StartCheck,
    {
      ramping,
      backlogNext,
      nextStart,
    }: Pick<Allowance, 'ramping' | 'backlogNext'> & { readonly nextStart?: number | null },
  ): void {
    const keeps = nextStart === undefined;
    const isNew = this.#lanes.laneStateOf(source) === UNRESTRICTED;
    this.#lanes.changeLaneState(source, { held: heldBy !== null, noToken, ramping }, () =>
      this.#sql.run(
        `INSERT INTO hf_restricted (source, held_by, no_token, ramping, opens_at, next_start, backlog_next)
         VALUES (:source, :heldBy, :noToken, :ramping, :opensAt, :nextStart, :backlogNext)
         ON CONFLICT (source) DO UPDATE SET held_by = :heldBy, no_token = :noToken, ramping = :ramping, opens_at = :opensAt,
           next_start = iif(:keeps, next_start, :nextStart), backlog_next = :backlogNext`,
        {
          source,
          heldBy,
          opensAt,
          noToken: noToken ? 1 : 0,
          ramping: ramping ? 1 : 0,
          nextStart: nextStart ?? null,
          keeps: keeps ? 1 : 0,
          backlogNext: backlogNext ? 1 : 0,
        },
      ),
    );
    if (isNew) this.#catalogue.restrict();
  }

  /** The first cause that keeps all tasks of a source from starting now. */
  #check(source: string, rules: Rules, now: number): StartCheck {
    const held = (heldBy: HeldBy, opensAt: number | null): StartCheck => ({ heldBy, opensAt, noToken: false });
    if (rules.held === 1) return held('source_held', rules.held_until);
    if (rules.cause !== null) {
      if (rules.until_released === 1) return held(rules.cause, null);
      if (rules.shut_until !== null && rules.shut_until > now) return held(rules.cause, rules.shut_until);
      const nextProbe = rules.probing === 1 ? this.#nextProbeOf(source) : now;
      if (nextProbe > now) return held(rules.cause, nextProbe);
    }
    const pace = paceOf(rules);
    if (pace && rules.next_start !== null) {
      const next = underPace(pace, rules.next_start, now);
      const isLimit = rules.limit_per_second === pace.perSecond || rules.cause === null;
      if (next > now) return held(isLimit ? 'pace' : (rules.cause as HeldBy), Math.min(NOT_ENDING, Math.ceil(next)));
    }
    if (rules.concurrency !== null && this.#runningOf(source) >= rules.concurrency) return held('concurrency', null);
    const tokens = tokensOf(rules, now);
    return { heldBy: null, noToken: tokens < 1, opensAt: tokens < 1 ? now + untilToken(tokens) : null };
  }

  /** When the running probe no longer delays the next one; 0 if none runs. */
  #nextProbeOf(source: string): number {
    const [last] = this.#sql.column<number | null>(
      'SELECT max(started_at) FROM hf_running WHERE limited_source = ? AND probe = 1',
      source,
    );
    return last == null ? 0 : last + PROBE_HOLDS_FOR;
  }

  #runningOf(source: string): number {
    return this.#sql.column<number>('SELECT count(*) FROM hf_running WHERE limited_source = ?', source)[0] as number;
  }

  #rulesOf(source: string): Rules {
    return this.#sql.get<Rules>(RULES, source) as Rules;
  }
}

const RULES = `
  SELECT h.name IS NOT NULL AS held, h.until AS held_until,
    s.revision, s.cause, s.shut_until, s.until_released, s.probing, s.per_second, s.burst, s.ramping,
    p.per_second AS limit_per_second, p.burst AS limit_burst, c.concurrency,
    b.tokens, b.counted_at, r.next_start, r.backlog_next
  FROM (SELECT ? AS name) n
  LEFT JOIN hf_sources h ON h.name = n.name
  LEFT JOIN hf_source_states s ON s.source = n.name AND s.cause IS NOT NULL
  LEFT JOIN hf_source_limits p ON p.source = n.name AND p.kind = 'pace'
  LEFT JOIN hf_source_limits c ON c.source = n.name AND c.kind = 'concurrency'
  LEFT JOIN hf_budgets b ON b.source = n.name
  LEFT JOIN hf_restricted r ON r.source = n.name`;

function isRestricted(rules: Rules): boolean {
  return (
    rules.held === 1 ||
    rules.cause !== null ||
    rules.limit_per_second !== null ||
    rules.concurrency !== null ||
    rules.tokens !== null
  );
}

/** The slower one of the paces of its restriction and its limit. */
function paceOf({ per_second, burst, limit_per_second, limit_burst }: Rules): Pace | undefined {
  return stricter(paceFrom(per_second, burst), paceFrom(limit_per_second, limit_burst));
}

function paceFrom(perSecond: number | null, burst: number | null): Pace | undefined {
  return perSecond === null ? undefined : { perSecond, burst: burst ?? 1 };
}

function tokensOf({ tokens, counted_at }: Rules, now: number): number {
  return tokens === null ? FULL : tokensAfter(tokens, Math.max(0, now - (counted_at ?? now)));
}
