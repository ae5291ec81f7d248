import { systemClock } from '../../clock.ts';
import { clockTime } from '../../views/times.ts';
import { Sleeper } from '../foreground/sleeper.ts';
import { onInterrupt } from './interrupts.ts';
import type { Terminal } from './terminal.ts';

const EVERY_MS = 1_000;

/** The other screen of a terminal, without a cursor, where long lines are cut; and back to what was there before. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const [HOME, REST_OF_LINE, REST_OF_SCREEN] = ['\u001b[H', '\u001b[K', '\u001b[J'];

/** Draws again each second, until a key or a signal ends it. The terminal is as before afterwards, whatever ended it. */
export async function live({ out }: Terminal, frame: () => Promise<string[]>): Promise<void> {
  const sleeper = new Sleeper();
  const { stdin } = process;
  let [ended, paused] = [false, false];
  const end = () => {
    ended = true;
    sleeper.wake();
  };
  const onKey = (key: Buffer) => {
    const pressed = key.toString();
    if (pressed === 'q' || pressed === '\u0003') end();
    if (pressed === 'p') {
      paused = !paused;
      sleeper.wake();
    }
  };
  const leave = () => {
    stdin.setRawMode(false);
    out.raw(LEAVE);
  };
  const stopListening = onInterrupt(end);
  const onResize = () => sleeper.wake();
  process.once('exit', leave);
  process.stdout.on('resize', onResize);
  stdin.setRawMode(true);
  stdin.on('data', onKey);
  out.raw(ENTER);
  try {
    while (!ended) {
      if (!paused) {
        const lines = await frame();
        const now = systemClock.now();
        const clock = clockTime(now, now);
        const all = [...lines, out.paint('idle', `${clock}  q: quit  p: pause`)];
        out.raw(`${HOME}${all.map((line) => `${line}${REST_OF_LINE}`).join('\r\n')}${REST_OF_SCREEN}`);
      }
      if (!ended) await sleeper.sleep(EVERY_MS);
    }
  } finally {
    process.off('exit', leave);
    process.stdout.off('resize', onResize);
    stdin.off('data', onKey);
    stdin.pause();
    stopListening();
    leave();
  }
}
