import { scaleBand, scaleLinear } from 'd3-scale';
import { stack } from 'd3-shape';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icon.tsx';
import { exactly } from './time.tsx';

/** One row of numbers of a plot. Its look is a colour and a texture, so that it is not only a colour. */
export interface Series {
  readonly id: string;
  readonly title: string;
  /** A colour class: ok, active, idle, waiting, human, dead. */
  readonly style: string;
  /** `outline`: a bar that is drawn as a frame, for what is not certain or not final. */
  readonly texture?: 'solid' | 'outline';
}

/** What is counted in a span of time that begins then. */
export interface Bin {
  readonly at: string;
  readonly counts: Readonly<Record<string, number>>;
}

/**
 * A plot with the one sentence that says what it shows, a legend, and the same numbers as a table. `draw` gets the width that there
 * is.
 */
export function Plot({
  title,
  summary,
  series,
  height,
  draw,
  table,
}: {
  readonly title: string;
  readonly summary: string;
  readonly series?: readonly Series[];
  /** Or how high it is at this width. */
  readonly height: number | ((width: number) => number);
  readonly draw: (width: number) => ComponentChildren;
  readonly table: { readonly heads: readonly string[]; readonly rows: readonly (readonly (string | number)[])[] };
}) {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [asTable, setTable] = useState(false);
  const high = typeof height === 'number' ? height : height(width);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <figure class="plot">
      <div class={series && series.length > 1 ? 'plot-tools' : 'plot-tools bare'}>
        {series && series.length > 1 && <Legend of={series} />}
        <button
          type="button"
          class="quiet square"
          aria-pressed={asTable}
          aria-label={`Show as table: ${title}`}
          title="Show as table"
          onClick={() => setTable(!asTable)}
        >
          <Icon name="table" />
        </button>
      </div>
      <div ref={frame}>
        {asTable ? (
          <div class="table-frame plain plot-table">
            <table>
              <caption class="unseen">{title}</caption>
              <thead>
                <tr>
                  {table.heads.map((head, i) => (
                    <th key={head} scope="col" class={i === 0 ? '' : 'number'}>
                      {head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {table.rows.map(([first, ...rest], row) => (
                  <tr key={row}>
                    <th scope="row">{first}</th>
                    {rest.map((value, i) => (
                      <td key={table.heads[i + 1]} class="number">
                        {value}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          width > 0 && (
            <svg
              role="img"
              aria-label={`${title}: ${summary}`}
              width={width}
              height={high}
              viewBox={`0 0 ${width} ${high}`}
            >
              {draw(width)}
            </svg>
          )
        )}
      </div>
      <figcaption class="muted">{summary}</figcaption>
    </figure>
  );
}

function Legend({ of }: { readonly of: readonly Series[] }) {
  return (
    <ul class="legend">
      {of.map(({ id, title, style, texture }) => (
        <li key={id}>
          <svg width="12" height="12" aria-hidden="true">
            <rect x="1" y="1" width="10" height="10" class={`bar ${style} ${texture ?? 'solid'}`} />
          </svg>
          {title}
        </li>
      ))}
    </ul>
  );
}

const LEFT = 38;
const BELOW = 22;
const ABOVE = 8;

/** Counts over time, as bars on top of each other. `levels`: lines at a height, such as a limit. */
export function BarPlot({
  title,
  summary,
  series,
  bins,
  height = 170,
  levels = [],
  linkOf,
}: {
  readonly title: string;
  readonly summary: string;
  readonly series: readonly Series[];
  readonly bins: readonly Bin[];
  readonly height?: number;
  readonly levels?: readonly { readonly title: string; readonly at: number }[];
  /** What a bar opens. */
  readonly linkOf?: (bin: Bin) => string | undefined;
}) {
  const total = ({ counts }: Bin) => series.reduce((sum, { id }) => sum + (counts[id] ?? 0), 0);
  const most = Math.max(1, ...bins.map(total), ...levels.map(({ at }) => at));
  const layers = stack<Bin>()
    .keys(series.map(({ id }) => id))
    .value(({ counts }, id) => counts[id] ?? 0)([...bins]);
  const draw = (width: number) => {
    const x = scaleBand<number>()
      .domain(bins.map((_, i) => i))
      .range([LEFT, width - 4])
      .paddingInner(0.2);
    const y = scaleLinear()
      .domain([0, most])
      .nice(4)
      .range([height - BELOW, ABOVE]);
    return (
      <>
        <CountAxis y={y} width={width} />
        <TimeAxis bins={bins} x={x} width={width} height={height} />
        {bins.map((bin, i) => {
          const bars = series.map(({ id, style, texture = 'solid' }, layer) => {
            const [from, to] = layers[layer]?.[i] ?? [0, 0];
            if (from === to) return null;
            return (
              <rect
                key={id}
                class={`bar ${style} ${texture}`}
                x={x(i)}
                y={y(to)}
                width={Math.max(1, x.bandwidth())}
                height={Math.max(1, y(from) - y(to))}
              />
            );
          });
          const words = series.map(({ id, title: name }) => `${name} ${bin.counts[id] ?? 0}`).join(', ');
          const area = (
            <g class="bin">
              <title>{`${exactly(bin.at)}\n${words}`}</title>
              <rect class="hit" x={x(i)} y={ABOVE} width={x.step()} height={height - BELOW - ABOVE} />
              {bars}
            </g>
          );
          const link = total(bin) > 0 ? linkOf?.(bin) : undefined;
          return link === undefined ? (
            area
          ) : (
            <a key={bin.at} href={link} aria-label={`${words}, ${exactly(bin.at)}`}>
              {area}
            </a>
          );
        })}
        {levels.map(({ title: name, at }) => (
          <g key={name} class="level">
            <line x1={LEFT} x2={width} y1={y(at)} y2={y(at)} />
            <text x={width - 4} y={y(at) - 4} text-anchor="end">
              {name}
            </text>
          </g>
        ))}
      </>
    );
  };
  const rows = bins.map((bin) => [binWords(bin.at, bins), ...series.map(({ id }) => bin.counts[id] ?? 0)]);
  const heads = ['From', ...series.map((each) => each.title)];
  return <Plot {...{ title, summary, series, height, draw, table: { heads, rows } }} />;
}

/** A small trend without axes: the highest bar is the most. */
export function Trend({
  counts,
  words,
  style = 'dead',
}: {
  readonly counts: readonly number[];
  readonly words: string;
  readonly style?: string;
}) {
  const most = Math.max(1, ...counts);
  const [width, height, step] = [counts.length * 5, 24, 5];
  return (
    <svg class="trend" role="img" aria-label={words} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      <title>{words}</title>
      {counts.map((count, i) => {
        const size = count === 0 ? 1 : Math.max(3, (count / most) * height);
        return (
          <rect
            key={i}
            class={`bar ${count === 0 ? 'none' : style}`}
            x={i * step}
            y={height - size}
            width={step - 1}
            height={size}
          />
        );
      })}
    </svg>
  );
}

/** Shares of a whole as bars with their names. */
export function Shares({
  of,
  style = 'active',
  nameOf = (name) => name,
}: {
  readonly of: Readonly<Record<string, number>>;
  readonly style?: string;
  readonly nameOf?: (name: string) => ComponentChildren;
}) {
  const entries = Object.entries(of).sort(([, a], [, b]) => b - a);
  const most = Math.max(1, ...entries.map(([, count]) => count));
  return (
    <ul class="shares">
      {entries.map(([name, count]) => (
        <li key={name}>
          <span class="share-name">{nameOf(name)}</span>
          <svg
            class="share-bar"
            height="10"
            width="100%"
            preserveAspectRatio="none"
            viewBox="0 0 100 10"
            aria-hidden="true"
          >
            <rect class={`bar ${style} solid`} width={Math.max(1, (count / most) * 100)} height="10" />
          </svg>
          <span class="share-count">{count.toLocaleString()}</span>
        </li>
      ))}
    </ul>
  );
}

/** At most four characters up to 999 millions: `10k`, `2.5M`. */
function shortCount(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000}M`;
  return count >= 10_000 ? `${count / 1_000}k` : String(count);
}

function CountAxis({
  y,
  width,
}: {
  readonly y: ReturnType<typeof scaleLinear<number, number>>;
  readonly width: number;
}) {
  const ticks = y.ticks(4).filter(Number.isInteger);
  return (
    <>
      {ticks.map((tick) => (
        <g key={tick} class="grid">
          <line x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} />
          <text class="tick" x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
            {shortCount(tick)}
          </text>
        </g>
      ))}
    </>
  );
}

function TimeAxis({
  bins,
  x,
  width,
  height,
}: {
  readonly bins: readonly Bin[];
  readonly x: ReturnType<typeof scaleBand<number>>;
  readonly width: number;
  readonly height: number;
}) {
  const named = roundTimes(
    bins.map(({ at }) => Date.parse(at)),
    x.step(),
  );
  return (
    <>
      {bins.map(({ at }, i) =>
        // The last one would not fit.
        named.has(i) && (x(i) ?? 0) < width - 34 ? (
          <text key={at} class="tick" x={x(i)} y={height - 6}>
            {hourWords(Date.parse(at))}
          </text>
        ) : null,
      )}
    </>
  );
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440].map((minutes) => minutes * MINUTE);
/** How far apart two times stand at least. */
const LABEL_WIDTH = 56;

/** Which bins have their time below them: the first of each quarter, hour or three hours of the reader's clock, as there is room. */
function roundTimes(times: readonly number[], binWidth: number): ReadonlySet<number> {
  const span = times.length > 1 ? (times[1] as number) - (times[0] as number) : HOUR;
  const wanted = Math.ceil(LABEL_WIDTH / binWidth) * span;
  const step = STEPS.find((each) => each >= wanted) ?? wanted;
  const stepOf = (time: number) => Math.floor((time - new Date(time).getTimezoneOffset() * MINUTE) / step);
  return new Set(times.flatMap((time, i) => (stepOf(time) === stepOf(times[i - 1] ?? time - span) ? [] : [i])));
}

export function hourWords(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}

/** When the clocks are set back, an hour has its times twice: the zone tells them apart. */
function binWords(at: string, bins: readonly Bin[]): string {
  const offset = (time: string) => new Date(time).getTimezoneOffset();
  const isClockSet = bins.length > 1 && offset(bins[0]?.at ?? at) !== offset(bins.at(-1)?.at ?? at);
  return new Date(at).toLocaleString(undefined, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(isClockSet && { timeZoneName: 'short' }),
  });
}
