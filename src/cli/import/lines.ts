import { isUtf8 } from 'node:buffer';

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** How many bytes of the input are read up to and including this line. */
  readonly end: number;
  readonly bytes: number;
  /** Without its line end and without a byte order mark. */
  readonly text?: string;
  /** Why it has no text. */
  readonly wrong?: 'too_long' | 'not_utf8';
}

const LINE_END = 0x0a;

/** The lines of a stream, those of one chunk at a time. Only one chunk and the longest line are in memory. */
export async function* linesIn(chunks: AsyncIterable<Buffer>, longest: number): AsyncGenerator<readonly Line[]> {
  let number = 0;
  let end = 0;
  let pieces: Buffer[] = [];
  let bytes = 0;
  const keep = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= longest) pieces.push(piece);
    else pieces = [];
  };
  const finish = (piece: Buffer, ending: number): Line => {
    keep(piece);
    number += 1;
    end += bytes + ending;
    const line = { number, end, bytes, ...read(pieces, bytes > longest, number) };
    pieces = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let from = 0;
    for (let to = chunk.indexOf(LINE_END); to >= 0; to = chunk.indexOf(LINE_END, from)) {
      lines.push(finish(chunk.subarray(from, to), 1));
      from = to + 1;
    }
    keep(chunk.subarray(from));
    if (lines.length > 0) yield lines;
  }
  if (bytes > 0) yield [finish(Buffer.alloc(0), 0)];
}

function read(pieces: readonly Buffer[], tooLong: boolean, number: number): Pick<Line, 'text' | 'wrong'> {
  if (tooLong) return { wrong: 'too_long' };
  const whole = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  if (!isUtf8(whole)) return { wrong: 'not_utf8' };
  const text = whole.toString('utf8');
  return { text: number === 1 && text.startsWith('\ufeff') ? text.slice(1) : text };
}
