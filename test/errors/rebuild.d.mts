/** A thrown value as a line of `cases.dev.jsonl` describes it. */
export function rebuild(error: unknown): unknown;
