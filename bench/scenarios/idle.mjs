import { defineTask } from '../../dist/index.js';
import { talkTo } from '../child.mjs';
import { alternate, moment, PACES } from '../measuring.mjs';
import { withOneRowCommit } from '../one-row.mjs';
import { payload } from '../payload.mjs';
import { atNewStore } from '../places.mjs';
import { ACROSS } from '../starts.mjs';
import { resultOf, withHoldfast } from '../store.mjs';

export const programs = {
  /** From the call of enqueue to the start of the handler, in a process that does nothing else. */
  'idle in process'(options) {
    let started;
    const probe = defineTask('probe', { run: () => started(moment()) });
    return atNewStore(options, (address) =>
      withHoldfast({ address, tasks: [probe] }, (holdfast) => {
        holdfast.work();
        return beside(address, 'idle in process', holdfast, async () => {
          const start = new Promise((resolve) => {
            started = resolve;
          });
          const from = moment();
          await holdfast.enqueue(probe, payload(0));
          return (await start) - from;
        });
      }),
    );
  },

  /** The same, where another process has the worker: after a pause, and so many times a second. */
  ...Object.fromEntries(ACROSS.map((scenario) => [scenario, (options) => acrossProcesses(scenario, options)])),

  async 'idle worker'({ address }) {
    const probe = defineTask('probe', {
      run() {
        process.send(moment());
      },
    });
    await withHoldfast({ address, tasks: [probe] }, async (holdfast) => {
      const told = new Promise((resolve) => process.once('disconnect', resolve));
      holdfast.work();
      process.send('working');
      await told;
    });
  },
};

function acrossProcesses(scenario, options) {
  return atNewStore(options, (address) =>
    withHoldfast({ address }, async (holdfast) => {
      const worker = talkTo('holdfast', 'idle worker', { address });
      await worker.next();
      try {
        const wait = async () => {
          const start = worker.next();
          const from = moment();
          await holdfast.enqueue('probe', payload(0));
          return (await start) - from;
        };
        return await beside(address, scenario, holdfast, wait);
      } finally {
        await worker.end();
      }
    }),
  );
}

/** The waits, and between them, after the same pauses and on the same disk, the least that a durable queue can wait for. */
function beside(address, scenario, holdfast, wait) {
  return withOneRowCommit(address, async (commit) => {
    const timed = async () => {
      const from = moment();
      await commit();
      return moment() - from;
    };
    const [commits, waits] = await alternate([timed, wait], PACES[scenario]);
    return [
      { system: 'one-row commit', scenario, durability: 'full', ...commits },
      resultOf(scenario, holdfast, waits),
    ];
  });
}
