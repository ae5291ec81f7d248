import { ownFrame } from '../failure/classify/stack.ts';
import type { Failure } from '../failure/outcome.ts';
import { visible, visibleLines } from './visible.ts';

/**
 * Where an error was thrown and what it wraps, in lines that are safe to print: the first frame of the application's own code, and each
 * cause. With `isWhole`, all frames.
 */
export function traceLines({ stack, causes = [] }: Failure, isWhole: boolean): string[] {
  return [
    ...frameLines(stack, isWhole),
    ...causes.flatMap(({ path, name, message, stack: inner }) => [
      `${path.includes('errors.') ? 'with' : 'caused by'} ${visible(name)}: ${visible(message)}`,
      ...(isWhole ? frameLines(inner, true).map((line) => `  ${line}`) : []),
    ]),
  ];
}

function frameLines(stack: string | undefined, isWhole: boolean): string[] {
  if (stack === undefined) return [];
  if (isWhole) return visibleLines(stack).map((frame) => `at ${frame}`);
  const frame = ownFrame(stack);
  return frame === undefined ? [] : [`at ${visible(frame)}`];
}
