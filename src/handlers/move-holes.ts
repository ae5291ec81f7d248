import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { text } from 'node:stream/consumers';

/** A part of a file, from its first byte to before its end. */
export type Range = readonly [start: number, end: number];

/** What a file is read by whose holes are not known. */
const WHOLE: readonly Range[] = [[0, Number.POSITIVE_INFINITY]];

/** More parts than this are read as one. */
const MOST_RANGES = 100_000;

/** Node cannot ask where holes are (SEEK_DATA, 3, and SEEK_HOLE, 4); Perl can, and nearly every Linux has one. 6 is ENXIO: no more data. */
const SEEK = `open my $file, "<&=3" or exit 1;
for (my $at = 0; ; ) {
  my $start = sysseek $file, $at, 3;
  exit($! == 6 ? 0 : 1) unless defined $start;
  my $end = sysseek $file, $start, 4;
  exit 1 unless defined $end;
  print 0 + $start, " ", $end, "\\n";
  $at = $end;
}`;

export function isSparse({ blocks, size }: BigIntStats): boolean {
  return blocks * 512n < size;
}

/** The parts of an open file that are no holes. One part, the whole, where it has none or they cannot be asked for. */
export async function dataOf(file: FileHandle): Promise<readonly Range[]> {
  if (process.platform !== 'linux' || !isSparse(await file.stat({ bigint: true }))) return WHOLE;
  try {
    const child = spawn('perl', ['-e', SEEK], { stdio: ['ignore', 'pipe', 'ignore', file.fd] });
    const [printed, [code]] = await Promise.all([child.stdout ? text(child.stdout) : '', once(child, 'close')]);
    const lines = printed.split('\n').slice(0, -1);
    if (code !== 0 || lines.length > MOST_RANGES) return WHOLE;
    return lines.map((line) => line.split(' ').map(Number) as [number, number]);
  } catch {
    // No Perl: the holes are read as the zeros that they are.
    return WHOLE;
  }
}

/** What is data in either of two files. */
export function inEither(a: readonly Range[], b: readonly Range[]): readonly Range[] {
  const merged: [number, number][] = [];
  for (const [start, end] of [...a, ...b].sort((one, other) => one[0] - other[0])) {
    const last = merged.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else merged.push([start, end]);
  }
  return merged;
}
