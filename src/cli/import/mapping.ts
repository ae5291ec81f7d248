import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { isRecord } from '../../options.ts';
import { show } from '../../show.ts';
import { hasEnded, IMPORT_STATES, type ImportState } from '../../task.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';
import { nearest } from '../suggest.ts';
import type { Input } from './input.ts';
import { MEMBERS } from './reader.ts';
import { FORMATS, type Format, type Place, type Row, type Rows, readRows } from './rows.ts';
import { checkZone, instantIn } from './zones.ts';

/** How the rows of another queue become tasks: a file that says for each member of a task where it comes from. */
export interface Mapping extends Place {
  /** The zone of times that name none. Default: such a time is refused. */
  readonly zone?: string;
  /** What a number means as a time. Default: it is refused. */
  readonly times?: 'seconds' | 'milliseconds';
  /** By the members of an imported line. */
  readonly task: Row;
}

const KNOWN = ['format', 'items', 'query', 'zone', 'times', 'task'];
const TIMES = ['due_at', 'submitted_at', 'deadline', 'ended_at'];
const NUMBERS = ['priority', 'executions', 'deferrals', 'max_attempts', 'max_executions', 'max_deferrals'];
const UNITS = ['seconds', 'milliseconds'];

/** @throws Problem naming what is wrong with it. */
export function readMapping(path: string): Mapping {
  const named = visible(path);
  const given = parsed(path, named);
  if (!isRecord(given) || !isRecord(given.task))
    throw usage(`${named} needs \`task\`: its members, and where each comes from`);
  refuseUnknown(given, KNOWN, named);
  refuseUnknown(given.task, Object.keys(MEMBERS), `${named}, task`);
  for (const name of ['items', 'query', 'zone'] as const) {
    if (given[name] !== undefined && typeof given[name] !== 'string')
      throw usage(`${named}: \`${name}\` must be a text`);
  }
  oneOf(given.format, FORMATS, `${named}: \`format\``);
  oneOf(given.times, UNITS, `${named}: \`times\``);
  if (given.zone !== undefined) checkZone(given.zone as string, named);
  return given as unknown as Mapping & { format?: Format };
}

/** An input whose lines are the tasks of its rows. */
export async function mappedInput(file: string, input: Input, mapping: Mapping): Promise<Input> {
  const found = await readRows(file, input, mapping);
  refuseUnknownColumns(mapping, found, input.path);
  const lines = found.rows.map((row) =>
    Buffer.from(`${JSON.stringify(taskOf(mapping, { ...found.beside, ...row }))}\n`),
  );
  return {
    ...input,
    size: lines.reduce((sum, line) => sum + line.length, 0),
    mapped: true,
    async *chunks() {
      yield* lines;
    },
  };
}

function parsed(path: string, named: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8')) as unknown;
  } catch (error) {
    throw usage(
      `the mapping ${named} cannot be read: ${visible(error instanceof Error ? error.message : String(error))}`,
    );
  }
}

function refuseUnknown(given: Row, known: readonly string[], where: string): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const [meant] = nearest(unknown, known);
  throw usage(
    `${where}: there is no \`${visible(unknown)}\`${meant === undefined ? '' : `, did you mean \`${meant}\`?`}`,
    {
      hints: [`there are: ${known.join(', ')}`],
    },
  );
}

function oneOf(value: unknown, known: readonly string[], what: string): void {
  if (value === undefined || known.includes(value as string)) return;
  throw usage(`${what} must be one of ${known.join(', ')}, got ${show(value)}`);
}

// ── Values ──

/** `{column}` in a text. */
const COLUMN = /\{([^{}]+)\}/g;

/**
 * A text with one `{column}` and nothing else is the cell itself; in a longer text each `{column}` stands for its cell, and without
 * one of them there is no text. `{ from: column, as: { theirs: ours }, otherwise: ours }` translates a cell, and `{ json: column }`
 * parses one.
 */
function valueFrom(given: unknown, row: Row): unknown {
  if (typeof given === 'string') return textOf(given, row);
  if (Array.isArray(given)) return given.map((one) => valueFrom(one, row) ?? null);
  if (!isRecord(given)) return given;
  if (typeof given.from === 'string' && isRecord(given.as)) {
    const cell = row[given.from];
    const key = String(cell);
    return Object.hasOwn(given.as, key) ? given.as[key] : 'otherwise' in given ? given.otherwise : cell;
  }
  if (typeof given.json === 'string') return jsonOf(row[given.json]);
  const members = Object.entries(given).map(([name, one]) => [name, valueFrom(one, row)] as const);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined && value !== null));
}

function textOf(text: string, row: Row): unknown {
  const names = [...text.matchAll(COLUMN)].map(([, name]) => name as string);
  if (names.length === 1 && text === `{${names[0]}}`) return row[names[0] as string];
  if (names.some((name) => row[name] === undefined || row[name] === null)) return undefined;
  return text.replaceAll(COLUMN, (_, name: string) => String(row[name]));
}

function jsonOf(cell: unknown): unknown {
  if (typeof cell !== 'string') return cell;
  try {
    return JSON.parse(cell) as unknown;
  } catch {
    return cell;
  }
}

/** The columns that a mapping names. */
function columnsOf(given: unknown): readonly string[] {
  if (typeof given === 'string') return [...given.matchAll(COLUMN)].map(([, name]) => name as string);
  if (Array.isArray(given)) return given.flatMap(columnsOf);
  if (!isRecord(given)) return [];
  if (typeof given.from === 'string' && isRecord(given.as)) return [given.from];
  if (typeof given.json === 'string') return [given.json];
  return Object.values(given).flatMap(columnsOf);
}

function refuseUnknownColumns({ task }: Mapping, { rows, beside }: Rows, path: string): void {
  const known = new Set(Object.keys(beside));
  for (const row of rows) for (const name of Object.keys(row)) known.add(name);
  const unknown = columnsOf(task).find((name) => !known.has(name));
  if (unknown === undefined || rows.length === 0) return;
  throw usage(`the mapping names the column \`${visible(unknown)}\`, which ${path} does not have`, {
    hints: [`there are: ${[...known].map(visible).join(', ')}`],
  });
}

// ── A task ──

/** A line of a task. What its state cannot have is left out, because other queues keep such cells from earlier states. */
function taskOf(mapping: Mapping, row: Row): Row {
  const task = valueFrom(mapping.task, row) as Record<string, unknown>;
  for (const name of TIMES) if (task[name] !== undefined) task[name] = timeOf(task[name], mapping);
  readNumbers(task);
  if (isRecord(task.retry)) readNumbers(task.retry);
  if (isRecord(task.charged) && 'count' in task.charged) {
    const count = Number(task.charged.count ?? 0);
    if (count === 0) delete task.charged;
    else task.charged = [{ ...task.charged, count }];
  }
  const { state } = task;
  const waits = state === undefined || state === 'ready' || state === 'scheduled';
  if (waits) delete task.state;
  else delete task.due_at;
  if (!IMPORT_STATES.includes(state as ImportState) || !hasEnded(state as ImportState)) delete task.ended_at;
  if (state === 'succeeded') for (const name of ['reason', 'error']) delete task[name];
  else delete task.result;
  if (waits && task.charged === undefined) for (const name of ['reason', 'error']) delete task[name];
  return task;
}

/** The cells of CSV are texts, and so are many numbers of other formats. */
function readNumbers(members: Record<string, unknown>): void {
  for (const name of NUMBERS) {
    const value = members[name];
    if (typeof value === 'string' && /^\d+$/.test(value)) members[name] = Number(value);
  }
}

/** With its zone, if it could be read. Otherwise as it is, and the line is refused with a hint at the format of times. */
function timeOf(value: unknown, { zone, times }: Mapping): unknown {
  const number = typeof value === 'number' || (typeof value === 'string' && /^\d+(\.\d+)?$/.test(value));
  if (number && times !== undefined) {
    const at = new Date(Number(value) * (times === 'seconds' ? 1_000 : 1));
    return Number.isNaN(at.getTime()) ? value : at.toISOString();
  }
  return (zone !== undefined && typeof value === 'string' && instantIn(zone, value)) || value;
}
