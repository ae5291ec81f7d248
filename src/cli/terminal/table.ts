import { cut, padded, widthOf } from './width.ts';

export interface Column {
  readonly title: string;
  /** How far it may be cut when the table is wider than the terminal. Default: not at all. */
  readonly least?: number;
}

/** A cell as it is measured and cut, and how it is painted after that. */
export interface Cell {
  readonly text: string;
  readonly paint?: (text: string) => string;
}

/**
 * Lines of a table whose columns are as wide as their longest cell. Where that is more than fits, the columns that may be
 * cut give way, the widest first.
 */
export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[], available: number): string[] {
  const widths = columns.map(({ title }, i) =>
    Math.max(widthOf(title), ...rows.map((row) => widthOf(row[i]?.text ?? ''))),
  );
  shrink(widths, columns, available);
  const line = (cells: readonly Cell[]) =>
    cells
      .map(({ text, paint = (same) => same }, i) => {
        const shown = padded(cut(text, widths[i] as number), i === cells.length - 1 ? 0 : (widths[i] as number));
        return paint(shown);
      })
      .join(GAP)
      .trimEnd();
  return [line(columns.map(({ title }) => ({ text: title }))), ...rows.map(line)];
}

const GAP = '  ';

function shrink(widths: number[], columns: readonly Column[], available: number): void {
  const room = (i: number) => (widths[i] as number) - (columns[i]?.least ?? Number.POSITIVE_INFINITY);
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
