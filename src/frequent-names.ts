/** What names that are not among the most frequent are counted as. */
export const OTHER = '_other';

/**
 * Keeps the most frequent of any number of names. While there are few, each keeps its name. When there are more than `most`, a new
 * name is `_other` until it comes again while it is remembered; rare names are forgotten to make room.
 */
export class FrequentNames {
  readonly #most: number;
  /** How often each came since it was remembered, less what others took away. */
  readonly #counts = new Map<string, number>();
  #wasFull = false;
  #missed = 0;

  constructor(most: number) {
    this.#most = most;
  }

  nameOf(name: string): string {
    const count = this.#counts.get(name);
    if (count !== undefined) {
      this.#counts.set(name, count + 1);
      return storable(name);
    }
    if (this.#counts.size < this.#most) {
      this.#counts.set(name, 1);
      return this.#wasFull ? OTHER : storable(name);
    }
    this.#wasFull = true;
    this.#missed += 1;
    if (this.#missed === this.#most) this.#forgetRare();
    return OTHER;
  }

  /** Each name that found no room takes one from each that has it. */
  #forgetRare(): void {
    this.#missed = 0;
    for (const [name, count] of this.#counts) {
      if (count === 1) this.#counts.delete(name);
      else this.#counts.set(name, count - 1);
    }
  }
}

/** PostgreSQL reads no NUL and no half of a surrogate pair in JSON. */
function storable(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\ufffd');
}
