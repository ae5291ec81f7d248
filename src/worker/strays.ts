import { AsyncLocalStorage } from 'node:async_hooks';

/** The execution whose code runs. Timers and promises that a handler leaves behind keep this context. */
export interface Owner {
  /** Called with an error that nobody waits for. */
  readonly onStray: (thrown: unknown) => void;
}

const owners = new AsyncLocalStorage<Owner>();
const listening = new Set<object>();

/** Runs a handler so that its stray errors can be told apart from those of everything else in the process. */
export function ownedBy<T>(owner: Owner, run: () => T): T {
  return owners.run(owner, run);
}

/** Whether the present code was started by a handler. */
export function isOwned(): boolean {
  return owners.getStore() !== undefined;
}

/**
 * Listens for unhandled rejections and exceptions while any worker needs it. Errors that belong to no handler are left to Node's
 * own rules, or to other listeners.
 */
export function listenForStrays(listener: object): void {
  if (listening.size === 0) listen();
  listening.add(listener);
}

export function stopListeningForStrays(listener: object): void {
  if (listening.delete(listener) && listening.size === 0) stopListening();
}

/** Ends the process by Node's own rules, unless somebody else listens. */
export function leaveToNode(thrown: unknown): void {
  owners.exit(() => leave(() => Promise.reject(thrown)));
}

function listen(): void {
  process.on('unhandledRejection', onRejection);
  process.on('uncaughtException', onException);
}

function stopListening(): void {
  process.off('unhandledRejection', onRejection);
  process.off('uncaughtException', onException);
}

function onRejection(reason: unknown): void {
  const owner = owners.getStore();
  if (owner) owner.onStray(reason);
  else if (process.listenerCount('unhandledRejection') === 1) leave(() => Promise.reject(reason));
}

function onException(error: unknown): void {
  const owner = owners.getStore();
  if (owner) owner.onStray(error);
  else if (process.listenerCount('uncaughtException') === 1) {
    leave(() => {
      throw error;
    });
  }
}

/** Node's own rules apply only if nobody listens, so the error is thrown again while our listeners are removed. */
function leave(happen: () => unknown): void {
  stopListening();
  process.nextTick(happen);
  setImmediate(() => {
    if (listening.size > 0) listen();
  });
}
