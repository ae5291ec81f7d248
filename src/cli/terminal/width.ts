const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const INVISIBLE = /^[\p{M}\u200b-\u200d\ufeff]+$/u;

/**
 * Printable characters that never join the one before or after: Latin, punctuation, arrows, lines and signs, such as those of states.
 * A text of them needs no segmenter, which takes 10 ms to load.
 */
const SINGLE = /^[\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205f\u2190-\u2bff]*$/;

/** How many columns of a terminal a text without colours takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const { segment } of segments(text)) width += columnsOf(segment);
  return width;
}

/** The text in at most so many columns; what does not fit ends in `…`. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const { segment } of segments(text)) {
    width += columnsOf(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return columns > 0 ? `${kept}…` : '';
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: our colours are control sequences
const COLOURS = /(\u001b\[[0-9;]*m)/;

/** A full line without its last word, and that word, unless it is long or has colours. */
function atLastSpace(line: string, columns: number): readonly [full: string, rest: string] {
  const space = line.lastIndexOf(' ');
  const rest = line.slice(space + 1);
  const isShort =
    space > 0 && rest.length < columns / 2 && line.slice(0, space).trim() !== '' && !rest.includes('\u001b');
  return isShort ? [line.slice(0, space), rest] : [line, ''];
}

/** A line, which may have colours, as lines of at most so many columns. What goes on is indented like its beginning. */
export function wrapped(line: string, columns: number): string[] {
  const plain = line.replaceAll(new RegExp(COLOURS, 'g'), '');
  if (widthOf(plain) <= columns) return [line];
  const indent = ' '.repeat(Math.min(plain.length - plain.trimStart().length + 2, columns >> 1));
  const lines: string[] = [];
  let [current, width, colour] = ['', 0, ''];
  for (const part of line.split(COLOURS)) {
    if (COLOURS.test(part)) {
      current += part;
      colour = part === '\u001b[0m' ? '' : part;
      continue;
    }
    for (const { segment } of segments(part)) {
      const wide = columnsOf(segment);
      if (width + wide > columns) {
        const [full, rest] = atLastSpace(current, columns);
        lines.push(colour === '' ? full : `${full}\u001b[0m`);
        [current, width] = [`${indent}${colour}${rest}`, indent.length + widthOf(rest)];
      }
      current += segment;
      width += wide;
    }
  }
  return [...lines, current];
}

/** The text, with spaces up to so many columns. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)));
}

function segments(text: string): Iterable<{ readonly segment: string }> {
  if (SINGLE.test(text)) return Array.from(text, (segment) => ({ segment }));
  return new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text);
}

function columnsOf(segment: string): number {
  if (INVISIBLE.test(segment)) return 0;
  return WIDE.test(segment) || segment.includes('\ufe0f') ? 2 : 1;
}
