import { signal } from '@preact/signals';

/** The time of this browser, which moves once a second while somebody looks. Relative times follow it. */
export const now = signal(Date.now());

export function followClock(): void {
  const move = () => {
    if (!document.hidden) now.value = Date.now();
  };
  setInterval(move, 1_000);
  document.addEventListener('visibilitychange', move);
}
