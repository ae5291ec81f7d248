/** The unit in which a disk writes: one is there wholly, not at all, or damaged. */
const SECTOR = 512;

/** What a disk holds when the power goes: what was synced, and of what was written since anything or nothing. */
export class Disk {
  /** By name: what is certainly there, and what was done since the last sync. */
  #files = new Map();
  #unlinked = new Set();
  /** The last so many syncs of each file did nothing, for the planted bug. */
  #ignored = 0;

  constructor({ ignoreSyncs = 0 } = {}) {
    this.#ignored = ignoreSyncs;
  }

  apply(event) {
    if (event.kind === 'sync_folder') {
      for (const name of this.#unlinked) this.#files.delete(name);
      this.#unlinked.clear();
    } else if (event.kind === 'unlink') this.#unlinked.add(event.file);
    else if (event.kind === 'sync') this.#sync(this.#file(event.file));
    else if (event.kind === 'write' || event.kind === 'truncate') {
      this.#unlinked.delete(event.file);
      this.#file(event.file).pending.push(event);
    }
  }

  /** One of the states that the disk may be in, by these dice. */
  image(mode, random) {
    const image = new Map();
    for (const [name, file] of this.#files) {
      if (this.#unlinked.has(name) && random() < 0.5) continue;
      const bytes = new Bytes(file.durable);
      const kept = Math.floor(random() * (file.pending.length + 1));
      for (const [n, event] of file.pending.entries()) strike(bytes, event, mode, random, n < kept);
      image.set(name, bytes.buffer);
    }
    return image;
  }

  #file(name) {
    let file = this.#files.get(name);
    if (!file) {
      file = { durable: Buffer.alloc(0), pending: [], syncs: [] };
      this.#files.set(name, file);
    }
    return file;
  }

  #sync(file) {
    file.syncs.push(file.pending.length);
    if (file.syncs.length <= this.#ignored) return;
    const settled = file.syncs.shift();
    const bytes = new Bytes(file.durable);
    for (const event of file.pending.splice(0, settled)) apply(bytes, event);
    file.syncs = file.syncs.map((count) => count - settled);
    file.durable = bytes.buffer;
  }
}

export const MODES = ['dropped', 'torn', 'garbage', 'lost'];

/**
 * `lost`: nothing of it is there. `torn`: all up to some write, and some later ones in part. `dropped`: any sectors.
 * `garbage`: as dropped, and those that are missing hold anything.
 */
function strike(bytes, event, mode, random, isBefore) {
  if (mode === 'lost') return;
  if (event.kind === 'truncate') {
    if (mode === 'torn' ? isBefore : random() < 0.5) bytes.truncate(event.size);
    return;
  }
  if (mode === 'torn') {
    if (isBefore) bytes.write(event.offset, event.data);
    else if (random() < 0.1)
      bytes.write(event.offset, event.data.subarray(0, Math.floor(random() * event.data.length)));
    return;
  }
  for (const [offset, part] of sectorsOf(event)) {
    const roll = random();
    if (roll < 0.5) bytes.write(offset, part);
    else if (mode === 'garbage' && roll < 0.75) bytes.write(offset, garbage(part.length, random));
  }
}

function apply(bytes, event) {
  if (event.kind === 'truncate') bytes.truncate(event.size);
  else bytes.write(event.offset, event.data);
}

function* sectorsOf({ offset, data }) {
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + SECTOR - ((offset + from) % SECTOR));
    yield [offset + from, data.subarray(from, to)];
    from = to;
  }
}

function garbage(length, random) {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

/** A file's bytes, which grow as they are written; what was skipped is zero. */
class Bytes {
  buffer;

  constructor(from) {
    this.buffer = Buffer.from(from);
  }

  write(offset, data) {
    const end = offset + data.length;
    if (end > this.buffer.length) this.buffer = Buffer.concat([this.buffer, Buffer.alloc(end - this.buffer.length)]);
    data.copy(this.buffer, offset);
  }

  truncate(size) {
    if (size <= this.buffer.length) this.buffer = this.buffer.subarray(0, size);
    else this.write(size, Buffer.alloc(0));
  }
}
