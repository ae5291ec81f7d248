import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Task } from '../queue/task-view.ts';
import { adviceFor } from '../views/advice.ts';
import { FILE_MOVE } from '../views/task-text.ts';
import { quoted, visible } from '../views/visible.ts';

/** What a person should look at before answering: lines with the paths or the address of this task. */
export function taskAdvice({ id, type, reason, source, input }: Task, ambiguous: boolean): string[] {
  const { from, to, url, method } = Object(input) as Readonly<Record<string, unknown>>;
  if (ambiguous) {
    const where = typeof url === 'string' ? `${String(method ?? '')} ${visible(url)}`.trim() : visible(source);
    return [`Check first whether its effect happened: ${where}`];
  }
  const advice = adviceFor(reason);
  const lines = advice === undefined ? [] : [advice];
  if (type !== FILE_MOVE || typeof from !== 'string' || typeof to !== 'string') return lines;
  if (reason === 'fs.dest_exists') {
    return [
      ...lines,
      `keep both  mv -n ${quoted(to)} ${quoted(`${to}.before-${id}`)}, then retry it`,
      `overwrite  rm ${quoted(to)}, then retry it`,
      'skip       give up: the source stays where it is',
    ];
  }
  if (reason !== 'fs.permission') return lines;
  return [...lines, ...[...new Set([from, dirname(from), to, dirname(to)])].flatMap(ownerAndMode)];
}

/** Nothing if this user cannot see it: then the folder above it is the one to look at. */
function ownerAndMode(path: string): string[] {
  try {
    const { uid, gid, mode } = lstatSync(path);
    return [`${visible(path)}  owner ${uid}, group ${gid}, mode ${(mode & 0o7777).toString(8).padStart(4, '0')}`];
  } catch {
    return [];
  }
}
