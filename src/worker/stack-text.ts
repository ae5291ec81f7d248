import { OWN_FOLDER } from '../failure/classify/stack.ts';
import { remember } from '../remember.ts';

/*
 * Node makes the text of an error's stack when it is first read, and needs 7 µs for ten frames. Most errors are thrown where others were
 * thrown before, so the text of equal frames is made once.
 */

/** The text of a stack, and what is compared with later ones. */
interface Known {
  /** Where each frame is in its script. */
  readonly positions: readonly number[];
  /** Those of the frames that say more than code of Holdfast and of Node: the innermost, up to the first one of Holdfast. */
  readonly names: readonly Names[];
  /** The lines of the frames. */
  readonly frames: string;
  /** The last first line, and the whole text with it: the same string for equal errors, which is compared faster. */
  header: string;
  text: string;
}

/** What a line of a stack names. */
interface Names {
  readonly script: string;
  readonly type: string | null;
  readonly function: string | null;
  /** The property that contains the function, which may have another name. */
  readonly method: string | null;
}

/** A text that is longer is made each time. */
const LONGEST_KNOWN = 16_384;
const known = new Map<number, Known>();

/** How Node makes the text, if nothing else in this process replaces that. */
let asNodeDoes: NonNullable<typeof Error.prepareStackTrace>;

/**
 * Makes the text of the stack of a thrown error, exactly as Node does, unless its text was made before. Does nothing where the text is
 * made by others: by a tool such as source-map-support, or by Node with source maps.
 */
export function makeStackText(thrown: unknown): void {
  const usual = Error.prepareStackTrace;
  if (usual?.name !== 'ErrorPrepareStackTrace' || process.sourceMapsEnabled) return;
  asNodeDoes = usual;
  try {
    if (!(thrown instanceof Error)) return;
    Error.prepareStackTrace = prepare;
    Reflect.get(thrown, 'stack');
  } catch {
    // A getter or a trap of a Proxy threw, or this cannot be replaced. Then classifying reads the stack in the usual way.
  } finally {
    Error.prepareStackTrace = usual;
  }
}

function prepare(error: Error, sites: NodeJS.CallSite[]): unknown {
  const positions = sites.map((site) => site.getPosition());
  const place = positions.reduce((sum, position) => (sum * 31 + position) | 0, sites.length);
  const same = known.get(place);
  if (same && isSame(same, positions, sites)) return textOf(same, asNodeDoes(error, []));
  const text = asNodeDoes(error, sites);
  const header = asNodeDoes(error, []);
  const names = namesOf(sites);
  if (names && typeof text === 'string' && text.length <= LONGEST_KNOWN && text.startsWith(header)) {
    remember(known, place, { positions, names, frames: text.slice(header.length), header, text });
  }
  return text;
}

function textOf(same: Known, header: string): string {
  if (same.header !== header) {
    same.header = header;
    same.text = `${header}${same.frames}`;
  }
  return same.text;
}

function isSame({ positions, names }: Known, others: readonly number[], sites: readonly NodeJS.CallSite[]): boolean {
  if (positions.length !== others.length) return false;
  for (let i = 0; i < positions.length; i++) if (positions[i] !== others[i]) return false;
  for (let i = 0; i < names.length; i++) {
    const [name, site] = [names[i] as Names, sites[i] as NodeJS.CallSite];
    if (name.script !== site.getScriptNameOrSourceURL()) return false;
    if (name.function !== site.getFunctionName() || name.type !== site.getTypeName()) return false;
    if (name.method !== site.getMethodName()) return false;
  }
  return true;
}

/** Undefined if a frame is of code without a script of its own, such as that of `eval`: then its text may differ at the same position. */
function namesOf(sites: readonly NodeJS.CallSite[]): readonly Names[] | undefined {
  const names: Names[] = [];
  for (const site of sites) {
    const script = site.getScriptNameOrSourceURL() as string | null | undefined;
    if (typeof script !== 'string' || site.isEval()) return undefined;
    const [type, method] = [site.getTypeName(), site.getMethodName()];
    names.push({ script, type, function: site.getFunctionName(), method });
    if (script.startsWith(OWN_FOLDER)) break;
  }
  return names;
}
