import type { Command } from 'commander';
import { eventsContent } from '../../documents/events.ts';
import type { Operations } from '../../queue/operations.ts';
import type { HappenedEvent } from '../../store/store.ts';
import { eventJson, eventSubject, eventWords, stateOfEvent } from '../../views/event-text.ts';
import { clockTime, rfc3339 } from '../../views/times.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { filterFrom } from '../flags/filter.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { Sleeper } from '../foreground/sleeper.ts';
import { withStore } from '../opening/open-store.ts';
import { usage } from '../problem.ts';
import { onInterrupt } from '../terminal/interrupts.ts';

interface Flags {
  readonly follow?: boolean;
  readonly limit?: string;
  readonly jsonl?: boolean;
}

const LIMIT = 20;
const MOST = 1_000;
const LOOK_EVERY_MS = 500;

export function declare(command: Command): void {
  command
    .argument('[filter...]')
    .option('-f, --follow', 'go on with what happens, until Ctrl-C')
    .option('--limit <number>', `how many of the newest (default: ${LIMIT}, at most ${MOST})`)
    .option('--jsonl', 'one JSON object for each event on a line of its own, also with --follow')
    .addHelpText(
      'after',
      `
Failures and what was decided for them, losses, and actions of people, of all tasks; when a source was down and works again,
and who held, paused or limited a source or a queue. A success at the first attempt leaves no event: \`holdfast stats\`
counts those. A filter: type:sync 'source:imap:*' 'reason:http.*' 'error:timed out' since:2h until:1h
  state   the state that the task got by it: state:dead is of what gave up
  executions   which execution it was: executions:3..`,
    );
  act<Flags>(command, events);
}

async function events(cli: Cli, terms: readonly string[], flags: Flags): Promise<number> {
  const { terminal } = cli;
  const { follow = false, jsonl = false } = flags;
  if (follow && terminal.json) {
    throw usage('events --follow has no end, so it is no JSON document', { hints: ['a line for each event: --jsonl'] });
  }
  const limit = flags.limit === undefined ? LIMIT : wholeNumberFlag(flags.limit, '--limit', 0, MOST);
  return withStore(cli, {}, async (holdfast) => {
    const filter = filterFrom(terms);
    // Before the newest are read, so that nothing is missed in between.
    const news = follow ? holdfast.administration.follow(filter) : undefined;
    const found = limit === 0 ? { events: [] } : await holdfast.administration.events({ filter, limit });
    const shown = found.events.toReversed();
    const searchedTo = found.searchedTo === undefined ? null : rfc3339(found.searchedTo);
    if (terminal.json) terminal.answer('events', eventsContent({ ...found, events: shown }), () => {});
    else {
      for (const event of shown) print(cli, event, holdfast.now(), jsonl);
      if (searchedTo !== null) terminal.note(`The search ended at ${searchedTo}. Go on: until:${searchedTo}`);
      if (shown.length === 0 && !follow) terminal.note('No event matches.');
    }
    if (news) await goOn(cli, holdfast, news, new Set(shown.map(({ id }) => id)), jsonl);
    return EXIT.done;
  });
}

async function goOn(
  cli: Cli,
  holdfast: Operations,
  news: { next(): Promise<readonly HappenedEvent[]> },
  shown: ReadonlySet<string>,
  jsonl: boolean,
): Promise<void> {
  const sleeper = new Sleeper();
  let ended = false;
  const listening = onInterrupt(() => {
    ended = true;
    sleeper.wake();
  });
  try {
    while (!ended) {
      for (const event of await news.next()) if (!shown.has(event.id)) print(cli, event, holdfast.now(), jsonl);
      await sleeper.sleep(LOOK_EVERY_MS);
    }
  } finally {
    listening();
  }
}

function print({ terminal }: Cli, event: HappenedEvent, now: number, jsonl: boolean): void {
  if (jsonl) {
    terminal.document(eventJson(event));
    return;
  }
  const glyph = terminal.out.glyph(stateOfEvent(event));
  terminal.result(`${clockTime(event.at, now)}  ${glyph} ${eventSubject(event)}  ${eventWords(event)}`);
}
