import { type AttentionKind, SIGN_OF_ATTENTION } from '../../src/views/attention-signs.ts';
import { GLYPHS, type ShownState, signOf, stateWords } from '../../src/views/glyphs.ts';
import { counted } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import { addressOf } from '../data/address.ts';
import type { StatusDocument } from '../data/documents.ts';
import { status } from '../data/status.ts';
import { useDocument } from '../data/use-document.ts';
import { Copy } from '../parts/copy.tsx';
import { Page, Section } from '../parts/page.tsx';
import { BarPlot, type Bin, hourWords } from '../parts/plot.tsx';
import { Sign } from '../parts/sign.tsx';
import { Empty } from '../parts/states.tsx';
import { Since, Time } from '../parts/time.tsx';

interface Stats {
  readonly since: string | null;
  readonly total: {
    readonly executions: number;
    readonly successes: number;
    readonly failures: number;
    readonly retries: { readonly total: number; readonly successful: number };
    readonly ended: { readonly dead: number; readonly needs_manual: number; readonly cancelled: number };
    readonly wasted_executions: number;
  };
  readonly bins?: readonly {
    readonly at: string;
    readonly successes: number;
    readonly failures: number;
    readonly ended: { readonly dead: number; readonly needs_manual: number };
  }[];
}

interface Forecast {
  /** `unread`: of so many it was not read whether they are retries. */
  readonly bins: readonly {
    readonly at: string;
    readonly count: number;
    readonly first: number;
    readonly retries: number;
    readonly unread: number;
  }[];
}

/** Statistics of a day change slowly. */
const HALF_MINUTE = 30_000;

/** Is anything wrong, and what should I do first? */
export function OverviewPage() {
  const known = status.value;
  const stats = useDocument<Stats>('stats?since=24h&bin=30m', undefined, HALF_MINUTE).document;
  return (
    <Page title="Overview">
      {known === undefined ? <p class="loading">Loading …</p> : <Attention status={known} stats={stats} />}
      {stats && <Figures stats={stats} />}
      {stats?.bins && stats.bins.length > 0 && <Attempts bins={stats.bins} />}
      <div class="columns">
        <NextHour />
        {known && <Now status={known} />}
      </div>
    </Page>
  );
}

function Attention({
  status: { attention, by_state: byState },
  stats,
}: {
  readonly status: StatusDocument;
  readonly stats: Stats | undefined;
}) {
  const isNew = Object.values(byState).every((count) => count === 0);
  if (isNew) {
    return (
      <Empty title="There is no task yet.">
        <p>A program records tasks with enqueue. From the command line:</p>
        <p>
          <code>holdfast run -- rsync -a photos/ nas:photos/</code>
        </p>
      </Empty>
    );
  }
  if (attention.length === 0) return <AllClear stats={stats} />;
  return (
    <Section title={`Needs attention (${attention.length})`}>
      <ol class="attention">
        {attention.map((item, i) => {
          const { text, style } = signOf(SIGN_OF_ATTENTION[item.kind as AttentionKind] ?? 'held');
          const [title, to] = pageFor(item);
          return (
            <li key={`${item.kind} ${item.reason} ${i}`}>
              <Sign glyph={text} style={style} words={KINDS[item.kind as AttentionKind] ?? item.kind} />
              <span class="attention-text">{item.text}</span>
              <span class="attention-tools">
                <a class="button" href={to}>
                  {title}
                </a>
                <Copy text={item.command} label={`Copy the command: ${item.command}`} />
              </span>
            </li>
          );
        })}
      </ol>
    </Section>
  );
}

const KINDS: Readonly<Record<AttentionKind, string>> = {
  needs_manual: 'person',
  dead: 'dead',
  no_worker: 'no worker',
  lease_lapsed: 'lost worker',
  source_held: 'source held',
  source_needs_person: 'source',
  source_down: 'outage',
  queue_paused: 'paused',
  worker_paused: 'worker',
  policies_differ: 'policies',
  redrive_stopped: 'redrive',
  redrive_paused: 'redrive',
  clock: 'clock',
  config_refused: 'config',
};

/** Where somebody goes on: what the link says, and where it leads. */
function pageFor({ kind, reason }: StatusDocument['attention'][number]): readonly [title: string, to: string] {
  switch (kind as AttentionKind) {
    case 'needs_manual':
      return ['Open inbox', 'inbox'];
    case 'dead':
      return [
        'Open tasks',
        addressOf('tasks', { filter: reason === null ? 'state:dead' : `state:dead reason:${reason}` }),
      ];
    case 'lease_lapsed':
      return ['Open tasks', addressOf('tasks', { filter: 'state:running' })];
    case 'source_held':
    case 'source_needs_person':
    case 'source_down':
      return ['Open sources', 'sources'];
    case 'queue_paused':
      return ['Open queues', 'queues'];
    case 'redrive_stopped':
    case 'redrive_paused':
      return ['Open redrives', 'redrives'];
    case 'policies_differ':
    case 'config_refused':
      return ['Open policies', 'policies'];
    default:
      return ['Open workers', 'workers'];
  }
}

function AllClear({ stats }: { readonly stats: Stats | undefined }) {
  return (
    <section class="card all-clear" aria-label="Attention">
      <Sign glyph={GLYPHS.succeeded} style="ok" words="All clear" />
      <p>{stats ? clearWords(stats) : 'Nothing needs attention.'}</p>
    </section>
  );
}

function clearWords({ total }: Stats): string {
  const ended = total.successes + total.ended.dead + total.ended.needs_manual;
  if (ended === 0) return 'Nothing needs attention. No task ended in 24 h.';
  return `${counted(ended, 'task', 'tasks')} ended in 24 h, ${percent(total.successes, ended)} of them well; ${total.retries.successful.toLocaleString()} by a retry.`;
}

function Figures({ stats: { total } }: { readonly stats: Stats }) {
  const ended = total.successes + total.ended.dead + total.ended.needs_manual;
  return (
    <dl class="figures" aria-label="The last 24 hours">
      <Figure
        name="Success after retries"
        value={percent(total.successes, ended)}
        more={`of ${counted(ended, 'task', 'tasks')} in 24 h`}
      />
      <Figure
        name="Retries that helped"
        value={percent(total.retries.successful, total.retries.total)}
        more={`of ${counted(total.retries.total, 'retry', 'retries')}`}
      />
      <Figure
        name="Wasted attempts"
        value={percent(total.wasted_executions, total.executions)}
        more={`${total.wasted_executions.toLocaleString()} on tasks that ended badly`}
      />
      <Figure
        name="Ended badly"
        value={(total.ended.dead + total.ended.needs_manual).toLocaleString()}
        more={`${total.ended.dead.toLocaleString()} dead, ${counted(total.ended.needs_manual, 'needs', 'need')} a person`}
      />
    </dl>
  );
}

function Figure({ name, value, more }: { readonly name: string; readonly value: string; readonly more: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        {value}
        <div class="small">{more}</div>
      </dd>
    </div>
  );
}

function percent(part: number, whole: number): string {
  if (whole === 0) return '—';
  const share = (part / whole) * 100;
  // Ninety-nine and more are told apart.
  return `${share > 99 && share < 100 ? (Math.floor(share * 100) / 100).toFixed(2) : share.toFixed(share < 10 && share > 0 ? 1 : 0)} %`;
}

const OUTCOMES = [
  { id: 'ok', title: 'succeeded', style: 'ok' },
  { id: 'failed', title: 'failed, to be retried', style: 'waiting', texture: 'outline' },
  { id: 'ended', title: 'failed for good', style: 'dead' },
] as const;

function Attempts({ bins }: { readonly bins: NonNullable<Stats['bins']> }) {
  const shown: readonly Bin[] = ofWholeDay(bins).map(({ at, successes, failures, ended }) => {
    const bad = ended.dead + ended.needs_manual;
    return { at, counts: { ok: successes, failed: Math.max(0, failures - bad), ended: bad } };
  });
  const failures = bins.reduce((sum, bin) => sum + bin.failures, 0);
  const all = failures + bins.reduce((sum, bin) => sum + bin.successes, 0);
  const worst = bins.reduce((most, bin) => (bin.failures > most.failures ? bin : most));
  const peak = worst.failures > 0 ? `; most failed at ${hourWords(Date.parse(worst.at))}: ${worst.failures}` : '';
  return (
    <Section title="Attempts in 24 hours">
      <BarPlot
        title="Attempts in 24 hours"
        summary={`${counted(all, 'attempt', 'attempts')}, ${failures.toLocaleString()} failed${peak}.`}
        series={OUTCOMES}
        bins={shown}
      />
    </Section>
  );
}

/** Also the spans before the first that was counted, so that a young store has bars of the same width. */
function ofWholeDay(bins: NonNullable<Stats['bins']>): NonNullable<Stats['bins']> {
  const [first, second] = bins;
  if (!first) return bins;
  const span = second ? Date.parse(second.at) - Date.parse(first.at) : HALF_HOUR;
  const missing = Math.max(0, Math.floor(DAY / span) - bins.length);
  const empty = Array.from({ length: missing }, (_, i) => ({
    at: new Date(Date.parse(first.at) - (missing - i) * span).toISOString(),
    successes: 0,
    failures: 0,
    ended: { dead: 0, needs_manual: 0 },
  }));
  return [...empty, ...bins];
}

const HALF_HOUR = 1_800_000;
const DAY = 48 * HALF_HOUR;

const DUE = [
  { id: 'retries', title: 'retries', style: 'waiting' },
  { id: 'first', title: 'others', style: 'idle', texture: 'outline' },
] as const;

/** What is due in the next hour. */
function NextHour() {
  const { document } = useDocument<Forecast>('forecast?within=1h', undefined, HALF_MINUTE);
  if (!document) return null;
  const bins = document.bins.map(({ at, first, retries, unread }) => ({
    at,
    counts: { retries, first: first + unread },
  }));
  const sum = (id: 'retries' | 'first') => bins.reduce((all, { counts }) => all + counts[id], 0);
  const [retries, first] = [sum('retries'), sum('first')];
  const most = bins.reduce((top, bin) => Math.max(top, bin.counts.retries + bin.counts.first), 0);
  const summary =
    retries + first === 0
      ? 'Nothing is due in the next hour.'
      : `${counted(retries, 'retry', 'retries')} and ${counted(first, 'other', 'others')} are due, at most ${most.toLocaleString()} in a minute.`;
  return (
    <Section title="Next hour" aside={<a href="forecast">Forecast</a>}>
      {most === 0 ? (
        <p>{summary}</p>
      ) : (
        <BarPlot title="Due in the next hour" summary={summary} series={DUE} bins={bins} height={130} />
      )}
    </Section>
  );
}

/** States in the order in which they are looked for. */
const SHOWN: readonly ShownState[] = [
  'running',
  'ready',
  'retrying',
  'scheduled',
  'held',
  'needs_manual',
  'dead',
  'succeeded',
  'cancelled',
];

/** `2 need a person`, `1 dead`. */
function stateCountWords(state: ShownState, count: number): string {
  return counted(count, stateWords(state), state === 'needs_manual' ? 'need a person' : stateWords(state));
}

function Now({ status: known }: { readonly status: StatusDocument }) {
  const { by_state: byState, retrying, due, oldest_ready: oldestReady, workers } = known;
  const counts: Readonly<Record<ShownState, number>> = {
    ...byState,
    scheduled: byState.scheduled - retrying,
    retrying,
  };
  const alive = workers.filter((worker) => worker.alive);
  const running = alive.reduce((sum, worker) => sum + worker.running, 0);
  const oldest = oldestReady.toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since))[0];
  return (
    <Section title="Now">
      <ul class="counts">
        {SHOWN.filter((state) => counts[state] > 0).map((state) => {
          const { text, style } = signOf(state);
          const filter = `state:${state === 'retrying' ? 'scheduled' : state}`;
          return (
            <li key={state}>
              <a href={addressOf('tasks', { filter })}>
                <Sign glyph={text} style={style} words={stateCountWords(state, counts[state])} />
              </a>
            </li>
          );
        })}
      </ul>
      <p>
        {due === 0 ? 'Nothing is due' : `${due.toLocaleString()} due`}
        {oldest && (
          <>
            , the oldest ready task waits for <Since at={oldest.since} /> in the queue {visible(oldest.queue)}
          </>
        )}
        {due === 0 && known.next_due_at && (
          <>
            ; the next task <Time at={known.next_due_at} />
          </>
        )}
        .
      </p>
      <p>
        <a href="workers">
          {alive.length === 0 ? 'No worker runs' : counted(alive.length, 'worker runs', 'workers run')}
        </a>
        {alive.length > 0 && `: ${counted(running, 'task', 'tasks')} at this moment`}.
      </p>
    </Section>
  );
}
