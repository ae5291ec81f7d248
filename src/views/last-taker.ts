import type { LastTaker } from '../store/store.ts';
import { ago } from './times.ts';
import { visible } from './visible.ts';

/** What runs tasks of a type that no command can run: `start the program that defines it: mail.js on web-1, last seen 12m ago`. */
export function programToStart(taker: LastTaker | undefined, now: number, what: 'it' | 'them' = 'it'): string {
  const start = `start the program that defines ${what}`;
  return taker ? `${start}: ${lastTakerWords(taker, now)}` : `${start} (no worker has taken ${what} yet)`;
}

/** `/srv/app/mail.js on web-1 (worker mail-1), last seen 12m ago`. */
export function lastTakerWords({ worker, host, program, at }: LastTaker, now: number): string {
  const name = `worker ${visible(worker)}`;
  const what =
    program === undefined ? `${name} on ${visible(host)}` : `${visible(program)} on ${visible(host)} (${name})`;
  return `${what}, last seen ${ago(at, now)}`;
}
