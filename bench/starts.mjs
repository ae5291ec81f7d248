// How long another system takes from a call that enqueues to the start of the handler.
import { talkTo } from './child.mjs';
import { alternate, moment, PACES } from './measuring.mjs';
import { payload } from './payload.mjs';

/** The scenarios in which another process has the worker. */
export const ACROSS = Object.keys(PACES).filter((scenario) => scenario !== 'idle in process');

/** The waits for a worker of this process. `work` starts one that calls a function at each start, and answers how to stop it. */
export async function startsInProcess(one, work) {
  let started;
  const stop = await work(() => started(moment()));
  const next = () =>
    new Promise((resolve) => {
      started = resolve;
    });
  const figures = await startsAfter(one, next, PACES['idle in process']);
  await stop();
  return figures;
}

/** The waits for the worker of another process, which is the system's program `idle worker`. */
export async function startsAcrossProcesses(scenario, one, system, options) {
  const worker = talkTo(system, 'idle worker', options);
  await worker.next();
  try {
    return await startsAfter(one, () => worker.next(), PACES[scenario]);
  } finally {
    await worker.end();
  }
}

/** That program: it works until it is left. */
export async function workUntilLeft(work) {
  const left = new Promise((resolve) => process.once('disconnect', resolve));
  const stop = await work(() => process.send(moment()));
  process.send('working');
  await left;
  await stop();
}

async function startsAfter(one, nextStart, pace) {
  const wait = async () => {
    const start = nextStart();
    const from = moment();
    await one(payload(0));
    return (await start) - from;
  };
  const [figures] = await alternate([wait], pace);
  return figures;
}
