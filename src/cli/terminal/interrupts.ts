/** The signals that ask a process to end: of Ctrl-C, of `kill`, and of a closed terminal. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type Interrupt = (typeof SIGNALS)[number];

/** npm and npx pass on a Ctrl-C that the terminal has sent to us too. The same signal within this time is the same key press. */
const ONE_PRESS_MS = 100;

/** A third interrupt ends the process at once if it comes this long after the second one. */
const PATIENCE_MS = 1_000;

/**
 * Calls back for an interrupt, and for a second one. Until this is called, and after what it returns is called, an interrupt
 * ends the process as usual.
 */
export function onInterrupt(
  listener: (times: number, signal: Interrupt) => void,
  signals: readonly Interrupt[] = SIGNALS,
): () => void {
  let times = 0;
  let last: { readonly signal: Interrupt; readonly at: number } | undefined;
  const hear = (signal: Interrupt) => {
    const at = performance.now();
    if (last?.signal === signal && at - last.at < ONE_PRESS_MS) return;
    if (last && times >= 2) {
      if (at - last.at > PATIENCE_MS) process.exit(128 + NUMBERS[signal]);
      return;
    }
    times += 1;
    last = { signal, at };
    listener(times, signal);
  };
  for (const signal of signals) process.on(signal, hear);
  return () => {
    for (const signal of signals) process.off(signal, hear);
  };
}

const NUMBERS: Readonly<Record<Interrupt, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
