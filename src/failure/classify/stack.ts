import { remember } from '../../remember.ts';
import { clean } from './describe.ts';
import { readText } from './inspect.ts';
import { withoutSecrets } from './secrets.ts';

/** How many characters of a stack are read, and how many are kept. */
const LONGEST_READ = 16_384;
const LONGEST_STACK = 4_096;

/** Frames that were read before, because most errors are thrown at few places. */
const known = new Map<string, string | undefined>();
const LONGEST_KNOWN = 4_096;

/** The folder of Holdfast's own code. Its frames say nothing about an error of a handler. */
export const OWN_FOLDER = /^.*\/(?:src|dist)\//.exec(import.meta.url)?.[0] ?? import.meta.url;
const OWN_PATH = decodeURI(OWN_FOLDER).replace(/^file:\/\//, '');

/**
 * The frames of a thrown value's stack, one a line, the innermost first; without its message, and without frames of Node, of Holdfast
 * and of what called the application's code. Undefined if no frame is left.
 */
export function framesOf(thrown: unknown, longest = LONGEST_STACK): string | undefined {
  const stack = readText(thrown, 'stack');
  const start = stack?.indexOf('\n    at ') ?? -1;
  if (stack === undefined || start < 0) return undefined;
  const text = stack.slice(start + 1, start + LONGEST_READ);
  const key = `${longest}${text}`;
  if (known.has(key)) return known.get(key);
  const frames = readFrames(text, longest);
  if (key.length <= LONGEST_KNOWN) remember(known, key, frames);
  return frames;
}

function readFrames(text: string, longest: number): string | undefined {
  const frames = text
    .split('\n')
    .flatMap((line) => (line.startsWith('    at ') && !isInternal(line) ? [line.slice(7).replace('file://', '')] : []));
  // What called the application's code is the same for all errors.
  const last = frames.findLastIndex(isOwn);
  const kept = last < 0 ? frames : frames.slice(0, last + 1);
  return kept.length === 0 ? undefined : withoutSecrets(clean(kept.join('\n'), longest));
}

function isInternal(line: string): boolean {
  return line.includes('node:internal/') || line.includes(OWN_FOLDER) || line.includes(OWN_PATH);
}

/** The first frame of the application's own code: not of a package, of Node, or of the language. */
export function ownFrame(stack: string | undefined): string | undefined {
  return stack?.split('\n').find(isOwn);
}

function isOwn(frame: string): boolean {
  return !/[\\/]node_modules[\\/]|(?:^|\()node:|<anonymous>\)?$|^native /.test(frame);
}

/** A frame without what changes from one release or machine to the next: folders, line and column. */
export function placeOf(frame: string): string {
  return frame.replace(/^async /, '').replace(/(?<=^|\()[^(]*[\\/](?=[^\\/]+$)|(?::\d+)+(?=\)?$)/g, '');
}
