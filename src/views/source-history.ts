import { formatDuration } from '../duration.ts';
import type { RecordedCondition } from '../source/condition.ts';
import type { ChangeRecord } from '../store/changes.ts';
import { plural } from './plural.ts';
import { limitWords } from './source-state.ts';
import { clockTime, lasting, rfc3339 } from './times.ts';
import { shortened, visible } from './visible.ts';

/** `held`: by an operator, whatever else is the case. */
type PastCondition = 'held' | 'needs_person' | 'down' | 'waits' | 'ramping';

/** A time in which a source was not in its normal state. */
export interface Span {
  readonly from: number;
  /** Undefined: it is so now. */
  readonly to: number | undefined;
  readonly condition: PastCondition;
}

/** A time from the first failure that held a source until it was in its normal state again. */
export interface Outage {
  readonly from: number;
  readonly to: number | undefined;
  /** The worst that happened in it. */
  readonly condition: Exclude<PastCondition, 'held' | 'ramping'>;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  /** Attempts that were given back to their tasks. */
  readonly refunded: number;
}

export interface SourceHistory {
  readonly spans: readonly Span[];
  readonly outages: readonly Outage[];
}

/** The present of a source, for what began before its first known change. */
export interface Present {
  /** It is not in its normal state since then. */
  readonly since?: number;
  readonly condition?: Exclude<PastCondition, 'held'>;
  readonly heldSince?: number;
}

/** What one source went through since a time, from its changes, oldest first. */
export function sourceHistory(
  changes: readonly ChangeRecord[],
  present: Present,
  { since, now }: { readonly since: number; readonly now: number },
): SourceHistory {
  const spans = [...conditionSpans(changes, present, since, now), ...holdSpans(changes, present, since, now)]
    .filter(({ from, to }) => (to ?? now) > from || to === undefined)
    .sort((a, b) => a.from - b.from);
  return { spans, outages: outagesOf(changes, present, now) };
}

function conditionSpans(changes: readonly ChangeRecord[], present: Present, since: number, now: number): Span[] {
  const turns = changes.filter(({ to }) => to !== undefined);
  const [first] = turns;
  if (!first) {
    const { condition, since: from } = present;
    return condition && from !== undefined ? [{ from: Math.max(from, since), to: undefined, condition }] : [];
  }
  // What it was before is not among the changes, but follows from the first of them.
  const before = first.to === 'normal' ? 'ramping' : first.to === 'ramping' ? 'down' : undefined;
  const spans: Span[] = before ? [{ from: since, to: first.at, condition: before }] : [];
  turns.forEach(({ at, to, heldForMs }, i) => {
    if (to === undefined || to === 'normal') return;
    const next = turns[i + 1]?.at;
    const waitEnds = to === 'waits' && heldForMs !== undefined ? at + heldForMs : undefined;
    if (waitEnds === undefined || waitEnds >= (next ?? now)) spans.push({ from: at, to: next, condition: to });
    else spans.push({ from: at, to: waitEnds, condition: 'waits' }, { from: waitEnds, to: next, condition: 'ramping' });
  });
  return present.condition === undefined ? closed(spans, now) : spans;
}

/** The source is in its normal state, and the change that says so is not written yet. */
function closed<Part extends { readonly to: number | undefined }>(parts: readonly Part[], now: number): Part[] {
  return parts.map((part) => ({ ...part, to: part.to ?? now }));
}

function holdSpans(changes: readonly ChangeRecord[], { heldSince }: Present, since: number, now: number): Span[] {
  const spans: Span[] = [];
  let held: { from: number; ends: number | undefined } | undefined;
  const end = (at: number) => {
    if (held) spans.push({ from: held.from, to: Math.min(at, held.ends ?? at), condition: 'held' });
    held = undefined;
  };
  for (const { at, change, heldForMs } of changes) {
    const ends = heldForMs === undefined ? undefined : at + heldForMs;
    if (change === 'hold') {
      if (held?.ends !== undefined && held.ends <= at) end(at);
      held = { from: held?.from ?? at, ends };
    }
    if (change === 'release') end(at);
  }
  if (held?.ends !== undefined && held.ends <= now) end(now);
  if (held) spans.push({ from: held.from, to: undefined, condition: 'held' });
  else if (heldSince !== undefined) spans.push({ from: Math.max(heldSince, since), to: undefined, condition: 'held' });
  return spans;
}

const WORST = ['waits', 'down', 'needs_person'] as const;

function outagesOf(changes: readonly ChangeRecord[], present: Present, now: number): Outage[] {
  const outages: Outage[] = [];
  let open: Outage | undefined;
  for (const { at, to, reason, message, refunded = 0 } of changes) {
    if (to === undefined) continue;
    if (to === 'normal') {
      if (open) outages.push({ ...open, to: at });
      open = undefined;
      continue;
    }
    const condition = WORST.find((each) => each === to);
    if (open === undefined) {
      if (condition) open = { from: at, to: undefined, condition, reason, message, refunded };
      continue;
    }
    const worse = condition && WORST.indexOf(condition) > WORST.indexOf(open.condition);
    open = {
      ...open,
      ...(worse && { condition, reason, message }),
      refunded: open.refunded + refunded,
    };
  }
  if (open) outages.push(open);
  return present.condition === undefined ? closed(outages, now) : outages;
}

/** `14:02:11 to 14:33:12 (31m): down, http.503 (Service Unavailable), 3 attempts given back`. Safe to print. */
export function outageWords({ from, to, condition, reason, message, refunded }: Outage, now: number): string {
  const ends =
    to === undefined ? `until now (${lasting(from, now)})` : `to ${clockTime(to, now)} (${lasting(from, to)})`;
  const what = { down: 'down', waits: 'asked to wait', needs_person: 'needed a person' }[condition];
  const why = reason === undefined ? '' : `: ${reason}${message ? ` (${visible(message)})` : ''}`;
  const given = refunded > 0 ? `, ${plural(refunded, 'attempt', 'attempts')} given back` : '';
  return `${clockTime(from, now)} ${ends} ${what}${why}${given}`;
}

/** `held for 2h by eva: the host moves`, `down for 22s: http.503: Service Unavailable, 3 attempts given back`. Safe to print. */
export function changeWords(record: ChangeRecord): string {
  const { change, heldForMs, limits, by, to } = record;
  const who = by ? ` by ${visible(by.actor)}${by.note === undefined ? '' : `: ${shortened(visible(by.note))}`}` : '';
  switch (change) {
    case 'condition':
      return to === undefined ? '' : conditionWords(to, record);
    case 'hold':
      return `held${heldForMs === undefined ? '' : ` for ${formatDuration(heldForMs)}`}${who}`;
    case 'limit': {
      const { pace, concurrency } = limits ?? {};
      const words = limitWords({ ...(pace && { pace }), ...(concurrency && { concurrency }) });
      return `${words === '' ? 'limits removed' : `limited to ${words}`}${who}`;
    }
    case 'release':
      return `released${who}`;
    case 'probe':
      return `probed${who}`;
    case 'pause':
      return `paused${who}`;
    case 'resume':
      return `resumed${who}`;
  }
}

function conditionWords(to: RecordedCondition, change: ChangeRecord): string {
  const { heldForMs, reason, message, refunded = 0 } = change;
  const time = heldForMs === undefined || to === 'needs_person' ? '' : ` for ${formatDuration(heldForMs)}`;
  const why = [reason, message].flatMap((part) => (part ? [visible(part)] : [])).join(': ');
  const cause = why === '' || to === 'normal' || to === 'ramping' ? '' : `: ${shortened(why)}`;
  const given = refunded > 0 ? `, ${plural(refunded, 'attempt', 'attempts')} given back` : '';
  return `${CONDITION_WORDS[to]}${time}${cause}${given}`;
}

const CONDITION_WORDS: Readonly<Record<RecordedCondition, string>> = {
  normal: 'in its normal state again',
  down: 'down',
  waits: 'asked to wait',
  ramping: 'works again, and its tasks are released slowly',
  needs_person: 'needs a person',
};

export function spanJson({ from, to, condition }: Span): object {
  return { from: rfc3339(from), to: rfc3339(to), condition };
}

export function outageJson({ from, to, condition, reason, message, refunded }: Outage): object {
  return {
    from: rfc3339(from),
    to: rfc3339(to),
    condition,
    reason: reason ?? null,
    message: message ?? null,
    refunded,
  };
}

export function changeJson(change: ChangeRecord) {
  const { id, at, kind, name, change: what, to, reason, message, refunded, heldForMs, by } = change;
  return {
    id,
    at: rfc3339(at),
    kind,
    name,
    change: what,
    to: to ?? null,
    reason: reason ?? null,
    message: message ?? null,
    refunded: refunded ?? 0,
    held_for_ms: heldForMs ?? null,
    actor: by?.actor ?? null,
    note: by?.note ?? null,
    limits: changedLimits(change),
  };
}

/** The limits that a change set: null removes one. Null if it set none. */
export function changedLimits({ limits }: ChangeRecord): object | null {
  if (!limits) return null;
  const { pace, concurrency } = limits;
  return {
    ...(pace !== undefined && { per_second: pace?.perSecond ?? null }),
    ...(concurrency !== undefined && { concurrency }),
  };
}
