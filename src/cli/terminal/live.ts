import { systemClock } from '../../clock.ts';
import { clockTime } from '../../views/times.ts';
import { Sleeper } from '../foreground/sleeper.ts';
import { type Problem, problemOf } from '../problem.ts';
import { FullScreen } from './full-screen.ts';
import { onInterrupt } from './interrupts.ts';
import { type Key, KeyReader } from './keys.ts';
import { isJobOfShell } from './suspend.ts';
import type { Terminal } from './terminal.ts';

const EVERY_MS = 1_000;

/** After so many seconds without an answer, a person is told. */
const QUIET_WAITS = 3;

/** Reading takes at most one part in so many of the time: a large store is read less often. */
const READING_SHARE = 20;

export interface Size {
  readonly rows: number;
  readonly columns: number;
}

/** What `live` shows. */
export interface LiveView {
  /** Reads what is to be shown. Called each second. */
  read(): Promise<void>;
  /**
   * Says from now on that what was read last is old. `problem`: why reading failed, which is tried again. Without it, the store has not
   * answered for some time, for example because its server restarts.
   */
  markOld(problem?: Problem): void;
  /** The lines of the whole screen. */
  draw(size: Size): readonly string[];
  /** What a key does; false if it means nothing to it: then q ends, and p pauses. */
  press(key: Key): Promise<boolean>;
  /** Whether reading is paused. */
  paused?: boolean;
}

/** Draws again each second and after each key, until q, Ctrl-C or a signal ends it. The terminal is as before afterwards. */
export async function live({ out }: Terminal, view: LiveView): Promise<void> {
  const sleeper = new Sleeper();
  const { stdin, stdout } = process;
  let ended = false;
  let failed: { readonly error: unknown } | undefined;
  let end = () => {};
  const asked = new Promise<void>((resolve) => {
    end = () => {
      ended = true;
      sleeper.wake();
      resolve();
    };
  });
  const draw = () => {
    if (!ended) screen.draw(view.draw({ rows: stdout.rows || 24, columns: out.columns }));
  };
  const screen = new FullScreen(out, draw);
  const read = async () => {
    try {
      await view.read();
    } catch (error) {
      const problem = problemOf(error);
      if (!problem.retryable) throw error;
      view.markOld(problem);
    }
  };
  /** Returns whether the store answered at once. */
  const readAndDraw = async (): Promise<boolean> => {
    let isRead = false;
    let isPrompt = true;
    const reading = read().finally(() => {
      isRead = true;
      sleeper.wake();
    });
    for (let waits = 1; !isRead && !ended; waits += 1) {
      await Promise.race([reading, asked, sleeper.sleep(EVERY_MS)]);
      if (isRead || waits < QUIET_WAITS) continue;
      isPrompt = false;
      view.markOld();
      draw();
    }
    return isPrompt;
  };
  const press = async (key: Key): Promise<void> => {
    if (ended || (await view.press(key))) return;
    const typed = 'typed' in key ? key.typed : undefined;
    if (typed === 'q') end();
    if (typed === 'p') {
      view.paused = view.paused !== true;
      sleeper.wake();
    }
  };
  // One key after the other. None is lost while an earlier one is carried out.
  let pressed = Promise.resolve();
  const keys = new KeyReader();
  const onData = (sent: Buffer) => {
    for (const key of keys.read(sent)) {
      if ('name' in key && key.name === 'interrupt') end();
      else if ('name' in key && key.name === 'suspend') suspend();
      else {
        pressed = pressed
          .then(() => press(key))
          .then(draw)
          .catch((error: unknown) => {
            failed ??= { error };
            end();
          });
      }
    }
  };
  const onResize = () => {
    screen.clear();
    draw();
  };
  const stopListening = onInterrupt(end);
  stdout.on('resize', onResize);
  // A terminal that is closed.
  stdin.on('end', end).on('error', end);
  stdin.on('data', onData);
  screen.open();
  try {
    while (!ended) {
      const began = performance.now();
      const isPrompt = view.paused || (await readAndDraw());
      draw();
      const took = performance.now() - began;
      if (!ended) await sleeper.sleep(isPrompt ? Math.max(EVERY_MS, took * READING_SHARE) : EVERY_MS);
    }
    if (failed) throw failed.error;
  } finally {
    ended = true;
    stdout.off('resize', onResize);
    stdin.off('data', onData).off('end', end).off('error', end);
    stdin.on('error', () => {});
    stdin.pause();
    stopListening();
    screen.close();
  }
}

/** The time of day, as all commands show it. */
export function timeNow(): string {
  const now = systemClock.now();
  return clockTime(now, now);
}

/**
 * As the terminal would do for Ctrl-Z: all processes of this job are stopped, such as npx and this one. Without a shell that has
 * jobs, as in `ssh -t HOST holdfast top` or `docker run -it`, nobody could continue them.
 */
function suspend(): void {
  if (isJobOfShell()) process.kill(0, 'SIGTSTP');
}
