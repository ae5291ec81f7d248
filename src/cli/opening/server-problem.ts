import { StoreError } from '../../errors.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { Problem } from '../problem.ts';
import type { ServerStore } from './store-location.ts';

const GLOBALLY = 'beside a holdfast that was installed with -g: npm install -g pg';

/** There is no store at this place, and the command does not create one. */
export class NoStore extends Problem {}

/** The problem for an error while a store on a server was opened, with the command to type next where it is known. */
export function problemAt({ name }: ServerStore, cli: Cli, error: unknown): unknown {
  if (!(error instanceof StoreError) || error.code !== 'store_unsupported') return error;
  if ((error.cause as NodeJS.ErrnoException | undefined)?.code === 'ERR_MODULE_NOT_FOUND') {
    return new Problem(error.code, error.message, { hints: [GLOBALLY], cause: error });
  }
  const { schema } = error;
  if (schema === undefined) return error;
  const migrate = cli.command('db migrate');
  if (schema === 0) {
    return new NoStore('store_unavailable', `there is no store at ${visible(name)}`, {
      why: ['The database exists, but it has no tables of Holdfast.'],
      hints: [
        `the first task makes them: ${cli.command('run -- CMD…')}`,
        `or make them as a role that may: ${migrate}`,
      ],
      cause: error,
    });
  }
  return new Problem(
    'store_unsupported',
    `the tables at ${visible(name)} are of an older Holdfast (schema ${schema})`,
    {
      why: ['Nothing was changed.'],
      hints: [`update them as a role that may: ${migrate}`],
      cause: error,
    },
  );
}
