/** What a program that crashed wrote about its error on stderr. */
export interface Crash {
  /** The line with the error's message. */
  readonly line: string;
  /** The frames of its stack as Node writes them, the innermost first. */
  readonly frames: readonly string[];
}

/**
 * Finds the error with which a program of Node, Python or Go crashed. Such a program does not write it in the last line of stderr.
 * Undefined if the text is not that of a crash.
 */
export function crashOf(stderr: string): Crash | undefined {
  const lines = stderr.split('\n').map((line) => line.trimEnd());
  return crashOfNode(lines) ?? crashOfPython(lines) ?? crashOfGo(lines);
}

/** The source line with a caret below, an empty line, the error with its stack, and `Node.js v22.1.0` at the end. */
function crashOfNode(lines: readonly string[]): Crash | undefined {
  const fatal = lines.find((line) => /^FATAL ERROR: .*(?:heap|memory)/.test(line));
  if (fatal !== undefined) return { line: fatal, frames: [] };
  const end = lines.findLastIndex((line) => line !== '');
  if (!/^Node\.js v\d+\.\d+\.\d+/.test(lines[end] ?? '')) return undefined;
  const caret = lines.findLastIndex((line) => /^\s*\^+$/.test(line));
  const below = lines.slice(caret + 1, end);
  // An error with frames stands below an empty line. Newer versions of Node write a note above that about code given with `-e`.
  const withFrames = caret >= 0 && below.some(isFrame) ? below.slice(below.indexOf('') + 1) : below;
  const rest = withFrames.filter((line) => line !== '');
  // Where the caret is cut off, the error is before its first frame.
  const firstFrame = rest.findIndex(isFrame);
  const line = caret >= 0 ? rest[0] : rest[firstFrame - 1];
  if (line === undefined) return undefined;
  const frames = rest.slice(Math.max(0, firstFrame));
  const after = frames.findIndex((each) => !isFrame(each));
  return { line, frames: frames.slice(0, after < 0 ? undefined : after) };
}

function isFrame(line: string): boolean {
  return line.startsWith('    at ');
}

/** The frames, the innermost last, and the error after them. Lines of an exception group begin with a bar. */
function crashOfPython(written: readonly string[]): Crash | undefined {
  const start = written.findLastIndex((line) => /^(?:Traceback| {2}\+ Exception Group Traceback) \(/.test(line));
  if (start < 0) return undefined;
  const lines = written.slice(start + 1).map((line) => line.replace(/^ {2}\| /, ''));
  const at = lines.findIndex((line) => /^\S/.test(line));
  if (at < 0) return undefined;
  const frames = lines.slice(0, at).flatMap((line) => {
    const [, file, number, name] = /^ {2}File "(.*)", line (\d+)(?:, in (.*))?$/.exec(line) ?? [];
    return file === undefined ? [] : [`    at ${name ?? '<module>'} (${file}:${number})`];
  });
  return { line: lines[at] as string, frames: frames.reverse() };
}

/** The error, and after it the stack of each goroutine: two lines for each frame. */
function crashOfGo(lines: readonly string[]): Crash | undefined {
  const routine = lines.findIndex((line) => /^goroutine \d+ .*:$/.test(line));
  const line = lines.slice(0, Math.max(0, routine)).find((each) => /^(?:panic|fatal error): /.test(each));
  if (line === undefined) return undefined;
  const frames: string[] = [];
  for (let i = routine + 1; lines[i]; i += 2) {
    const file = /^\t(.*:\d+)/.exec(lines[i + 1] ?? '')?.[1];
    if (file !== undefined) frames.push(`    at ${lines[i]?.replace(/\(.*$/, '')} (${file})`);
  }
  return { line, frames };
}
