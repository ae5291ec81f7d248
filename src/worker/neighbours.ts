import { livenessOf, type ProcessIdentity } from '../store/liveness.ts';

/** How many are looked at in one pulse: each costs a look into /proc. */
const MOST_AT_ONCE = 20;

/** The processes of this host in which other workers of the store are, so that the death of one is noticed within seconds. */
export class Neighbours {
  #processes: readonly ProcessIdentity[] = [];
  #next = 0;

  /** Who they are, as recovery has just found them. */
  set(processes: readonly ProcessIdentity[]): void {
    this.#processes = processes;
  }

  get any(): boolean {
    return this.#processes.length > 0;
  }

  /** Whether one of those that it looks at this time has died. */
  hasLost(): boolean {
    const all = this.#processes;
    for (let n = 0; n < Math.min(all.length, MOST_AT_ONCE); n += 1) {
      this.#next = (this.#next + 1) % all.length;
      if (livenessOf(all[this.#next] as ProcessIdentity) === 'dead') return true;
    }
    return false;
  }
}
