import { seenStatus, statusContent } from '../../documents/status.ts';
import { type Route, route } from '../route.ts';

export const STATUS: readonly Route[] = [
  route({
    method: 'GET',
    path: 'status',
    summary: 'what needs attention first, how many tasks are in each state, and the workers',
    needs: 'view',
    answer: 'status',
    run: async ({ holdfast, commands, refusedConfig }) => ({
      exit: 0,
      ...statusContent(holdfast.describe().where, await seenStatus(commands, holdfast, await refusedConfig?.(), true)),
    }),
  }),
];
