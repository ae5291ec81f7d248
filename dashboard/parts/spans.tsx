import { scaleTime } from 'd3-scale';
import { formatDuration } from '../../src/duration.ts';
import { visible } from '../../src/views/visible.ts';
import { now } from '../data/clock.ts';
import type { SpanCondition, SpanJson } from '../data/operating-documents.ts';
import { Plot, type Series } from './plot.tsx';
import { exactly } from './time.tsx';

/** How a condition is drawn: its colour class and texture, and the words in the bar where they have room. */
export const CONDITIONS: Readonly<Record<SpanCondition, Series>> = {
  down: { id: 'down', title: 'down', style: 'dead' },
  needs_person: { id: 'needs_person', title: 'needs a person', style: 'human' },
  waits: { id: 'waits', title: 'asked to wait', style: 'waiting' },
  ramping: { id: 'ramping', title: 'released slowly', style: 'active', texture: 'outline' },
  held: { id: 'held', title: 'held by a person', style: 'waiting', texture: 'outline' },
};

const ROW = 26;
const BAR = 16;
const AXIS = 22;
const NARROW = 520;

/** One line of time for each source: when it was not in its normal state. */
export function SpansPlot({
  title,
  since,
  lines,
}: {
  readonly title: string;
  readonly since: string;
  readonly lines: readonly { readonly source: string; readonly spans: readonly SpanJson[] }[];
}) {
  const end = Math.max(now.value, Date.parse(since) + 1);
  const used = Object.values(CONDITIONS).filter(({ id }) =>
    lines.some(({ spans }) => spans.some(({ condition }) => condition === id)),
  );
  const draw = (width: number) => {
    const isNarrow = width < NARROW;
    const row = rowAt(width);
    const left = isNarrow || lines.length === 1 ? 0 : Math.min(240, width * 0.28);
    const x = scaleTime()
      .domain([Date.parse(since), end])
      .range([left, width - 2]);
    const foot = row * lines.length;
    return (
      <>
        {x.ticks(Math.max(2, Math.floor((width - left) / 110))).map((tick) => (
          <g key={tick} class="grid">
            <line x1={x(tick)} x2={x(tick)} y1={0} y2={foot} />
            <text class="tick" x={x(tick)} y={foot + 15} text-anchor={x(tick) > width - 40 ? 'end' : 'middle'}>
              {tickWords(tick, end - Date.parse(since))}
            </text>
          </g>
        ))}
        {lines.map(({ source, spans }, i) => {
          const y = i * row + (isNarrow ? 18 : (ROW - BAR) / 2);
          return (
            <g key={source}>
              {lines.length > 1 && (
                <text class="span-name" x={0} y={isNarrow ? y - 5 : y + 12}>
                  {shortened(visible(source), isNarrow ? width / 7.5 : left / 7.5)}
                </text>
              )}
              <line class="span-base" x1={left} x2={width - 2} y1={y + BAR / 2} y2={y + BAR / 2} />
              {spans.map((span) => (
                <Bar key={`${span.from} ${span.condition}`} span={span} x={x} y={y} end={end} />
              ))}
            </g>
          );
        })}
      </>
    );
  };
  const rows = lines.flatMap(({ source, spans }) =>
    spans.map(({ from, to, condition }) => [
      visible(source),
      wordsOf(condition),
      timeWords(from),
      to === null ? 'now' : timeWords(to),
      formatDuration(wholeSeconds((to === null ? end : Date.parse(to)) - Date.parse(from))),
    ]),
  );
  return (
    <Plot
      title={title}
      summary={summaryOf(lines)}
      series={used}
      height={(width) => rowAt(width) * lines.length + AXIS}
      draw={draw}
      table={{ heads: ['Source', 'Was', 'From', 'To', 'For'], rows }}
    />
  );
}

/** On a narrow screen a name stands above its line. */
function rowAt(width: number): number {
  return width < NARROW ? ROW + 18 : ROW;
}

function Bar({
  span: { from, to, condition },
  x,
  y,
  end,
}: {
  readonly span: SpanJson;
  readonly x: (at: number) => number;
  readonly y: number;
  readonly end: number;
}) {
  const { style, texture = 'solid', title } = CONDITIONS[condition];
  const until = to === null ? end : Date.parse(to);
  const [begin, size] = [x(Date.parse(from)), Math.max(3, x(until) - x(Date.parse(from)))];
  const lasted = formatDuration(wholeSeconds(until - Date.parse(from)));
  const hasRoom = size > title.length * 6.6 + 10;
  return (
    <g>
      <title>{`${title} for ${lasted}, from ${exactly(from)}${to === null ? '' : ` to ${exactly(to)}`}`}</title>
      <rect class={`bar ${style} ${texture}`} x={begin} y={y} width={size} height={BAR} rx="3" />
      {hasRoom && (
        <text class={`span-words ${texture}`} x={begin + 6} y={y + 12}>
          {title}
        </text>
      )}
    </g>
  );
}

function summaryOf(lines: readonly { readonly source: string; readonly spans: readonly SpanJson[] }[]): string {
  const bad = lines.filter(({ spans }) => spans.some(({ to, condition }) => to === null && condition !== 'ramping'));
  const names = bad.map(({ source, spans }) => `${visible(source)} (${wordsOf(spans.at(-1)?.condition ?? 'down')})`);
  if (names.length === 0) return 'None of them is held, down or waiting now.';
  return `Now: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}.`;
}

export function wordsOf(condition: SpanCondition): string {
  return CONDITIONS[condition].title;
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(4, Math.floor(most) - 1))}…`;
}

function tickWords(tick: Date, span: number): string {
  const time = { hour: '2-digit', minute: '2-digit' } as const;
  return span > 48 * 3_600_000
    ? tick.toLocaleDateString(undefined, { weekday: 'short', day: 'numeric' })
    : tick.toLocaleTimeString(undefined, time);
}

function timeWords(at: string): string {
  return new Date(at).toLocaleString(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
}

function wholeSeconds(ms: number): number {
  return Math.max(1_000, Math.round(ms / 1_000) * 1_000);
}
