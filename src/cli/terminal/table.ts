import type { Style } from '../../views/glyphs.ts';
import { cut, padded, widthOf } from './width.ts';

/** A title, and how far the column may be cut when the table is wider than the terminal. Default: not at all. */
export type Column = string | readonly [title: string, least: number];

/** A cell is measured and cut, and painted after that. */
export type Cell = string | number | { readonly text: string; readonly style: Style };

/** Where a table is written: how wide it may be, and how text is painted. */
interface Output {
  readonly columns: number;
  paint(style: Style, text: string): string;
}

/**
 * The lines of a table. Each column is as wide as its longest cell. If the table is too wide, the columns that may be cut are cut,
 * the widest first.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  out: Output,
  available = out.columns,
): string[] {
  const titles = columns.map((column) => (typeof column === 'string' ? column : column[0]));
  const widths = titles.map((title, i) =>
    Math.max(widthOf(title), ...rows.map((row) => widthOf(textOf(row[i] ?? '')))),
  );
  shrink(widths, columns, available);
  const line = (cells: readonly Cell[]) =>
    cells
      .map((cell, i) => shown(cell, i))
      .join(GAP)
      .trimEnd();
  const shown = (cell: Cell, i: number) => {
    const width = widths[i] as number;
    const text = padded(cut(textOf(cell), width), i === widths.length - 1 ? 0 : width);
    return typeof cell === 'object' ? out.paint(cell.style, text) : text;
  };
  return [line(titles), ...rows.map(line)];
}

function textOf(cell: Cell): string {
  return typeof cell === 'object' ? cell.text : String(cell);
}

const GAP = '  ';

function shrink(widths: number[], columns: readonly Column[], available: number): void {
  const room = (i: number) => {
    const column = columns[i] as Column;
    return typeof column === 'string' ? 0 : (widths[i] as number) - column[1];
  };
  let over = widths.reduce((sum, width) => sum + width, (columns.length - 1) * GAP.length) - available;
  while (over > 0) {
    const widest = widths
      .map((width, i) => ({ width, i }))
      .filter(({ i }) => room(i) > 0)
      .sort((a, b) => b.width - a.width)[0];
    if (!widest) return;
    widths[widest.i] = widest.width - 1;
    over -= 1;
  }
}
