import type { Operations } from '../queue/operations.ts';

/** Where the store is, what it is, and how much space it takes: the document of `holdfast db --json`. */
export async function storeContent(holdfast: Operations, name: string) {
  const { kind, schema, durability, driver } = holdfast.describe();
  const { bytes, free, log, deadRows } = await holdfast.administration.space();
  return {
    store: name,
    kind,
    schema_version: schema,
    durability,
    driver,
    bytes,
    free_bytes: free ?? null,
    log_bytes: log ?? null,
    dead_rows: deadRows ?? null,
  };
}
