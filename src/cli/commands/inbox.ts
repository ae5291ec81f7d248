import type { Command } from 'commander';
import { type Inbox, inboxContent, inboxOf, MOST_QUESTIONS } from '../../documents/inbox.ts';
import { plural } from '../../views/plural.ts';
import { isOwnType, summaryOf } from '../../views/task-text.ts';
import { ago } from '../../views/times.ts';
import { shortened, visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { FILTER_HELP, filterFrom } from '../flags/filter.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { withStore } from '../opening/open-store.ts';

interface Flags {
  readonly limit?: string;
}

const LIMIT = 10;

export function declare(command: Command): void {
  command
    .argument('[filter...]')
    .option('--limit <number>', `how many are shown, the oldest first (default: ${LIMIT}, at most ${MOST_QUESTIONS})`)
    .addHelpText(
      'after',
      `
These tasks wait until a person answers: what happened, since when they wait, and the commands that answer. What is dead waits for
nobody: holdfast quarantine lists both, and puts them back.
${FILTER_HELP}`,
    );
  act<Flags>(command, inbox);
}

async function inbox(cli: Cli, args: readonly string[], { limit }: Flags): Promise<void> {
  const most = limit === undefined ? LIMIT : wholeNumberFlag(limit, '--limit', 1, MOST_QUESTIONS);
  return withStore(cli, {}, async (holdfast) => {
    const found = await inboxOf(cli, holdfast, { filter: filterFrom(args), limit: most });
    cli.terminal.answer('inbox', inboxContent(found), () => print(cli, found, holdfast.now()));
  });
}

function print({ terminal }: Cli, { items, total }: Inbox, now: number): void {
  if (total === 0) terminal.note('Nothing waits for a person.');
  for (const { task, since, question, error, steps } of items) {
    const waits = since === undefined ? '' : `  since ${ago(since, now)}`;
    const of = task.source === task.type ? '' : `  ${visible(task.source)}`;
    terminal.result(`${terminal.out.glyph(task)} #${task.id} ${summaryOf(task)}${of}${waits}`);
    const given = isOwnType(task.type) ? [] : [`input ${shortened(visible(JSON.stringify(task.input)))}`];
    for (const line of [...given, question, ...(error === '' ? [] : [error]), ...steps]) terminal.result(`    ${line}`);
  }
  if (total > items.length) {
    terminal.note(
      `${items.length} of ${plural(total, 'task', 'tasks')} shown. More: --limit ${Math.min(MOST_QUESTIONS, total)}`,
    );
  }
}
