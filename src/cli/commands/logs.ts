import type { Command } from 'commander';
import { logsContent, outputInResult, type Printed } from '../../documents/logs.ts';
import { endLine } from '../../documents/next-steps.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import type { ExecutionEntry, HistoryEntry } from '../../store/store.ts';
import { isOver } from '../../task.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { endOf, SHELL_COMMAND } from '../../views/task-text.ts';
import { clockTime } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { findTask } from '../flags/task-ids.ts';
import { exitOfTasks } from '../foreground/exit-of-tasks.ts';
import { Sleeper } from '../foreground/sleeper.ts';
import { Watch } from '../foreground/watch.ts';
import { withStore } from '../opening/open-store.ts';
import type { StoreLocation } from '../opening/store-location.ts';
import { OutputReader } from '../output/output-log.ts';
import { Problem } from '../problem.ts';

/** How often `--follow` looks for new output. */
const FOLLOW_EVERY_MS = 200;

/** A note for stores that several machines share. */
const ELSEWHERE = 'The output of a command is kept on the machine where it ran, for the user who ran it.';

interface Flags {
  readonly follow?: boolean;
  readonly execution?: string;
}

export function declare(command: Command): void {
  command
    .argument('<id>')
    .option('-f, --follow', 'go on until the task ends or needs a person, and exit as `holdfast wait` does')
    .option('--execution <number>', 'only of this one, as `holdfast show` counts them')
    .addHelpText(
      'after',
      `
What a command wrote to stdout goes to stdout, what it wrote to stderr to stderr, whoever runs it and wherever. Of each task
the last 256 KiB or more are kept, in a folder beside the store (holdfast.db.logs). With a store on PostgreSQL they are kept on
the machine that ran it, in the state folder of the user who did.
On a terminal colours pass, and other control characters are spelled out, as in \\x1b; elsewhere the text passes as it is.
With --json one document, at the end. Other tasks than commands print nothing: \`holdfast show ID\` tells how they went.`,
    );
  act<Flags>(command, async (cli, [id], flags) => {
    const only = flags.execution === undefined ? undefined : wholeNumberFlag(flags.execution, '--execution', 1);
    return withStore(cli, {}, async (holdfast, location) => {
      const task = await findTask(cli, holdfast, id as string);
      const logs = new Logs(cli, location, task, only);
      return flags.follow ? follow(cli, holdfast, logs, task) : once(cli, holdfast, logs, task);
    });
  });
}

async function once(cli: Cli, holdfast: Operations, logs: Logs, task: Task): Promise<number> {
  logs.show(await holdfast.history(task.id), holdfast.now());
  if (cli.terminal.json) logs.document(task, EXIT.done);
  else if (task.state === 'running')
    cli.terminal.note(`#${task.id} runs. Follow it: ${cli.command(`logs ${task.id} -f`)}`);
  return EXIT.done;
}

async function follow(cli: Cli, holdfast: Operations, logs: Logs, task: Task): Promise<number> {
  const { terminal } = cli;
  const watch = await Watch.start(holdfast, [task], ({ state }) => isOver(state));
  logs.show(await holdfast.history(task.id), holdfast.now());
  if (watch.open.length > 0) await hintAtWorkers(cli, holdfast, `resume ${task.id}`, [task]);
  if (task.state === 'held') terminal.note(`#${task.id} is held. Release it: ${cli.command(`release ${task.id}`)}`);
  const sleeper = new Sleeper();
  while (watch.open.length > 0) {
    await sleeper.sleep(FOLLOW_EVERY_MS);
    await watch.lookAgain();
    // Read after the look at the task: the output of an execution is kept before its end is visible.
    logs.showNews(holdfast.now());
  }
  const [left] = watch.tasks as [Task];
  const exit = exitOfTasks([left]);
  if (terminal.json) logs.document(left, exit);
  else {
    const glyph = terminal.err.glyph(left);
    terminal.note(`${glyph} #${left.id} ${endLine(left, await holdfast.history(left.id))}`);
  }
  return exit;
}

/** The output of a task, shown on the streams to which it was written, or collected for one document. */
class Logs {
  readonly #cli: Cli;
  readonly #reader: OutputReader;
  readonly #isShared: boolean;
  readonly #task: Task;
  readonly #only: number | undefined;
  readonly #gathered: Printed[] = [];
  #complete = true;
  #last: number | undefined;

  constructor(cli: Cli, location: StoreLocation, task: Task, only: number | undefined) {
    this.#cli = cli;
    this.#reader = new OutputReader(location, task.id);
    this.#isShared = location.kind === 'postgres';
    this.#task = task;
    this.#only = only;
  }

  /** All output so far, one execution after the other. For executions without output, how they ended. */
  show(history: readonly HistoryEntry[], now: number): void {
    const kept = this.#news();
    const printed = kept.length > 0 ? kept : this.#tail();
    const ends = history
      .filter((entry): entry is ExecutionEntry => entry.kind === 'execution' && !entry.late)
      .filter(({ execution }) => this.#isWanted(execution));
    const executions = new Set([...printed, ...ends].map(({ execution }) => execution));
    for (const execution of [...executions].sort((a, b) => a - b)) {
      const own = printed.filter((piece) => piece.execution === execution);
      const end = ends.find((entry) => entry.execution === execution);
      if (executions.size > 1 || own.length === 0)
        this.#header(execution, end?.startedAt ?? own[0]?.at ?? now, now, end);
      this.#last = execution;
      for (const piece of own) this.#print(piece);
    }
    if (executions.size === 0) this.#nothing();
  }

  /** The new output. */
  showNews(now: number): void {
    for (const piece of this.#news()) {
      const { execution, at } = piece;
      if (this.#last !== undefined && execution !== this.#last) this.#header(execution, at, now);
      this.#last = execution;
      this.#print(piece);
    }
  }

  document(task: Task, exit: number): void {
    const output = { pieces: this.#gathered, complete: this.#complete };
    this.#cli.terminal.document(documentOf('logs', logsContent(task, exit, output)));
  }

  #news(): Printed[] {
    const news = this.#read().filter(({ execution }) => this.#isWanted(execution));
    if (this.#reader.incomplete) this.#miss('Earlier output is no longer kept.');
    return news;
  }

  #read(): Printed[] {
    try {
      return this.#reader.news();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      throw new Problem(
        code === 'EACCES' ? 'store_read_only' : 'store_io',
        `what #${this.#task.id} printed cannot be read: ${visible(message)}`,
        { hints: [`how it went: ${this.#cli.command(`show ${this.#task.id}`)}`], cause: error },
      );
    }
  }

  /** The output in the result of a success, if there is no other. */
  #tail(): readonly Printed[] {
    const found = outputInResult(this.#task).filter(({ execution }) => this.#isWanted(execution));
    if (found.length > 0) {
      this.#miss(`Only the end of what it wrote to stdout was kept${this.#isShared ? ` here. ${ELSEWHERE}` : '.'}`);
    }
    return found;
  }

  #miss(words: string): void {
    if (this.#complete) this.#cli.terminal.note(words);
    this.#complete = false;
  }

  #isWanted(execution: number): boolean {
    return this.#only === undefined || execution === this.#only;
  }

  /** `▶ execution 2  14:28:39  on w1  exit 3: went wrong`. */
  #header(execution: number, at: number, now: number, end?: ExecutionEntry): void {
    const { err } = this.#cli.terminal;
    const { how, said } = end ? endOf(end) : { how: '', said: '' };
    const ended = [how, said].filter((part) => part !== '').join(': ');
    const parts = [
      `${err.glyph('running')} execution ${execution}`,
      clockTime(at, now),
      ...(end ? [`on ${visible(end.worker)}`] : []),
      ...(ended === '' ? [] : [ended]),
    ];
    this.#cli.terminal.note(parts.join('  '));
  }

  #print(piece: Printed): void {
    const { terminal } = this.#cli;
    if (terminal.json) this.#gathered.push(piece);
    else (piece.stream === 'stdout' ? terminal.out : terminal.err).printed(piece.text);
  }

  #nothing(): void {
    const { id, type } = this.#task;
    if (type === SHELL_COMMAND)
      this.#cli.terminal.note(
        this.#isShared ? `#${id} has printed nothing here. ${ELSEWHERE}` : `#${id} has printed nothing.`,
      );
    else
      this.#cli.terminal.note(
        `#${id} is no command, so it prints nothing. How it went: ${this.#cli.command(`show ${id}`)}`,
      );
  }
}
