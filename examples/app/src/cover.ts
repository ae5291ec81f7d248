// Runs in a child process, so it may take all of a processor, or crash. The child imports this module, so it only defines the type.
import { createHash } from 'node:crypto';
import { defineTask } from 'holdfast';
import { z } from 'zod';

/** Draws the cover of a book: here, a number that takes some work. */
export const drawCover = defineTask('draw_cover', {
  runIn: 'process',
  module: import.meta.url,
  memory: '256MB',
  retry: { timeout: '1m' },
  input: z.object({ title: z.string().min(1) }),
  run({ title }) {
    let picture = title;
    for (let round = 0; round < 1_000; round++) picture = createHash('sha256').update(picture).digest('hex');
    return { title, picture, process: process.pid };
  },
});
