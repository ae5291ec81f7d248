import { setTimeout as delay } from 'node:timers/promises';

/** The package under test, and its store as the processes of a storm open it. */
export async function openPackage({ dist, kind, where }) {
  const holdfast = await import(new URL('index.js', dist));
  const { sqlite } = await import(new URL('store/sqlite/index.js', dist));
  const { postgres } = await import(new URL('store/postgres/index.js', dist));
  const store = kind === 'sqlite' ? sqlite(where) : postgres(where);
  return { ...holdfast, store, opened: (options) => openedWhenThere(holdfast, { store, ...options }) };
}

/** A process that begins while the server is away is told so after some seconds, and begins again. */
async function openedWhenThere({ openHoldfast }, options) {
  for (;;) {
    try {
      return await openHoldfast(options);
    } catch (error) {
      if (error.code !== 'store_unavailable') throw error;
      await delay(100);
    }
  }
}
