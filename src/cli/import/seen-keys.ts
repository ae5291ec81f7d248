import { createHash } from 'node:crypto';

/**
 * Which line had a key first. Of each it keeps 64 bits of a hash and the line, 12 bytes, so that millions have room; that
 * two of a million look alike by chance happens once in thirty million such files.
 */
export class KeyBook {
  #size = 0;
  #table = new Uint32Array(3 * 1_024);

  /** The line that had this key of this type before; else notes it. */
  note(type: string, key: string, line: number): number | undefined {
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

  /** Where it stands, or would: lines begin at 1, so a line of 0 is a free place. */
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
