import { InvalidInputError } from '../../errors.ts';

/** Set on `globalThis` of a child process, so that all copies of the package know. */
export const IN_CHILD = Symbol.for('holdfast.child');

/** @throws InvalidInputError in a child process: its worker would start children of its own, without end. */
export function refuseWorkerInChild(): void {
  if (!(IN_CHILD in globalThis)) return;
  throw new InvalidInputError(
    'A child process of a worker imported a module that starts a worker. Put the definition into a module of its own, and name that one in `module`.',
  );
}
