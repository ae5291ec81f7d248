// What the tasks of a storm do: each has a plan in its input, which the judge knows too.
export const MAX_ATTEMPTS = 3;
export const SOURCES = ['a', 'b', 'c', 'd', 'e'];
export const QUEUES = ['plain', 'fair', 'urgent'];

/** So often a task is drawn that kills its process; each of them costs five workers and disturbs all that run beside it. */
const POISON = 0.004;

const pick = (random, from) => from[Math.floor(random() * from.length)];

/** A task by chance: an input, and the options that it is enqueued with. */
export function drawTask(number, random) {
  return {
    input: { number, ...drawPlan(random) },
    options: {
      queue: pick(random, QUEUES),
      source: pick(random, SOURCES),
      priority: Math.floor(random() * 5),
      ...(random() < 0.1 && { delay: `${Math.floor(random() * 500)}ms` }),
    },
  };
}

function drawPlan(random) {
  const roll = random();
  const ms = Math.floor(random() * 60);
  if (roll < POISON) return { plan: 'poison', ms: 0 };
  if (roll < 0.04) return { plan: 'block', ms: Math.floor(random() * 1_500) };
  if (roll < 0.08) return { plan: 'success', ms: 1_000 + Math.floor(random() * 2_000) };
  if (roll < 0.12) return { plan: 'later', ms };
  if (roll < 0.15) return { plan: 'permanent', ms };
  if (roll < 0.27) return { plan: 'failure', failures: 1 + Math.floor(random() * MAX_ATTEMPTS), ms };
  if (roll < 0.37) return { plan: 'once', ms: 200 + ms * 10 };
  return { plan: 'success', ms };
}
