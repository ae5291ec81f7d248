import { extname } from 'node:path';
import { isRecord } from '../../options.ts';
import { libraryOf } from '../../store/sqlite/library.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';
import type { Input } from './input.ts';

/** A row of a table, or an object of a list. */
export type Row = Readonly<Record<string, unknown>>;

export interface Rows {
  readonly rows: readonly Row[];
  /** The members of a JSON document that stand beside its list. */
  readonly beside: Row;
}

export const FORMATS = ['csv', 'json', 'jsonl', 'sqlite'] as const;
export type Format = (typeof FORMATS)[number];

/** Where the rows of a file are. */
export interface Place {
  readonly format?: Format;
  /** The member of a JSON document that holds the list. Default: the document is the list. */
  readonly items?: string;
  /** Selects the rows of an SQLite database. */
  readonly query?: string;
}

const BY_ENDING: Readonly<Record<string, Format>> = {
  ...{ '.csv': 'csv', '.json': 'json', '.jsonl': 'jsonl', '.ndjson': 'jsonl' },
  ...{ '.db': 'sqlite', '.sqlite': 'sqlite', '.sqlite3': 'sqlite' },
};

/** @throws Problem if the file is not what its format says. */
export async function readRows(file: string, input: Input, place: Place): Promise<Rows> {
  const format = place.format ?? BY_ENDING[extname(file).toLowerCase()];
  if (format === undefined) throw usage(`set \`format\` in the mapping to one of ${FORMATS.join(', ')}`);
  if (format === 'sqlite') return { rows: await selected(file, place.query), beside: {} };
  const text = await textOf(input);
  switch (format) {
    case 'csv':
      return { rows: csvRows(text, input.path), beside: {} };
    case 'jsonl':
      return {
        rows: objects(
          text
            .split('\n')
            .filter((line) => line.trim() !== '')
            .map((line) => json(line, input)),
          input,
        ),
        beside: {},
      };
    case 'json':
      return fromDocument(json(text, input), place.items, input);
  }
}

async function textOf(input: Input): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of input.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/^\ufeff/, '');
}

function json(text: string, { path }: Input): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw usage(`${path} is not JSON: ${visible(error instanceof Error ? error.message : String(error))}`);
  }
}

function fromDocument(document: unknown, items: string | undefined, input: Input): Rows {
  const beside = items === undefined ? {} : document;
  const list = items === undefined ? document : isRecord(document) ? document[items] : undefined;
  if (!Array.isArray(list) || !isRecord(beside)) {
    const what =
      items === undefined ? 'is not a list. If a member holds the list, name it: `items`' : `has no list \`${items}\``;
    throw usage(`${input.path} ${what}`);
  }
  return { rows: objects(list, input), beside };
}

function objects(list: readonly unknown[], { path }: Input): readonly Row[] {
  return list.map((one, index) => {
    if (isRecord(one)) return one;
    throw usage(`${path}:${index + 1} is not an object`);
  });
}

async function selected(file: string, query: string | undefined): Promise<readonly Row[]> {
  if (query === undefined) throw usage('an SQLite database needs a `query` in the mapping: SELECT * FROM jobs');
  const { select } = await libraryOf();
  try {
    return select(file, query).map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, withoutBigInt(cell)])),
    );
  } catch (error) {
    throw usage(`${visible(file)}: ${visible(error instanceof Error ? error.message : String(error))}`, {
      cause: error,
    });
  }
}

/** A number that JavaScript cannot hold exactly becomes a text. */
function withoutBigInt(cell: unknown): unknown {
  if (typeof cell !== 'bigint') return cell;
  return Number.isSafeInteger(Number(cell)) ? Number(cell) : String(cell);
}

/** As RFC 4180 has it: the first row names the columns; a cell in double quotes may hold commas, line ends and doubled quotes. */
function csvRows(text: string, path: string): readonly Row[] {
  const [head, ...rest] = csvCells(text, path);
  if (!head) return [];
  return rest.map((cells, index) => {
    if (cells.length !== head.length) {
      throw usage(`${path}, row ${index + 1} has ${cells.length} cells, and ${head.length} columns are named`);
    }
    return Object.fromEntries(head.map((name, column) => [name, cells[column] === '' ? null : cells[column]]));
  });
}

const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;

function csvCells(text: string, path: string): readonly (readonly string[])[] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (CELL.lastIndex = 0; CELL.lastIndex < text.length; ) {
    const from = CELL.lastIndex;
    const found = CELL.exec(text);
    if (!found)
      throw usage(`${path} is not CSV: row ${rows.length} has a quote that does not fit, at character ${from + 1}`);
    const [, quoted, plain = '', end] = found;
    row.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === ',' && CELL.lastIndex < text.length) continue;
    if (end === ',') row.push('');
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
  }
  return rows;
}
