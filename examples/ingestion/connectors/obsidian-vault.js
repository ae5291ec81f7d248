// @ts-check
import { basename } from 'node:path';
import { defineTask, Failed } from 'holdfast';
import { parse } from 'yaml';
import { filesBelow, readWhole } from './files.js';

/**
 * Reads the notes of a vault: front matter, tags, and the notes that each one links to.
 * @param {import('../documents.js').Documents} documents
 * @param {(path: string) => void} [onFile]
 */
export function obsidianVault(documents, onFile = () => {}) {
  return defineTask('obsidian_vault', {
    /** @param {{ vault: string }} input */
    source: ({ vault }) => `vault:${vault}`,
    /** @param {{ vault: string }} input */
    async run({ vault }, { source }) {
      const before = await documents.of(source);
      const paths = await filesBelow(vault, '.md');
      const notes = new Map(paths.map((path) => [basename(path, '.md').toLowerCase(), path]));
      const found = [];
      for (const path of paths) {
        const { content, version } = await readWhole(vault, path, onFile);
        const { matter, text } = splitNote(content.toString(), path);
        const links = linksIn(text).flatMap((name) => notes.get(basename(name).toLowerCase()) ?? []);
        const title = String(matter.title ?? basename(path, '.md'));
        const tags = [matter.tags ?? []].flat().map(String);
        found.push({ id: path, version, title, links: [...new Set(links)], tags });
      }
      return documents.replace(source, before, { documents: found });
    },
  });
}

/**
 * A note without its front matter, and the front matter.
 * @param {string} note
 * @param {string} path
 * @returns {{ matter: Record<string, unknown>, text: string }}
 */
function splitNote(note, path) {
  const [whole = '', yaml = ''] = /^---\r?\n(.*?)^---\s*$/ms.exec(note) ?? [];
  try {
    return { matter: Object(parse(yaml)), text: note.slice(whole.length) };
  } catch (cause) {
    const message = `The front matter of ${path} is no YAML: ${cause instanceof Error ? cause.message : cause}`;
    throw new Failed(message, { kind: 'permanent', reason: 'note.front_matter', cause });
  }
}

/**
 * The notes that a text links to: `[[Note]]`, `[[folder/Note#Heading|text]]` and `![[Note]]`.
 * @param {string} text
 */
function linksIn(text) {
  return [...text.matchAll(/\[\[([^[\]|#]+)[^[\]]*\]\]/g)].map(([, name = '']) => name.trim());
}
