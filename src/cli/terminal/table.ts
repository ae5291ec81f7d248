import type { Style } from '../../views/glyphs.ts';
import { cut, padded, widthOf } from './width.ts';

/**
 * A title, and how far the column may be cut when the table is wider than the terminal. Default: not at all; 0: it may be left out.
 * `kept`: so much of it is cut only when all others are as narrow as they may be. Default: all of a column that may be left out.
 */
export type Column = string | readonly [title: string, least: number, kept?: number];

/** A cell is measured and cut, and painted after that. */
export type Cell = string | number | { readonly text: string; readonly style: Style };

/** Where a table is written: how wide it may be, and how text is painted. */
interface Output {
  readonly columns: number;
  paint(style: Style, text: string): string;
}

/**
 * The lines of a table. Each column is as wide as its longest cell. If the table is too wide, columns without any text are left out,
 * the columns that may be cut are cut, the widest first, and then those that may be left out are, the last one first.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  out: Output,
  available = out.columns,
): string[] {
  const measured = columns.map((column, i) => measure(column, i, rows));
  const shownColumns = fitting(measured, available);
  const line = (cellOf: (column: Measured) => Cell) =>
    shownColumns
      .map((column, i) => {
        const cell = cellOf(column);
        const text = padded(cut(textOf(cell), column.width), i === shownColumns.length - 1 ? 0 : column.width);
        return typeof cell === 'object' ? out.paint(cell.style, text) : text;
      })
      .join(GAP)
      .trimEnd();
  return [line(({ title }) => title), ...rows.map((row) => line(({ index }) => row[index] ?? ''))];
}

function textOf(cell: Cell): string {
  return typeof cell === 'object' ? cell.text : String(cell);
}

const GAP = '  ';

/** A column, and how wide it is and may be. */
interface Measured {
  readonly title: string;
  readonly index: number;
  readonly isEmpty: boolean;
  readonly mayGo: boolean;
  width: number;
  readonly kept: number;
  readonly least: number;
}

function measure(column: Column, index: number, rows: readonly (readonly Cell[])[]): Measured {
  const [title, least, kept] = typeof column === 'string' ? [column] : column;
  const widest = Math.max(0, ...rows.map((row) => widthOf(textOf(row[index] ?? ''))));
  const width = Math.max(widthOf(title), widest);
  const mayGo = least === 0;
  const narrow = least === undefined || mayGo ? width : Math.min(width, least);
  const floor = Math.min(width, kept ?? narrow);
  return { title, index, isEmpty: widest === 0, mayGo, width, kept: floor, least: mayGo ? floor : narrow };
}

function fitting(measured: readonly Measured[], available: number): readonly Measured[] {
  if (tooWide(measured, available) <= 0) return measured;
  let columns = measured.filter(({ isEmpty, title }) => !isEmpty || title.trim() === '');
  for (;;) {
    const narrowed = narrow(columns, 'kept', available);
    const leftOut = columns.findLast(({ mayGo }) => mayGo);
    if (tooWide(narrowed, available) <= 0) return narrowed;
    if (!leftOut) return narrow(narrowed, 'least', available);
    columns = columns.filter((column) => column !== leftOut);
  }
}

/** The columns, of which the widest are cut, down to a floor. */
function narrow(columns: readonly Measured[], floor: 'kept' | 'least', available: number): readonly Measured[] {
  const narrowed = columns.map((column) => ({ ...column }));
  while (tooWide(narrowed, available) > 0) {
    const [widest] = narrowed.filter((column) => column.width > column[floor]).sort((a, b) => b.width - a.width);
    if (!widest) break;
    widest.width -= 1;
  }
  return narrowed;
}

function tooWide(columns: readonly Measured[], available: number): number {
  return columns.reduce((sum, { width }) => sum + width + GAP.length, -GAP.length) - available;
}
