import { useState } from 'preact/hooks';
import { formatDuration } from '../../src/duration.ts';
import { counted } from '../../src/views/plural.ts';
import { clockTime } from '../../src/views/times.ts';
import { visible } from '../../src/views/visible.ts';
import { now } from '../data/clock.ts';
import type { ExecutionJson, ShowDocument } from '../data/documents.ts';
import { isBestFolded, type Run, scaleOf, timelineOf } from '../data/timeline.ts';
import { Section } from '../parts/page.tsx';
import { Plot } from '../parts/plot.tsx';

const MOST = 12;
const ROW = 40;
const BELOW = 24;

/** Each execution on a line of time: when it ran, how it ended, in which range its wait was drawn, and when the next one begins. */
export function TaskTimeline({ document }: { readonly document: ShowDocument }) {
  const [all, setAll] = useState(false);
  const [chosen, setChosen] = useState<boolean>();
  // Only what runs or waits moves with the time.
  const { running, state } = document.task;
  const at = running || state === 'scheduled' ? now.value : Date.now();
  const timeline = timelineOf(document, at, all ? 200 : MOST);
  const { runs, planned, older, begin, end, actions } = timeline;
  if (runs.length === 0 && planned === undefined) return null;
  const folded = chosen ?? isBestFolded(timeline);
  const rows = runs.length + (planned === undefined ? 0 : 1);
  const height = rows * ROW + BELOW;
  const draw = (width: number) => {
    const share = scaleOf(timeline, folded);
    const x = (time: number) => 2 + share(time) * (width - 4);
    return (
      <>
        {actions.map(({ at: time, words }) => (
          <g key={`${time} ${words}`} class="timeline-action">
            <title>{`${visible(words)}, ${clockTime(time, at)}`}</title>
            <line x1={x(time)} x2={x(time)} y1={0} y2={height - BELOW} />
          </g>
        ))}
        {/* Behind the labels, which it would cross. */}
        {x(at) < width - 2 && (
          <g class="timeline-now">
            <line x1={x(at)} x2={x(at)} y1={18} y2={height - BELOW} />
            <text class="tick" x={x(at)} y={height - 8} text-anchor="middle">
              now
            </text>
          </g>
        )}
        {runs.map((run, i) => (
          <RunRow key={run.execution} {...{ run, x, width }} y={i * ROW} next={runs[i + 1]?.from ?? planned} />
        ))}
        {planned !== undefined && (
          <PlannedRow {...{ planned, x, width, at }} y={runs.length * ROW} last={runs.at(-1)} />
        )}
        <g class="grid">
          <line x1={0} x2={width} y1={height - BELOW} y2={height - BELOW} />
        </g>
        <text class="tick" x={2} y={height - 8}>
          {clockTime(begin, at)}
        </text>
        <text class="tick" x={width - 2} y={height - 8} text-anchor="end">
          {clockTime(end, at)}
        </text>
      </>
    );
  };
  const table = {
    heads: ['Execution', 'Began', 'Took', 'Ended', 'Then'],
    rows: runs.map(({ execution, from, to, entry }) => [
      execution,
      clockTime(from, at),
      formatDuration(to - from),
      entry ? endWords(entry) : 'runs',
      entry ? thenWords(entry) : '',
    ]),
  };
  return (
    <Section
      title="Timeline"
      aside={
        <span class="actions timeline-tools">
          {older > 0 && (
            <button type="button" class="link" onClick={() => setAll(true)}>
              {older} older
            </button>
          )}
          <label class="check">
            <input type="checkbox" checked={folded} onChange={() => setChosen(!folded)} />
            Fold waits
          </label>
        </span>
      }
    >
      <Plot title="Executions" summary={summaryWords(runs, planned, at)} height={height} draw={draw} table={table} />
    </Section>
  );
}

interface RowProps {
  readonly x: (at: number) => number;
  readonly y: number;
  readonly width: number;
}

function RunRow({ run, next, x, y, width }: RowProps & { readonly run: Run; readonly next: number | undefined }) {
  const { from, to, attempt, execution, entry, jitter } = run;
  const [left, right] = [x(from), Math.max(x(to), x(from) + 3)];
  const name = attempt === undefined ? `execution ${execution}` : `attempt ${attempt}`;
  const words = entry
    ? `${name}  ${endWords(entry)}  ${formatDuration(to - from)}`
    : `${name}  runs for ${formatDuration(to - from)}`;
  const wait = next === undefined || next <= to ? '' : formatDuration(next - to);
  return (
    <g>
      <title>{`${words}${entry?.because ? `\n${visible(entry.because.text)}` : ''}`}</title>
      <RowLabel x={left} y={y + 13} width={width} text={words} />
      {next !== undefined && next > to && (
        <>
          <line class="wait-line" x1={right} x2={x(next)} y1={y + 26} y2={y + 26} />
          {jitter && <JitterRange {...{ jitter, x, y }} />}
          {x(next) - right > 60 && (
            <text class="tick" x={(right + x(next)) / 2} y={y + 38} text-anchor="middle">
              {wait}
            </text>
          )}
        </>
      )}
      <rect
        class={`bar ${entry ? styleOf(entry) : 'active'} solid`}
        x={left}
        y={y + 19}
        width={right - left}
        height={14}
        rx={2}
      />
    </g>
  );
}

/** A label that stays inside of the plot. */
function RowLabel({
  x,
  y,
  width,
  text,
}: {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly text: string;
}) {
  // A letter is about this wide; what does not fit begins further left.
  const fits = Math.max(0, width - text.length * 7.2);
  return (
    <text class="row-label" x={Math.min(x, fits)} y={y}>
      {text}
    </text>
  );
}

/** Where the next one could have begun: a random part of the wait. */
function JitterRange({
  jitter,
  x,
  y,
}: {
  readonly jitter: NonNullable<Run['jitter']>;
  readonly x: RowProps['x'];
  readonly y: number;
}) {
  const [from, to] = [x(jitter.from), x(jitter.to)];
  if (to - from < 2) return null;
  return <rect class="jitter" x={from} y={y + 22} width={to - from} height={8} />;
}

function PlannedRow({
  planned,
  last,
  x,
  y,
  width,
  at,
}: RowProps & { readonly planned: number; readonly last: Run | undefined; readonly at: number }) {
  const isDue = planned <= at;
  const text = isDue ? 'next: due now' : `next: in ${formatDuration(planned - at)}, at ${clockTime(planned, at)}`;
  return (
    <g>
      <title>{text}</title>
      <RowLabel x={x(planned)} y={y + 13} width={width} text={text} />
      {last?.jitter && <JitterRange {...{ jitter: last.jitter, x, y }} />}
      <rect class="planned" x={Math.min(x(planned), width - 8)} y={y + 19} width={7} height={14} rx={2} />
    </g>
  );
}

function summaryWords(runs: readonly Run[], planned: number | undefined, at: number): string {
  const failed = runs.filter(({ entry }) => entry?.outcome === 'failure').length;
  const charged = runs.filter(({ entry }) => entry?.charge === 'task').length;
  const parts = [
    counted(runs.length, 'execution', 'executions'),
    ...(failed > 0 ? [`${failed} failed, ${charged} of them charged`] : []),
    ...(planned === undefined
      ? []
      : [planned <= at ? 'the next is due' : `the next in ${formatDuration(planned - at)}`]),
  ];
  return `${parts.join(', ')}. A light band is the range in which the wait was drawn.`;
}

/** The colour class of how it ended. */
export function styleOf({ outcome, next, late }: ExecutionJson): string {
  if (late) return 'idle';
  if (outcome === 'success') return 'ok';
  if (next === 'needs_manual') return 'human';
  if (next === 'dead') return 'dead';
  return outcome === 'failure' ? 'waiting' : 'idle';
}

/** `✕ net.reset`. */
export function endWords({ outcome, failure }: ExecutionJson): string {
  if (outcome === 'success') return '✓ succeeded';
  if (failure) return `✕ ${visible(failure.reason)}`;
  return ENDS[outcome] ?? outcome;
}

const ENDS: Readonly<Record<string, string>> = {
  deferral: '↻ deferred',
  interruption: '⊘ interrupted',
  loss: '⊘ lost with its worker',
  failure: '✕ failed',
};

/** What was decided then. */
export function thenWords({ next, next_in_ms: after, charge, late }: ExecutionJson): string {
  if (late) return 'too late: it changed nothing';
  const uncharged =
    charge === 'task' || charge === 'recoveries'
      ? ''
      : charge === 'refunded'
        ? ', counted and given back'
        : ', not counted';
  if (next === 'scheduled') return `again after ${after ? formatDuration(after) : '0s'}${uncharged}`;
  if (next === 'ready') return `ready again${uncharged}`;
  return next === 'needs_manual' ? 'needs a person' : next;
}
