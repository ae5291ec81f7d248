/** What names that are not among the most frequent are counted as. */
export const OTHER = '_other';

/**
 * Keeps the most frequent of any number of names. While there are few, each keeps its name. When there are more than `most`, a new
 * name is `_other` until it comes again while it is remembered; rare names are forgotten to make room.
 */
export class FrequentNames {
  readonly #most: number;
  readonly #known = new Map<string, Known>();
  #wasFull = false;
  #missed = 0;

  constructor(most: number) {
    this.#most = most;
  }

  nameOf(name: string): string {
    const known = this.#known.get(name);
    if (known) {
      known.count += 1;
      return known.stored;
    }
    if (this.#known.size < this.#most) {
      const stored = storable(name);
      this.#known.set(name, { stored, count: 1 });
      return this.#wasFull ? OTHER : stored;
    }
    this.#wasFull = true;
    this.#missed += 1;
    if (this.#missed === this.#most) this.#forgetRare();
    return OTHER;
  }

  /** Each name that found no room takes one from each that has it. */
  #forgetRare(): void {
    this.#missed = 0;
    for (const [name, known] of this.#known) {
      known.count -= 1;
      if (known.count === 0) this.#known.delete(name);
    }
  }
}

interface Known {
  readonly stored: string;
  /** How often the name came since it was remembered, less what others took away. */
  count: number;
}

/** PostgreSQL reads no NUL and no half of a surrogate pair in JSON. */
function storable(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\ufffd');
}
