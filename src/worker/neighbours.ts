import { livenessOf, type ProcessIdentity } from '../store/liveness.ts';

/** How many processes are checked in one pulse: each check reads /proc. */
const MOST_AT_ONCE = 20;

/** The other processes of this host that have workers of the store. The death of one is noticed within seconds. */
export class Neighbours {
  #processes: readonly ProcessIdentity[] = [];
  #next = 0;

  /** Sets the processes that a recovery has just found. */
  set(processes: readonly ProcessIdentity[]): void {
    this.#processes = processes;
  }

  get any(): boolean {
    return this.#processes.length > 0;
  }

  /** Whether one of the processes that it checks this time has died. */
  hasLost(): boolean {
    const all = this.#processes;
    for (let n = 0; n < Math.min(all.length, MOST_AT_ONCE); n += 1) {
      this.#next = (this.#next + 1) % all.length;
      if (livenessOf(all[this.#next] as ProcessIdentity) === 'dead') return true;
    }
    return false;
  }
}
