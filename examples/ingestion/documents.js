// @ts-check
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * A document that a connector has read. Its version tells whether it has changed.
 * @typedef {{ id: string, version: string, title: string, links?: readonly string[], tags?: readonly string[] }} Document
 *
 * What is known of a source: its documents, and where its next reading begins.
 * @typedef {{ documents: readonly Document[], position?: string }} Known
 *
 * What came of one reading of a source.
 * @typedef {{ read: number, unchanged: number, removed: number }} Ingested
 */

/** The documents of all sources, in a folder: a JSON file for each source. */
export class Documents {
  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
  }

  /**
   * What is known of a source.
   * @param {string} source
   * @returns {Promise<Known>}
   */
  async of(source) {
    try {
      return JSON.parse(await readFile(this.#fileOf(source), 'utf8'));
    } catch (error) {
      if (Object(error).code === 'ENOENT') return { documents: [] };
      throw error;
    }
  }

  /**
   * Replaces what is known of a source. A reader sees the old file or the new one, and never half of one. The same reading twice leaves the same file, so a retry does no harm.
   * @param {string} source
   * @param {Known} before
   * @param {Known} now
   * @returns {Promise<Ingested>}
   */
  async replace(source, before, now) {
    await mkdir(this.folder, { recursive: true });
    const file = this.#fileOf(source);
    await writeFile(`${file}.new`, JSON.stringify(now));
    await rename(`${file}.new`, file);
    const versions = new Map(before.documents.map(({ id, version }) => [id, version]));
    const unchanged = now.documents.filter(({ id, version }) => versions.get(id) === version).length;
    const kept = now.documents.filter(({ id }) => versions.has(id)).length;
    return { read: now.documents.length - unchanged, unchanged, removed: before.documents.length - kept };
  }

  /** @param {string} source */
  #fileOf(source) {
    return join(this.folder, `${createHash('sha256').update(source).digest('hex').slice(0, 16)}.json`);
  }
}
