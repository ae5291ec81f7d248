import type { Milliseconds } from '../duration.ts';
import { CONDITIONS } from '../source/trouble.ts';
import type { Answer } from './server.ts';
import type { Sample, SourceCondition } from './tally.ts';

/** One simulated policy, as the plot shows it. */
export interface Plotted {
  readonly policy: string;
  readonly samples: readonly Sample[];
}

const WIDTH = 900;
const LEFT = 64;
const RIGHT = 16;
const PANEL = 120;
const GAP = 48;
const BAND = 14;
const TOP = 44;

const ANSWERS = {
  served: 'served',
  down: 'failed while the server was down',
  throttled: 'throttled (429)',
} as const satisfies Record<Answer, string>;

/** Draws the calls of each policy, the state of its source, and the tasks that wait, over time. An SVG for light and dark pages. */
export function plotOutages(outage: Milliseconds, simulated: readonly Plotted[]): string {
  const plotted = simulated.map(({ policy, samples }) => ({ policy, samples: coarser(samples) }));
  const end = Math.max(outage, ...plotted.flatMap(({ samples }) => samples.map(({ at }) => at)));
  const begin = Math.min(0, ...plotted.flatMap(({ samples }) => samples.map(({ at, lasted }) => at - lasted)));
  const x = (at: number) => LEFT + ((at - begin) / (end - begin)) * (WIDTH - LEFT - RIGHT);

  const most = niceCeiling(Math.max(1, ...plotted.flatMap(({ samples }) => samples.map(callsPerSecond))));
  const parts: string[] = [];
  let top = TOP;
  for (const { policy, samples } of plotted) {
    parts.push(callsPanel({ title: `${policy}: calls per second`, samples, most, x, top }));
    top += PANEL;
    if (samples.some(({ condition }) => condition !== undefined)) {
      parts.push(conditionBand(samples, x, top + 4));
      top += BAND + 8;
    }
    top += GAP;
  }
  parts.push(waitingPanel(plotted, x, top));
  top += PANEL;
  const bottom = top + 44;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom}" width="${WIDTH}" height="${bottom}" role="img" font-family="system-ui, sans-serif" font-size="12">`,
    '<title>Calls, held tasks and the state of the source during an outage and after it</title>',
    STYLE,
    `<rect class="page" width="${WIDTH}" height="${bottom}"/>`,
    `<rect class="outage" x="${round(x(0))}" y="20" width="${round(x(outage) - x(0))}" height="${top - 20}"/>`,
    `<text x="${round((x(0) + x(outage)) / 2)}" y="14" text-anchor="middle">the server is down</text>`,
    ...parts,
    timeAxis(begin, end, x, top),
    '</svg>',
    '',
  ].join('\n');
}

const STYLE = `<style>
.page{fill:#fff}text{fill:#1f2328}.axis{stroke:#8c959f;fill:none}.grid{stroke:#d0d7de;stroke-width:.5}.outage{fill:#cf222e;opacity:.07}
.served{fill:#2da44e}.down{fill:#cf222e}.throttled{fill:#bf8700}
.normal{fill:#2da44e}.watched{fill:#bf8700}.asked_to_wait,.down{fill:#cf222e}.probing{fill:#8250df}.ramping{fill:#0969da}.needs_person{fill:#57606a}
.line{fill:none;stroke-width:1.8}.line0{stroke:#0969da}.line1{stroke:#bc4c00}.line2{stroke:#8250df}.line3{stroke:#1a7f37}.line4{stroke:#bf3989}.line5{stroke:#57606a}.line6{stroke:#9a6700}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#e6edf3}.axis{stroke:#7d8590}.grid{stroke:#30363d}.outage{fill:#f85149;opacity:.13}
.served{fill:#3fb950}.down{fill:#f85149}.throttled{fill:#d29922}.normal{fill:#3fb950}.watched{fill:#d29922}.asked_to_wait,.down{fill:#f85149}.probing{fill:#a371f7}.ramping{fill:#58a6ff}.needs_person{fill:#8b949e}
.line0{stroke:#58a6ff}.line1{stroke:#f0883e}.line2{stroke:#a371f7}.line3{stroke:#56d364}.line4{stroke:#f778ba}.line5{stroke:#8b949e}.line6{stroke:#e3b341}}
</style>`;

interface Panel {
  readonly title: string;
  readonly samples: readonly Sample[];
  /** What the panel's height stands for: the same for all, so that they can be compared. */
  readonly most: number;
  readonly x: (at: number) => number;
  readonly top: number;
}

/** At most so many samples are drawn. */
const MOST_SAMPLES = 400;

/** Joins neighbouring samples where there are very many. */
function coarser(samples: readonly Sample[]): readonly Sample[] {
  const size = Math.ceil(samples.length / MOST_SAMPLES);
  if (size <= 1) return samples;
  return Array.from({ length: Math.ceil(samples.length / size) }, (_, i) =>
    joined(samples.slice(i * size, (i + 1) * size)),
  );
}

function joined(samples: readonly Sample[]): Sample {
  const sum = (of: (sample: Sample) => number) => samples.reduce((total, sample) => total + of(sample), 0);
  return {
    ...(samples.at(-1) as Sample),
    lasted: sum(({ lasted }) => lasted),
    calls: {
      served: sum(({ calls }) => calls.served),
      down: sum(({ calls }) => calls.down),
      throttled: sum(({ calls }) => calls.throttled),
    },
  };
}

const SHOWN_ANSWERS = Object.keys(ANSWERS) as Answer[];

/** How many pixels a few calls are high at least, so that a single probe is seen. */
const LEAST_HEIGHT = 2;

/** Areas on top of one another: what was served at the bottom. */
function callsPanel({ title, samples, most, x, top }: Panel): string {
  const legends = SHOWN_ANSWERS.map((answer) => [answer, ANSWERS[answer]] as const);
  const parts = [frame(title, most, top), legend(legends, top)];
  const floors = samples.map(() => top + PANEL);
  for (const answer of SHOWN_ANSWERS) {
    const heights = samples.map(({ calls, lasted }) => {
      const height = ((calls[answer] / lasted) * 1_000 * PANEL) / most;
      return height > 0 ? Math.max(LEAST_HEIGHT, height) : 0;
    });
    if (!heights.some((height) => height > 0)) continue;
    const ceilings = heights.map((height, i) => (floors[i] as number) - height);
    const along = (edge: readonly number[]) =>
      samples.flatMap(({ at, lasted }, i) => [
        point(x(at - lasted), edge[i] as number),
        point(x(at), edge[i] as number),
      ]);
    parts.push(`<path class="${answer}" d="M${[...along(ceilings), ...along(floors).reverse()].join('L')}Z"/>`);
    for (const [i, ceiling] of ceilings.entries()) floors[i] = ceiling;
  }
  return parts.join('\n');
}

function callsPerSecond({ calls, lasted }: Sample): number {
  return (SHOWN_ANSWERS.reduce((sum, answer) => sum + calls[answer], 0) / lasted) * 1_000;
}

function conditionBand(samples: readonly Sample[], x: (at: number) => number, top: number): string {
  const parts = [`<text x="${LEFT - 6}" y="${top + BAND - 3}" text-anchor="end">source</text>`];
  for (const { condition, from, to } of spansOf(samples)) {
    const width = round(Math.max(1, x(to) - x(from)));
    parts.push(`<rect class="${condition}" x="${round(x(from))}" y="${top}" width="${width}" height="${BAND}"/>`);
  }
  const conditions = (['normal', ...CONDITIONS] as const).filter((each) =>
    samples.some(({ condition }) => condition === each),
  );
  const entries = conditions.map((each) => [each, `source ${each.replaceAll('_', ' ')}`] as const);
  parts.push(legend(entries, top + BAND + 22));
  return parts.join('\n');
}

interface Span {
  readonly condition: SourceCondition;
  readonly from: Milliseconds;
  to: Milliseconds;
}

/** Neighbouring intervals of the same condition as one. */
function spansOf(samples: readonly Sample[]): Span[] {
  const spans: Span[] = [];
  for (const { at, lasted, condition = 'normal' } of samples) {
    const last = spans.at(-1);
    if (last?.condition === condition) last.to = at;
    else spans.push({ condition, from: at - lasted, to: at });
  }
  return spans;
}

function waitingPanel(plotted: readonly Plotted[], x: (at: number) => number, top: number): string {
  const most = niceCeiling(Math.max(1, ...plotted.flatMap(({ samples }) => samples.map(({ waiting }) => waiting))));
  const y = (waiting: number) => top + PANEL - (waiting / most) * PANEL;
  return [
    frame('tasks that wait: held, or for their next retry', most, top),
    legend(
      plotted.map(({ policy }, i) => [`line line${i}`, policy]),
      top,
    ),
    ...plotted.map(({ samples }, i) => {
      const points = samples.map(({ at, waiting }) => point(x(at), y(waiting)));
      return `<path class="line line${i}" d="M${points.join('L')}"/>`;
    }),
  ].join('\n');
}

function frame(title: string, most: number, top: number): string {
  const half = top + PANEL / 2;
  const [from, to] = [LEFT, WIDTH - RIGHT];
  return [
    `<text x="${LEFT}" y="${top - 8}" font-weight="600">${escaped(title)}</text>`,
    `<path class="grid" d="M${from} ${top}H${to}M${from} ${half}H${to}"/>`,
    `<path class="axis" d="M${from} ${top}V${top + PANEL}H${to}"/>`,
    `<text x="${LEFT - 6}" y="${top + 4}" text-anchor="end">${shortNumber(most)}</text>`,
    `<text x="${LEFT - 6}" y="${half + 4}" text-anchor="end">${shortNumber(most / 2)}</text>`,
    `<text x="${LEFT - 6}" y="${top + PANEL + 4}" text-anchor="end">0</text>`,
  ].join('\n');
}

/** Colours with their names, above a panel at its right. A class that draws lines is shown as a line. */
function legend(entries: readonly (readonly [className: string, text: string])[], top: number): string {
  const parts: string[] = [];
  let right = WIDTH - RIGHT;
  for (const [className, text] of [...entries].reverse()) {
    right -= text.length * LETTER;
    parts.push(`<text x="${round(right)}" y="${top - 8}">${escaped(text)}</text>`);
    right -= 16;
    parts.push(
      className.startsWith('line')
        ? `<path class="${className}" d="M${round(right)} ${top - 12}h12"/>`
        : `<rect class="${className}" x="${round(right)}" y="${top - 17}" width="11" height="10"/>`,
    );
    right -= 14;
  }
  return parts.join('\n');
}

/** About how wide a letter is. */
const LETTER = 6.5;

function timeAxis(begin: Milliseconds, end: Milliseconds, x: (at: number) => number, top: number): string {
  const step = TICKS.find((each) => (end - begin) / each <= 12) ?? (TICKS.at(-1) as number);
  const parts: string[] = [];
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
    parts.push(`<path class="axis" d="M${round(x(at))} ${top}v4"/>`);
    parts.push(`<text x="${round(x(at))}" y="${top + 18}" text-anchor="middle">${shortNumber(at / MINUTE)}</text>`);
  }
  const middle = (LEFT + WIDTH - RIGHT) / 2;
  parts.push(`<text x="${middle}" y="${top + 36}" text-anchor="middle">minutes since the outage began</text>`);
  return parts.join('\n');
}

const MINUTE: Milliseconds = 60_000;
const TICKS = [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 240].map((minutes) => minutes * MINUTE);

/** The next of 1, 2, 4, 5, 6, 8 and 10, times a power of ten. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 5, 6, 8, 10].find((each) => each * power >= value) as number) * power;
}

function shortNumber(value: number): string {
  return value >= 10_000 ? `${round(value / 1_000)}k` : String(round(value));
}

function point(x: number, y: number): string {
  return `${round(x)} ${round(y)}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
