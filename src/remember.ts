/** How many values are remembered. They come from what handlers throw, so there may be any number of them. */
const MOST_REMEMBERED = 1_000;

/** Remembers a value that took long to make. If there are very many, all are forgotten first: those that are needed are made again. */
export function remember<Name, Value>(known: Map<Name, Value>, name: Name, value: Value): void {
  if (known.size >= MOST_REMEMBERED) known.clear();
  known.set(name, value);
}
