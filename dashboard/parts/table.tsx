import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { address, ask } from '../data/address.ts';
import type { Shown } from '../data/use-document.ts';
import { useKeys } from '../shell/keys.ts';

export interface Column<Row> {
  /** In the query of the page, where it is sorted or left out. */
  readonly id: string;
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
  /** The value by which a person can sort the list. Only for lists of which the page has all rows. */
  readonly sortedBy?: (row: Row) => number | string;
  /** Gets the width that the other columns leave. */
  readonly isWide?: boolean;
  /** Gets all the width that the other columns do not need: their texts are short. */
  readonly isWidest?: boolean;
}

export interface TableProps<Row> {
  /** What the rows are, for a reader of the screen. */
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => number | string;
  /** Which rows are marked, if they can be. */
  readonly marked?: ReadonlySet<number | string>;
  readonly onMark?: (ids: readonly (number | string)[], on: boolean) => void;
  /** Which row is shown beside the list, and what shows another one. */
  readonly previewed?: number | string | undefined;
  readonly onPreview?: (id: number | string) => void;
}

/**
 * Rows as a table; on a narrow screen each row is a card. `j` and `k` move the focus to the first link of the next or previous row,
 * Enter opens that link, `x` marks the row.
 */
export function Table<Row>({ name, columns, rows, idOf, marked, onMark, previewed, onPreview }: TableProps<Row>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const sorted = inOrder(rows, columns);
  const preview = onPreview && ((index: number) => onPreview(idOf(sorted[index] as Row)));
  useRowKeys(body, {
    mark: onMark && ((index, on) => onMark([idOf(sorted[index] as Row)], on)),
    preview,
    follows: previewed !== undefined,
  });
  const areAllMarked = rows.length > 0 && rows.every((row) => marked?.has(idOf(row)));
  return (
    <div class="table-frame">
      <table>
        <caption class="unseen">{name}</caption>
        <thead>
          <tr>
            {marked && onMark && (
              <th scope="col" class="mark">
                <input
                  type="checkbox"
                  aria-label="Mark all rows of this page"
                  checked={areAllMarked}
                  onChange={() => onMark(rows.map(idOf), !areAllMarked)}
                />
              </th>
            )}
            {columns.map((column) => (
              <Heading key={column.id} column={column} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {sorted.map((row) => {
            const id = idOf(row);
            const isMarked = marked?.has(id) ?? false;
            return (
              // For the keyboard, Space does what this click does.
              <tr
                key={id}
                class={`${isMarked ? 'marked' : ''} ${id === previewed ? 'previewed' : ''}`.trim()}
                onClick={(event) => onPreview && isOnPlainText(event) && onPreview(id)}
              >
                {marked && onMark && (
                  <td class="mark">
                    <input
                      type="checkbox"
                      aria-label={`Mark ${id}`}
                      checked={isMarked}
                      onChange={() => onMark([id], !isMarked)}
                    />
                  </td>
                )}
                {columns.map((column) => (
                  <td key={column.id} data-title={column.title} class={styleOf(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Whether a click hit neither a link nor a button nor a field, and no text is selected. */
function isOnPlainText({ target }: Event): boolean {
  return !(target as Element).closest('a, button, input, label') && getSelection()?.isCollapsed !== false;
}

function styleOf<Row>({ isNumber, isWide, isWidest }: Column<Row>): string {
  if (isNumber) return 'number';
  if (isWidest) return 'wide widest';
  return isWide ? 'wide' : '';
}

/** Sorts by `sort=count` or, downwards, `sort=-count` of the query. */
function Heading<Row>({ column }: { readonly column: Column<Row> }) {
  const { id, title, sortedBy } = column;
  const style = styleOf(column);
  if (!sortedBy)
    return (
      <th scope="col" class={style}>
        {title}
      </th>
    );
  const sort = address.value.query.get('sort');
  const direction = sort === id ? 'ascending' : sort === `-${id}` ? 'descending' : undefined;
  const next = direction === 'descending' ? id : `-${id}`;
  return (
    <th scope="col" class={style} {...(direction && { 'aria-sort': direction })}>
      <button type="button" class="sorter" onClick={() => ask({ sort: next }, { replace: true })}>
        {title}
        {direction && <span aria-hidden="true">{direction === 'ascending' ? '↑' : '↓'}</span>}
      </button>
    </th>
  );
}

function inOrder<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): readonly Row[] {
  const sort = address.value.query.get('sort') ?? '';
  const by = columns.find(({ id }) => id === sort.replace(/^-/, ''))?.sortedBy;
  if (!by) return rows;
  const sign = sort.startsWith('-') ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [one, other] = [by(a), by(b)];
    return sign * (one < other ? -1 : one > other ? 1 : 0);
  });
}

function useRowKeys(
  body: { readonly current: HTMLTableSectionElement | null },
  {
    mark,
    preview,
    follows,
  }: {
    readonly mark: ((index: number, on: boolean) => void) | undefined;
    readonly preview: ((index: number) => void) | undefined;
    /** The preview is open: it shows the row to which the focus moves. */
    readonly follows: boolean;
  },
): void {
  const rows = () => [...(body.current?.rows ?? [])];
  const present = () => rows().findIndex((row) => row.contains(document.activeElement));
  const move = (by: number) => {
    const all = rows();
    const at = present();
    const index = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
    const link = all[index]?.querySelector<HTMLElement>('a, td:not(.mark) button');
    link?.focus();
    all[index]?.scrollIntoView({ block: 'nearest' });
    if (follows && index >= 0) preview?.(index);
  };
  useKeys([
    { keys: 'j', does: 'next row', run: () => move(1) },
    { keys: 'k', does: 'row before', run: () => move(-1) },
    ...(preview
      ? [
          {
            keys: 'Space',
            does: 'show the row beside the list',
            run: () => {
              const at = present();
              if (rows().length > 0) preview(Math.max(at, 0));
            },
          },
        ]
      : []),
    ...(mark
      ? [
          {
            keys: 'x',
            does: 'mark or unmark the row',
            run: () => {
              const at = present();
              if (at >= 0) mark(at, rows()[at]?.querySelector<HTMLInputElement>('.mark input')?.checked === false);
            },
          },
        ]
      : []),
  ]);
}

/**
 * For a list that is kept up to date: while the pointer or the focus is in it, no row moves. A newer answer is shown when the person
 * leaves the list or asks for it. Pass `isInUse` to `useDocument`, and `ref` to `LiveList`.
 */
export function useListInUse() {
  const ref = useRef<HTMLDivElement>(null);
  return { ref, isInUse: () => ref.current?.matches(':hover, :focus-within') ?? false };
}

export function LiveList<Document>({
  use: { ref },
  shown,
  children,
}: {
  readonly use: ReturnType<typeof useListInUse>;
  readonly shown: Shown<Document>;
  readonly children: ComponentChildren;
}) {
  const left = () => setTimeout(() => !ref.current?.matches(':hover, :focus-within') && shown.showNewer(), 0);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only notices that the pointer or the focus leaves the list.
    <div ref={ref} onMouseLeave={left} onFocusOut={left} class="live-list">
      {shown.hasNewer && (
        <button type="button" class="newer" onClick={shown.showNewer}>
          Something changed: show it
        </button>
      )}
      {children}
    </div>
  );
}
