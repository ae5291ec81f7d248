import { createHash } from 'node:crypto';

/**
 * The keys of a file, and the first line of each. It keeps 64 bits of a hash and the line number, 12 bytes for each key, so that
 * millions of keys fit into memory. Two of a million keys collide by chance in one of thirty million files.
 */
export class SeenKeys {
  #size = 0;
  #table = new Uint32Array(3 * 1_024);

  /** Returns the earlier line with this key of this type. If there is none, adds the key. */
  add(type: string, key: string, line: number): number | undefined {
    const digest = createHash('sha256').update(`${type}\0${key}`).digest();
    const [high, low] = [digest.readUInt32LE(0), digest.readUInt32LE(4)];
    const at = this.#placeOf(high, low);
    const before = this.#table[at + 2];
    if (before) return before;
    this.#table.set([high, low, line], at);
    this.#size += 1;
    if (this.#size * 2 > this.#table.length / 3) this.#grow();
    return undefined;
  }

  /** The place of this hash, or the free place for it. Line numbers begin at 1, so a place with line 0 is free. */
  #placeOf(high: number, low: number): number {
    const places = this.#table.length / 3;
    let place = low % places;
    for (;;) {
      const at = place * 3;
      if (this.#table[at + 2] === 0 || (this.#table[at] === high && this.#table[at + 1] === low)) return at;
      place = (place + 1) % places;
    }
  }

  #grow(): void {
    const before = this.#table;
    this.#table = new Uint32Array(before.length * 2);
    for (let at = 0; at < before.length; at += 3) {
      if (before[at + 2] !== 0) {
        const row = before.subarray(at, at + 3);
        this.#table.set(row, this.#placeOf(row[0] as number, row[1] as number));
      }
    }
  }
}
