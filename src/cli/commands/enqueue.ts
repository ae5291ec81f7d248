import type { Command } from 'commander';
import { enqueueContent, isKnownType } from '../../documents/enqueue.ts';
import { DEFAULT_SIZE_LIMIT } from '../../json.ts';
import type { EnqueueOptions } from '../../queue/enqueue.ts';
import type { Operations } from '../../queue/operations.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { OWN_TYPES } from '../../views/task-text.ts';
import { quoted, visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { readStdin } from '../flags/given.ts';
import { span } from '../flags/moment.ts';
import {
  enqueueOptions,
  foundByKey,
  hintAtWorkers,
  KEY,
  nameFlag,
  recordedLine,
  UNIQUE,
} from '../flags/record-flags.ts';
import { withHoldfast } from '../opening/open-holdfast.ts';
import { type Problem, usage } from '../problem.ts';
import { nearest } from '../suggest.ts';

interface Flags {
  readonly queue?: string;
  readonly source?: string;
  readonly key?: string;
  readonly unique?: string;
  readonly delay?: string;
  readonly priority?: string;
  readonly idempotent?: boolean;
}

export function declare(command: Command): void {
  command
    .argument('<type>')
    .argument('[json]')
    .option('--queue <name>', 'the queue (default: default)')
    .option('--source <name>', 'the failure domain that it touches, such as imap:INBOX (default: its type)')
    .option(...KEY)
    .option(...UNIQUE)
    .option('--delay <duration>', 'due so long from now, such as 10m')
    .option('--priority <number>', '0 (default) to 4095; higher goes first in queues that are ordered so')
    .option('--idempotent', 'running it twice does no harm')
    .option('--no-idempotent', 'running it twice does harm: a person is asked when its outcome is unknown')
    .addHelpText('after', HELP);
  act<Flags>(command, enqueue);
}

const HELP = `
Records a task for a program of yours that defines this type. JSON is the input of its handler (default: null); - reads it from
stdin. The result is the number of the task; with --quiet nothing else is printed.

  holdfast enqueue sync_mailbox '{"mailbox": "INBOX"}' --source imap:INBOX --key inbox-1
  jq -c .order order.json | holdfast enqueue order.push -`;

/** How many of the newest tasks are looked at for types with a similar name. */
const MOST = 200;

async function enqueue(cli: Cli, [type = '', json]: readonly string[], flags: Flags): Promise<void> {
  nameFlag(type, 'TYPE');
  const options = optionsFrom(flags, type);
  const input = inputFrom(json === '-' ? (await readStdin(DEFAULT_SIZE_LIMIT, tooLarge)).toString() : json, type);
  return withHoldfast(cli, { create: true }, async (holdfast) => {
    const isKnown = await isKnownType(holdfast, type);
    const { id, created } = await holdfast.enqueue<unknown>(type, input, options);
    const task = await holdfast.get(id);
    if (!created) foundByKey(cli, task, input, flags);
    else if (!isKnown) await warnOfNewType(cli, holdfast, type, id);
    if (cli.terminal.json) {
      cli.terminal.document(documentOf('enqueue', enqueueContent(task, created, isKnown)));
    } else cli.terminal.result(await recordedLine(cli, holdfast, task));
    await hintAtWorkers(cli, holdfast, `resume ${id}`, [task]);
  });
}

function optionsFrom(flags: Flags, type: string): EnqueueOptions {
  const { source, delay, idempotent, ...recorded } = flags;
  return {
    ...enqueueOptions(recorded, type, 0),
    ...(source !== undefined && { source: nameFlag(source, '--source') }),
    ...(delay !== undefined && { delay: `${span(delay, '--delay')}ms` }),
    ...(idempotent !== undefined && { idempotent }),
  };
}

function inputFrom(json: string | undefined, type: string): unknown {
  try {
    return json === undefined ? null : JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw usage(`the input is not valid JSON: ${visible(error.message)}`, {
      hints: [`quote it for the shell: holdfast enqueue ${quoted(type)} '{"id": 5}'`],
      cause: error,
    });
  }
}

function tooLarge(): Problem {
  return usage('the input is larger than 1 MiB, which is the limit of a task', {
    hints: ['store it where the handler can read it, and send its address'],
  });
}

/** The type may be new, or misspelled: then no program would ever run the task. */
async function warnOfNewType(cli: Cli, holdfast: Operations, type: string, id: number): Promise<void> {
  const workers = await holdfast.workers();
  const newest = (await holdfast.list({ limit: MOST, before: id })).map((task) => task.type);
  const known = new Set([...workers.flatMap(({ takes }) => takes.types ?? []), ...newest, ...OWN_TYPES]);
  const [like] = nearest(type, [...known]);
  const meant = like === undefined ? '' : `; did you mean ${visible(like)}? Then: ${cli.command(`cancel ${id}`)}`;
  cli.terminal.warn(`This store has never had a task of the type ${visible(type)}${meant}`);
}
