/** What asks a process to end: Ctrl-C, `kill`, and a terminal that was closed. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type Interrupt = (typeof SIGNALS)[number];

/** From the third one on nobody wants to wait for anything. */
const LAST = 3;

/** npm and npx pass on the Ctrl-C that the terminal has sent to us already: what comes so close together is one. */
const ONE_PRESS_MS = 100;

/**
 * Calls back for every interrupt, with how many there were; the third ends the process. Until this is called, and after what
 * it returns is called, an interrupt ends the process as usual.
 */
export function onInterrupt(listener: (times: number, signal: Interrupt) => void): () => void {
  let times = 0;
  let last = Number.NEGATIVE_INFINITY;
  const hear = (signal: Interrupt) => {
    const now = performance.now();
    if (now - last < ONE_PRESS_MS) return;
    last = now;
    times += 1;
    if (times >= LAST) process.exit(128 + NUMBERS[signal]);
    listener(times, signal);
  };
  for (const signal of SIGNALS) process.on(signal, hear);
  return () => {
    for (const signal of SIGNALS) process.off(signal, hear);
  };
}

const NUMBERS: Readonly<Record<Interrupt, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
