import { openHoldfast } from '../../dist/index.js';
import { sqlite } from '../../dist/store/sqlite/index.js';

/** A later acknowledgement of a task takes the place of an earlier one. */
const ORDER = ['enqueued', 'scheduled', 'ready', 'running', 'succeeded', 'dead', 'cancelled', 'needs_manual'];
const ENDED = ORDER.slice(4);

/** Adds lines such as `succeeded 41` to what was acknowledged, by id. */
export function note(acknowledged, text) {
  for (const line of text.trim().split('\n')) {
    const [what, id] = line.split(' ');
    const before = acknowledged.get(id);
    if (id !== undefined && ORDER.indexOf(what) > ORDER.indexOf(before)) acknowledged.set(id, what);
  }
}

/** What is wrong with a store of which this was acknowledged; undefined where nothing is. */
export async function wrongWith(path, acknowledged) {
  let holdfast;
  try {
    holdfast = await openHoldfast({ store: sqlite(path, { durability: 'process' }) });
    const states = await statesOf(holdfast);
    for (const [id, what] of acknowledged) {
      const state = states.get(Number(id));
      if (state === undefined) return `task ${id} was acknowledged as ${what}, and is not there`;
      if (ENDED.includes(what) && state !== what) return `task ${id} was acknowledged as ${what}, and is ${state}`;
    }
    return (await holdfast.store.upkeep.verify())[0];
  } catch (error) {
    return `it cannot be opened: ${error.message}`;
  } finally {
    await holdfast?.close();
  }
}

async function statesOf(holdfast) {
  const states = new Map();
  for (let before; ; ) {
    const page = await holdfast.list({ limit: 1_000, ...(before !== undefined && { before }) });
    for (const { id, state } of page) states.set(id, state);
    if (page.length < 1_000) return states;
    before = page.at(-1).id;
  }
}
