import { CommanderError } from 'commander';
import { expect, test } from 'vitest';
import { wrapHelp } from '../../src/cli/help-text.ts';
import { commandNames, programFor } from '../../src/cli/program.ts';

async function helpOf(...args: string[]): Promise<string> {
  let text = '';
  const program = await programFor([...args, '--help'], (part) => {
    text += part;
  });
  const ended = await program.parseAsync([...args, '--help'], { from: 'user' }).catch((error: unknown) => error);
  expect(ended).toBeInstanceOf(CommanderError);
  return text;
}

const tooLong = (text: string) => text.split('\n').filter((line) => line.length > 80);

test('no help is wider than 80 columns', async () => {
  expect(tooLong(await helpOf())).toEqual([]);
  for (const name of commandNames()) {
    if (name === 'help') continue;
    const text = await helpOf(name);
    expect([name, tooLong(text)]).toEqual([name, []]);
    const program = await programFor([name], () => {});
    const command = program.commands.find((one) => one.name() === name || one.aliases().includes(name));
    for (const { name: of } of (command?.commands ?? []).map((one) => ({ name: one.name() }))) {
      expect([name, of, tooLong(await helpOf(name, of))]).toEqual([name, of, []]);
    }
  }
});

test.each([
  ['short\n\n  a  b', 'short\n\n  a  b'],
  [
    `${'word '.repeat(19)}end\nof it.\nNext line.`,
    `${'word '.repeat(16).trimEnd()}\nword word word end of it.\nNext line.`,
  ],
  [
    `  term   ${'word '.repeat(20).trimEnd()}`,
    `  term   ${'word '.repeat(14).trimEnd()}\n         ${'word '.repeat(6).trimEnd()}`,
  ],
  [`  ${'x'.repeat(100)}`, `  ${'x'.repeat(100)}`],
])('a paragraph is joined and broken again, and a second column stays one', (text, wrapped) => {
  expect(wrapHelp(text)).toBe(wrapped);
});
