// @ts-check
import { splitTest } from './promises.mjs';

/** @typedef {import('./systems.mjs').System & { readonly promises: readonly import('./promises.mjs').Promised[] }} Covered */

const INTRODUCTION = `# How five documented systems are covered

The examples do the work of five systems that are described in documents. For each statement of these documents, this page names the
test that proves it, or the reason why it is left out: it is solved in another way, or not supported yet. \`node scripts/examples.mjs\`
runs all tests and makes this page from the \`promises.yaml\` of each example.
`;

/**
 * docs/internals/systems.md: for each document, what is proven where, and what is left and why.
 * @param {readonly Covered[]} systems
 */
export function systemsPage(systems) {
  return `${[INTRODUCTION, ...systems.map(section)].join('\n')}`;
}

/** @param {Covered} system */
function section({ title, page, example, later, promises }) {
  const words = `[Its words and ours](../guides/coming-from/${page}).`;
  if (later !== undefined) return `## ${title}\n\n${later} ${words}\n`;
  const proven = promises.filter(({ test }) => test !== undefined);
  const left = promises.filter((promised) => promised.left !== undefined);
  const parts = [
    `## ${title}\n\n[The example](../../examples/${example}/README.md). ${words} Of ${promises.length} promises ${proven.length} are proven, and ${left.length} are left out.`,
    ...grouped(proven).map(([heading, entries]) => `### ${title}: ${heading}\n\n${entries.map(provenLine).join('\n')}`),
  ];
  if (left.length > 0) parts.push(`### ${title}: what is left out, and why\n\n${left.map(leftLine).join('\n')}`);
  return `${parts.join('\n\n')}\n`;
}

/** @param {readonly import('./promises.mjs').Promised[]} promises */
function grouped(promises) {
  /** @type {Map<string, import('./promises.mjs').Promised[]>} */
  const groups = new Map();
  for (const promised of promises) {
    const group = groups.get(promised.section) ?? [];
    groups.set(promised.section, [...group, promised]);
  }
  return [...groups];
}

/** @param {import('./promises.mjs').Promised} promised */
function provenLine({ promise, test = '' }) {
  const { file, name } = splitTest(test);
  return `- ${promise} [${escaped(name.replaceAll(' > ', ' › '))}](../../${file})`;
}

/** @param {import('./promises.mjs').Promised} promised */
function leftLine({ promise, section, left }) {
  return `- ${promise} (${section}) **Left out:** ${left}`;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll(/[[\]*_`<>]/g, '\\$&');
}
