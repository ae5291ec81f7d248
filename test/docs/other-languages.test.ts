import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { at, blocksOf } from './blocks.ts';

/** A program that parses code from its stdin without running it; `needed`: without it the test fails, instead of being skipped. */
interface Parser {
  readonly language: string;
  readonly command: readonly [string, ...string[]];
  readonly needed?: true;
}

const PARSERS: readonly Parser[] = [
  { language: 'sh', command: ['bash', '-n'], needed: true },
  { language: 'python', command: ['python3', '-c', 'import ast, sys; ast.parse(sys.stdin.read())'] },
  { language: 'ruby', command: ['ruby', '-c'] },
];

const isInstalled = (program: string): boolean => spawnSync(program, ['--version']).error === undefined;

describe('the code of the pages in other languages can be parsed', () => {
  for (const { language, command, needed } of PARSERS) {
    const [program, ...args] = command;
    test.skipIf(!needed && !isInstalled(program))(language, () => {
      const blocks = blocksOf(language);
      expect(blocks).not.toEqual([]);
      const refused = blocks.flatMap((block) => {
        const { status, stderr } = spawnSync(program, args, { input: block.code, encoding: 'utf8' });
        return status === 0 ? [] : [`${at(block)}: ${stderr}`];
      });
      expect(refused).toEqual([]);
    });
  }
});
