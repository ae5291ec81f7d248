import { doctorContent, isSound, storeChecks } from '../../documents/doctor.ts';
import { storeContent } from '../../documents/store-content.ts';
import { type Route, route } from '../route.ts';

/** As the exit code of `holdfast doctor`. */
const UNSOUND = 8;

export const SYSTEM: readonly Route[] = [
  route({
    method: 'GET',
    path: 'doctor',
    summary: 'whether the store, its clock, its workers and, with `holdfast ui`, its disk are sound, and what to do',
    needs: 'view',
    answer: 'doctor',
    run: async ({ holdfast, commands, refusedConfig, machineChecks }) => {
      const checks = [
        ...(await storeChecks(commands, holdfast, await refusedConfig?.())),
        ...(machineChecks?.() ?? []),
      ];
      return doctorContent(checks, isSound(checks) ? 0 : UNSOUND);
    },
  }),
  route({
    method: 'GET',
    path: 'db',
    summary: 'where the store is, what it is, and how much space it takes',
    needs: 'view',
    answer: 'db',
    run: ({ holdfast }) => storeContent(holdfast, holdfast.describe().where),
  }),
];
