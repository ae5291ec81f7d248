import { versionOf } from '../../documents/version.ts';
import { ALL_PERMISSIONS } from '../permissions.ts';
import { route } from '../route.ts';

export const ME = [
  route({
    method: 'GET',
    path: 'me',
    summary: 'who asks, what they may do, and which store this is',
    needs: 'view',
    isPersonal: true,
    answer: 'me',
    run: async ({ actor, holdfast, readOnly, environment, basePath }) => {
      const { kind, where } = holdfast.describe();
      return {
        actor: actor.name,
        permissions: Object.fromEntries(ALL_PERMISSIONS.map((permission) => [permission, actor.can.has(permission)])),
        read_only: readOnly,
        version: versionOf(),
        store: { kind, name: where },
        environment: environment ?? null,
        base_path: basePath ?? null,
      };
    },
  }),
];
