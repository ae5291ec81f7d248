import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';

const STREAMS = [0, 1, 2] as const;

/**
 * When it ends, Node restores the mode of the terminals that it began with. If one was closed meanwhile, Node fails at this, and ends
 * by a signal with a core dump (seen in Node 20). It leaves alone what is no open file any more.
 */
export function endWithClosedTerminal(): void {
  const terminals = STREAMS.filter((stream) => isatty(stream));
  if (terminals.length === 0) return;
  process.on('exit', () => {
    for (const stream of terminals) if (!isatty(stream)) closeSync(stream);
  });
}
