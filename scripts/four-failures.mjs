// Draws the picture of the README: one task type whose tasks fail in four ways, and how each failure is answered. The engine is
// the real one, with a clock that this script moves, so that the picture is the same at each run.
//   node scripts/four-failures.mjs           writes docs/four-failures.svg
//   node scripts/four-failures.mjs --check   writes nothing; fails if the picture is not what would be drawn
import { readFileSync, writeFileSync } from 'node:fs';
import { defineTask, presets } from '../dist/index.js';
import { openTestHoldfast } from '../dist/testing/index.js';

const picture = new URL('../docs/four-failures.svg', import.meta.url);
const SECONDS = 45;
const HOST_IS_BACK = 20;
const PERSON_ANSWERS = 36;

/** Each way to fail: what the handler throws at its first executions, and how long. */
const WAYS = [
  {
    title: 'The server asks for a pause',
    thrown: '429 Too Many Requests, Retry-After: 30',
    fails: ({ execution }) => execution === 1,
    error: () => Object.assign(new Error('Too Many Requests'), { status: 429, headers: { 'retry-after': '30' } }),
  },
  {
    title: 'The server is down',
    thrown: 'connect ECONNREFUSED 10.0.0.7:443',
    fails: ({ seconds }) => seconds < HOST_IS_BACK,
    error: () =>
      Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:443'), { code: 'ECONNREFUSED', syscall: 'connect' }),
    // A second task of the same server: one failure alone is not an outage.
    twice: true,
  },
  {
    title: 'The handler has a bug',
    thrown: 'TypeError: order.total is not a function',
    fails: () => true,
    error: () => new TypeError('order.total is not a function'),
  },
  {
    title: 'The answer to a payment is lost',
    thrown: 'read ECONNRESET; idempotent: false',
    fails: ({ execution }) => execution === 1,
    error: () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }),
    idempotent: false,
  },
];

async function run() {
  let kit;
  let start = 0;
  const send = defineTask('send', {
    retry: presets.standard,
    source: ({ way }) => `api:${way}`,
    idempotent: ({ way }) => WAYS[way].idempotent !== false,
    run({ way }, { execution }) {
      if (WAYS[way].fails({ execution, seconds: (kit.clock.now() - start) / 1_000 })) throw WAYS[way].error();
    },
  });
  kit = await openTestHoldfast({ tasks: [send], seed: 3, workerName: 'worker' });
  const { holdfast } = kit;
  start = kit.clock.now();
  const ids = [];
  for (const way of WAYS.keys()) ids.push((await holdfast.enqueue(send, { way })).id);
  for (const [way, { twice }] of WAYS.entries()) if (twice) await holdfast.enqueue(send, { way });
  await kit.advance(`${PERSON_ANSWERS}s`);
  for (const id of ids) {
    const { state } = await holdfast.get(id);
    if (state === 'needs_manual')
      await holdfast.resolve(id, { as: 'succeeded', note: 'the payment is in the statement' });
  }
  await kit.advance(`${SECONDS - PERSON_ANSWERS}s`);
  const lanes = [];
  for (const [way, id] of ids.entries()) {
    const task = await holdfast.get(id);
    const history = await holdfast.history(id);
    const marks = history.map((entry) =>
      entry.kind === 'execution'
        ? { at: (entry.startedAt - start) / 1_000, what: entry.outcome === 'success' ? 'succeeded' : 'failed' }
        : { at: (entry.at - start) / 1_000, what: 'person' },
    );
    // The last failure has the decision that the others led to.
    const { because } = history.findLast(({ outcome }) => outcome === 'failure');
    lanes.push({ ...WAYS[way], task, marks, because: because.text });
  }
  await kit.close();
  return lanes;
}

const WIDTH = 900;
const LANE = 116;
const LEFT = 16;
const RIGHT = 16;
const TOP = 12;
const x = (seconds) => LEFT + 6 + (seconds / SECONDS) * (WIDTH - LEFT - RIGHT - 12);
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

const STYLE = `<style>
.page{fill:#fff}text{fill:#1f2328}.note{fill:#57606a;font-size:13px}.code{font-family:ui-monospace,monospace;font-size:12.5px}.line{stroke:#8c959f}.waits{stroke:#936405;stroke-width:2;stroke-dasharray:5 4}
.failed{fill:#b42318}.succeeded{fill:#118053}.person{fill:#6d2496}.sign{fill:#fff;font-size:11px;font-weight:700;text-anchor:middle}.separates{stroke:#d0d7de}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}text{fill:#e6edf3}.note{fill:#9198a1}.line{stroke:#7d8590}.waits{stroke:#fbb60b}.failed{fill:#f47067}.succeeded{fill:#3fb950}.person{fill:#d38bf5}.sign{fill:#0d1117}.separates{stroke:#30363d}}
</style>`;

const SIGNS = { failed: '✕', succeeded: '✓', person: '?' };

function lane({ title, thrown, task, marks, because }, top) {
  const line = top + 44;
  const last = marks.at(-1).at;
  const asked = marks.some(({ what }) => what === 'person');
  const attempts = `${task.attempts} of 5 attempts used`;
  const parts = [
    `<text x="${LEFT}" y="${top + 16}"><tspan font-weight="600">${escaped(title)}</tspan><tspan class="code" dx="12">${escaped(thrown)}</tspan></text>`,
    `<text x="${WIDTH - RIGHT}" y="${top + 16}" text-anchor="end"><tspan font-weight="600">${asked ? 'a person decides' : task.state}</tspan><tspan dx="8">${attempts}</tspan></text>`,
    `<line class="line" x1="${x(0)}" x2="${x(SECONDS)}" y1="${line}" y2="${line}" stroke-width=".5"/>`,
    `<line class="waits" x1="${x(0)}" x2="${x(last).toFixed(1)}" y1="${line}" y2="${line}"/>`,
  ];
  let labelled = -Infinity;
  for (const { at, what } of marks) {
    const cx = x(at).toFixed(1);
    parts.push(
      `<circle class="${what}" cx="${cx}" cy="${line}" r="8"/><text class="sign" x="${cx}" y="${line + 4}">${SIGNS[what]}</text>`,
    );
    if (x(at) - labelled < 40) continue;
    labelled = x(at);
    const place = at === 0 ? `x="${LEFT}"` : `x="${cx}" text-anchor="middle"`;
    parts.push(
      `<text class="note" ${place} y="${line + 24}">${Math.round(at)} s${what === 'person' ? ': a person answers' : ''}</text>`,
    );
  }
  parts.push(`<text x="${LEFT}" y="${line + 46}">${escaped(because)}</text>`);
  return parts;
}

function draw(lanes) {
  const height = TOP + lanes.length * LANE + 28;
  const legend = TOP + lanes.length * LANE + 12;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="14">`,
    '<title>Four tasks of one type fail in four ways, and each failure is answered differently</title>',
    STYLE,
    `<rect class="page" width="${WIDTH}" height="${height}"/>`,
    ...lanes.flatMap((each, i) => [
      ...lane(each, TOP + i * LANE),
      `<line class="separates" x1="0" x2="${WIDTH}" y1="${TOP + (i + 1) * LANE - 12}" y2="${TOP + (i + 1) * LANE - 12}"/>`,
    ]),
    `<text class="note" x="${LEFT}" y="${legend}">✕ the handler failed · ✓ it succeeded · ? a person answered · dashed: it waits. Drawn from a run, with the policy standard.</text>`,
    '</svg>',
    '',
  ].join('\n');
}

const drawn = draw(await run());
if (!process.argv.includes('--check')) writeFileSync(picture, drawn);
else if (readFileSync(picture, 'utf8') !== drawn) {
  process.stderr.write(
    'docs/four-failures.svg is not what the engine does. Run: npm run build && node scripts/four-failures.mjs\n',
  );
  process.exitCode = 1;
}
