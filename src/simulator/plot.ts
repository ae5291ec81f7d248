import type { Milliseconds } from '../duration.ts';
import type { Answer } from './server.ts';
import { type Sample, SOURCE_PHASES, type SourcePhase } from './tally.ts';

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
  const begin = Math.min(0, ...plotted.flatMap(({ samples }) => samples.map(({ at }) => at)));
  const x = (at: number) => LEFT + ((at - begin) / (end - begin)) * (WIDTH - LEFT - RIGHT);

  const parts: string[] = [];
  let top = TOP;
  for (const { policy, samples } of plotted) {
    parts.push(callsPanel({ title: `${policy}: calls per second`, samples, x, top }));
    top += PANEL;
    if (samples.some(({ phase }) => phase !== undefined)) {
      parts.push(phaseBand(samples, x, top + 4));
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
.closed{fill:#2da44e}.shut{fill:#cf222e}.probing{fill:#8250df}.ramping{fill:#0969da}
.line{fill:none;stroke-width:1.8}.line0{stroke:#0969da}.line1{stroke:#bc4c00}.line2{stroke:#8250df}.line3{stroke:#1a7f37}.line4{stroke:#bf3989}.line5{stroke:#57606a}.line6{stroke:#9a6700}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#e6edf3}.axis{stroke:#7d8590}.grid{stroke:#30363d}.outage{fill:#f85149;opacity:.13}
.served{fill:#3fb950}.down{fill:#f85149}.throttled{fill:#d29922}.closed{fill:#3fb950}.shut{fill:#f85149}.probing{fill:#a371f7}.ramping{fill:#58a6ff}
.line0{stroke:#58a6ff}.line1{stroke:#f0883e}.line2{stroke:#a371f7}.line3{stroke:#56d364}.line4{stroke:#f778ba}.line5{stroke:#8b949e}.line6{stroke:#e3b341}}
</style>`;

interface Panel {
  readonly title: string;
  readonly samples: readonly Sample[];
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

/** Areas on top of one another: what was served at the bottom. */
function callsPanel({ title, samples, x, top }: Panel): string {
  const rates = samples.map(({ at, lasted, calls }) => ({
    at,
    from: at - lasted,
    of: (answer: Answer) => (calls[answer] / lasted) * 1_000,
  }));
  const answers = Object.keys(ANSWERS) as Answer[];
  const most = niceCeiling(Math.max(1, ...rates.map(({ of }) => answers.reduce((sum, each) => sum + of(each), 0))));
  const y = (rate: number) => top + PANEL - (rate / most) * PANEL;

  const parts = [
    frame(title, most, top),
    legend(
      answers.map((each) => [each, ANSWERS[each]]),
      top,
    ),
  ];
  const below = rates.map(() => 0);
  for (const answer of answers) {
    if (!rates.some(({ of }) => of(answer) > 0)) continue;
    const upper = rates.map(({ of }, i) => (below[i] as number) + of(answer));
    const outline = [
      ...rates.flatMap(({ from, at }, i) => [
        point(x(from), y(upper[i] as number)),
        point(x(at), y(upper[i] as number)),
      ]),
      ...rates
        .flatMap(({ from, at }, i) => [point(x(from), y(below[i] as number)), point(x(at), y(below[i] as number))])
        .reverse(),
    ];
    parts.push(`<path class="${answer}" d="M${outline.join('L')}Z"/>`);
    for (const [i, value] of upper.entries()) below[i] = value;
  }
  return parts.join('\n');
}

function phaseBand(samples: readonly Sample[], x: (at: number) => number, top: number): string {
  const parts = [`<text x="${LEFT - 6}" y="${top + BAND - 3}" text-anchor="end">source</text>`];
  for (const { phase, from, to } of phasesOf(samples)) {
    parts.push(
      `<rect class="${phase}" x="${round(x(from))}" y="${top}" width="${round(Math.max(1, x(to) - x(from)))}" height="${BAND}"/>`,
    );
  }
  const used = SOURCE_PHASES.filter((phase) => samples.some((sample) => sample.phase === phase));
  parts.push(
    legend(
      used.map((phase) => [phase, `source ${phase}`]),
      top + BAND + 22,
    ),
  );
  return parts.join('\n');
}

/** Neighbouring intervals of the same phase as one. */
function phasesOf(samples: readonly Sample[]): { readonly phase: SourcePhase; readonly from: number; to: number }[] {
  const phases: { readonly phase: SourcePhase; readonly from: number; to: number }[] = [];
  for (const { at, lasted, phase = 'closed' } of samples) {
    const last = phases.at(-1);
    if (last?.phase === phase) last.to = at;
    else phases.push({ phase, from: at - lasted, to: at });
  }
  return phases;
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
const LETTER = 6.2;

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
