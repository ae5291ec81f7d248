import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { commandNames, programFor } from '../../src/cli/program.ts';

/** Decisions and the changelog tell of what was. */
const PAGES = execFileSync('git', ['ls-files', '*.md', ':!docs/decisions', ':!CHANGELOG.md', ':!test'], {
  encoding: 'utf8',
})
  .trim()
  .split('\n');

/** The words of a line of shell; a quoted text is one word. */
const wordsOf = (line: string): readonly string[] =>
  [...line.matchAll(/'[^']*'|"[^"]*"|\S+/g)].map(([word]) => word.replace(/^(['"])(.*)\1$/, '$2'));

/** Each call of the command that a page shows, in blocks of shell and between backticks. */
function callsIn(page: string): readonly (readonly string[])[] {
  const text = readFileSync(page, 'utf8');
  const blocks = [...text.matchAll(/^```(?:sh|console|bash)\n(.*?)^```/gms)].flatMap(([, block = '']) =>
    block.replaceAll('\\\n', ' ').split('\n'),
  );
  const spans = [...text.replace(/^```.*?^```/gms, '').matchAll(/`(holdfast [^`\n]+)`/g)].map(([, span]) => span ?? '');
  return [...blocks, ...spans].flatMap((line) => {
    const [, call] = /^(?:\$ )?(?:npx )?holdfast ([^|>&;#]+)/.exec(line) ?? [];
    return call === undefined ? [] : [wordsOf(call)];
  });
}

const programs = new Map<string, Promise<Command>>();
/** The program with the flags of one command. */
function programOf(name: string): Promise<Command> {
  const made = programs.get(name) ?? programFor([name], () => {});
  programs.set(name, made);
  return made;
}

/** What is wrong with a call: a command or a flag that there is not. */
async function mistakeIn(words: readonly string[]): Promise<string | undefined> {
  const [name = ''] = words;
  if (name.startsWith('-') || !/^[a-z-]+$/.test(name)) return undefined;
  if (!commandNames().includes(name)) return `there is no command ${name}`;
  const program = await programOf(name);
  const flags = (command: Command) => command.options.flatMap(({ short, long }) => [short, long]);
  const known = new Set<string | undefined>([...flags(program), '-h', '--help', '-V', '--version']);
  let command = program;
  for (const word of words) {
    if (word === '--') break;
    const inner = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (inner) {
      command = inner;
      for (const flag of flags(inner)) known.add(flag);
    } else if (/^--?[a-z]/.test(word)) {
      const flag = word.replace(/=.*/, '');
      const letters = /^-[a-z]{2,}$/.test(flag) ? [...flag.slice(1)].map((letter) => `-${letter}`) : [flag];
      const unknown = letters.filter((each) => !known.has(each) && !known.has(flag.slice(0, 2)));
      if (unknown.length > 0) return `${command.name()} has no ${unknown.join(' ')}`;
    }
  }
  return undefined;
}

// It loads all commands, which takes seconds on a machine that does other things meanwhile.
test('each command and flag that a page shows exists', { timeout: 90_000 }, async () => {
  let calls = 0;
  const mistakes: string[] = [];
  for (const page of PAGES) {
    for (const words of callsIn(page)) {
      calls++;
      const mistake = await mistakeIn(words);
      if (mistake) mistakes.push(`${page}: holdfast ${words.join(' ')}: ${mistake}`);
    }
  }
  expect(calls).toBeGreaterThan(200);
  expect(mistakes).toEqual([]);
});
