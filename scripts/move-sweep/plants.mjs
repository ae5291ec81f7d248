// Bugs that the sweep must find: in a file of dist, `find` is replaced by `replace`. `where` names the scenarios that can show it.
const RECORD = 'handlers/move-record.js';

export const PLANTS = {
  'that it ran before is proof': {
    patches: [
      {
        file: 'handlers/move.js',
        find: /if \(target === undefined \|\| !\(record\.proves\(target\) \|\| halfStep !== undefined\)\)/,
        replace: 'if (target === undefined)',
      },
    ],
    where: ({ source, destination }) => source !== 'as it was left' && destination === 'another file',
  },
  'the number of an inode is proof': {
    patches: [
      {
        file: RECORD,
        find: 'return now.device === known.device ? sameBirth || sameContent : sameBirth && sameContent;',
        replace: 'return true;',
      },
    ],
    where: ({ thing, device, earlier, killed, source, destination }) =>
      `${thing} ${device}` === 'file one' &&
      earlier === 'no folder for it' &&
      killed === 'before it began' &&
      source === 'removed' &&
      destination === 'another file with the same inode number',
  },
  'any copy is its own': {
    patches: [{ file: RECORD, find: 'return this.#madeOf(file) !== undefined;', replace: 'return true;' }],
    where: ({ device, source, destination }) =>
      device === 'two' && source === 'as it was left' && destination === 'a copy of the source',
  },
  'any empty private folder is its own': {
    patches: [{ file: 'handlers/move.js', find: '!record.isPlace(target) || ', replace: '' }],
    where: ({ thing, killed, source, destination }) =>
      thing === 'folder' &&
      killed === 'before it began' &&
      source === 'as it was left' &&
      destination === 'an empty private folder',
  },
  'nothing is recorded': {
    patches: [{ file: RECORD, find: 'await this.#task.saveCheckpoint({ move: saved });', replace: '' }],
    where: ({ killed, source, destination }) =>
      killed === 'never' && source === 'as it was left' && destination === 'as it was left',
  },
};
