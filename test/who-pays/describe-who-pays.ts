import { describe, expect, test } from 'vitest';
import { type StoreKind, useScene } from './scene.ts';
import { chargedOf, chargeOf, type Payer, type Situation } from './situation.ts';
import { FAILURES } from './situations/failures.ts';
import { FREEZES } from './situations/freezes.ts';
import { LOSSES } from './situations/losses.ts';
import { OUT_OF_SIGHT } from './situations/out-of-sight.ts';
import { SOURCES } from './situations/sources.ts';
import { STOPS } from './situations/stops.ts';
import { STRAYS } from './situations/strays.ts';
import { WORKER_FAULTS } from './situations/worker-faults.ts';

const TABLE: Readonly<Record<string, readonly Situation[]>> = {
  'a failure that a handler reports': FAILURES,
  'what a source is at fault for': SOURCES,
  'a worker that is lost': LOSSES,
  'a worker that is out of sight': OUT_OF_SIGHT,
  'a process that is frozen': FREEZES,
  'a worker that is told to stop': STOPS,
  'a fault of the worker': WORKER_FAULTS,
  'what a handler left behind': STRAYS,
};

/** Who is charged for what, with real processes on one kind of store. */
export function describeWhoPays(kind: StoreKind): void {
  const scene = useScene(kind);
  for (const [what, situations] of Object.entries(TABLE)) {
    describe(what, () => {
      for (const situation of situations.filter(({ only = kind }) => only === kind)) {
        const { name, payer, state, executions, explains, shows, happen } = situation;
        test(`${name}: ${wordsOf(payer)}`, async () => {
          const id = await happen(scene());
          const task = await scene().task(id);
          const explanation = await scene().explain(id);
          expect(task, explanation).toMatchObject({ state, ...(executions !== undefined && { executions }) });
          expect(chargedOf(task, await scene().executions(id)), explanation).toEqual(chargeOf(payer));
          expect(explanation).toMatch(explains);
          if (shows !== undefined) expect(await scene().command('show', String(id))).toMatch(shows);
          expect(await scene().holdfast.store.upkeep.verify()).toEqual([]);
        });
      }
    });
  }
}

function wordsOf(payer: Payer): string {
  if (payer === 'nobody') return 'nobody is charged';
  if (payer === 'a deferral') return 'it is a deferral';
  if (payer === 'the source') return 'its source is charged';
  if (payer === 'a charge that was refunded') return 'the charge is taken back';
  if ('recoveries' in payer) return `the task is charged ${payer.recoveries} recoveries`;
  return `the task is charged an attempt for ${payer.attempt}`;
}
