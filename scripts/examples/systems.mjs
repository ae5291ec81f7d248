// @ts-check

/**
 * The systems whose documents Holdfast answers. Each has an example with its promises, or says why it has none yet.
 * @typedef {object} System
 * @property {string} title
 * @property {string} page its page in docs/guides/coming-from
 * @property {string} [example] its folder in examples
 * @property {string} [later] where it has no example
 */

/** @type {readonly System[]} */
export const SYSTEMS = [
  { title: 'Pending moves', page: 'pending-moves.md', example: 'tidy' },
  { title: 'Run retry', page: 'run-retry.md', example: 'runs' },
  { title: 'Worker engine', page: 'worker-engine.md', example: 'worker-engine' },
  { title: 'Connector policies', page: 'connectors.md', example: 'ingestion' },
  { title: 'Analysis queue', page: 'analysis-queue.md', example: 'analysis' },
];
