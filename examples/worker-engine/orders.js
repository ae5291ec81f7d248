// @ts-check
// Compares one queue in the order `priority` with what the document has: a FIFO worker and a PRIORITY worker over one queue. A model
// of ten minutes, in steps of a second: two workers, tasks of a second, 600 ordinary tasks waiting, and new tasks in each second.
//   node examples/worker-engine/orders.js

/** @typedef {{ at: number, urgent: boolean }} Task */
/** @typedef {'fifo' | 'priority'} Order */

/**
 * @param {readonly Order[]} workers
 * @param {number} urgentRate urgent tasks a second
 */
export function tenMinutes(workers, urgentRate) {
  /** @type {Record<'urgent' | 'ordinary', Task[]>} */
  const waiting = { urgent: [], ordinary: Array.from({ length: 600 }, () => ({ at: 0, urgent: false })) };
  /** @type {number[]} */
  const waits = [];
  let [ordinary, dueUrgent, dueOrdinary] = [0, 0, 0];
  for (let now = 1; now <= 600; now++) {
    for (dueUrgent += urgentRate; dueUrgent >= 1; dueUrgent--) waiting.urgent.push({ at: now, urgent: true });
    for (dueOrdinary += 1.5; dueOrdinary >= 1; dueOrdinary--) waiting.ordinary.push({ at: now, urgent: false });
    for (const order of workers) {
      const task = next(waiting, order);
      if (task?.urgent) waits.push(now - task.at);
      else if (task) ordinary++;
    }
  }
  waits.sort((a, b) => a - b);
  return { ordinary, urgent: waits.length, urgentWait95: waits[Math.floor(0.95 * waits.length)] };
}

/**
 * @param {Record<'urgent' | 'ordinary', Task[]>} waiting
 * @param {Order} order
 */
function next({ urgent, ordinary }, order) {
  const isOlder = urgent[0] && (!ordinary[0] || urgent[0].at < ordinary[0].at);
  return order === 'priority' || isOlder ? (urgent.shift() ?? ordinary.shift()) : ordinary.shift();
}

if (process.argv[1]?.endsWith('orders.js')) {
  for (const rate of [0.4, 1.2, 2.2]) {
    console.log(`${rate} urgent tasks a second`);
    console.log('  a priority queue:        ', tenMinutes(['priority', 'priority'], rate));
    console.log('  FIFO and PRIORITY worker:', tenMinutes(['fifo', 'priority'], rate));
  }
}
