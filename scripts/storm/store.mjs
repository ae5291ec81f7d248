/** The package under test, and its store as the processes of a storm open it. */
export async function openPackage({ dist, kind, where }) {
  const holdfast = await import(new URL('index.js', dist));
  const { sqlite } = await import(new URL('store/sqlite/index.js', dist));
  const { postgres } = await import(new URL('store/postgres/index.js', dist));
  return { ...holdfast, store: kind === 'sqlite' ? sqlite(where) : postgres(where) };
}
