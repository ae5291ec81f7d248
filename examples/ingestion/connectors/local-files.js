// @ts-check
import { defineTask } from 'holdfast';
import { filesBelow, readWhole } from './files.js';

/**
 * Reads the files of a folder. Each folder is a source of its own.
 * @param {import('../documents.js').Documents} documents
 * @param {(path: string) => void} [onFile]
 */
export function localFiles(documents, onFile = () => {}) {
  return defineTask('local_files', {
    /** @param {{ folder: string }} input */
    source: ({ folder }) => `folder:${folder}`,
    /** @param {{ folder: string }} input */
    async run({ folder }, { source }) {
      const before = await documents.of(source);
      const found = [];
      for (const path of await filesBelow(folder)) {
        const { version } = await readWhole(folder, path, onFile);
        found.push({ id: path, version, title: path });
      }
      return documents.replace(source, before, { documents: found });
    },
  });
}
