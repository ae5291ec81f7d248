import type { Problem } from '../problem.ts';

/** For a flag that may be given several times: all its values. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** All of stdin. @throws the error of `tooLarge` if there are more than `most` bytes. */
export async function readStdin(most: number, tooLarge: () => Problem): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > most) throw tooLarge();
  }
  return Buffer.concat(chunks);
}
