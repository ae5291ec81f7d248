import { endLine, nextSteps } from '../../documents/next-steps.ts';
import { formatDuration } from '../../duration.ts';
import type { PolicyCache } from '../../queue/policy-cache.ts';
import type { Task } from '../../queue/task-view.ts';
import type { ActionEntry, ExecutionEntry, HistoryEntry } from '../../store/store.ts';
import { isOver } from '../../task.ts';
import { GLYPHS } from '../../views/glyphs.ts';
import {
  attemptsUsed,
  endOf,
  FILE_MOVE,
  heldSentence,
  numbered,
  policyWords,
  reasoning,
  summaryOf,
} from '../../views/task-text.ts';
import { clockTime, until } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { cut } from '../terminal/width.ts';
import type { Change } from './watch.ts';

export interface ProgressOptions {
  /** The name of this process's worker. Other workers' executions are reported as such. */
  readonly worker: string;
  /** The note of this command's own actions, which are not shown. */
  readonly ownNote: string;
  /** Whether lines must say which task they are about. */
  readonly many: boolean;
  /** Whether the last line of a task is the command's result. Otherwise it is progress. */
  readonly endsOnStdout: boolean;
  readonly policies: PolicyCache;
  /** Names of lost workers, which no longer hold their tasks. */
  readonly lostWorkers: ReadonlySet<string>;
}

/** For more tasks than this, one line is shown instead of a line for each. */
const MOST_HEADERS = 3;

/** Workers keep this much of a command's stdout. */
const KEPT_BYTES = 4 * 1024;

/** How much of an error one line shows. */
const SAID_COLUMNS = 160;

/** Shows what happens to the tasks that a command runs or waits for. */
export class Progress {
  readonly #cli: Cli;
  readonly #options: ProgressOptions;
  readonly #lastSaid = new Map<number, string>();
  readonly #ranFor = new Map<number, number>();
  #isHintShown = false;

  constructor(cli: Cli, options: ProgressOptions) {
    this.#cli = cli;
    this.#options = options;
  }

  /** A success at the first attempt has no history, so the worker reports how long it took. */
  succeeded(id: number, ranFor: number): void {
    this.#ranFor.set(id, ranFor);
  }

  /** One line for each task, or one for all if there are many. */
  async start(tasks: readonly Task[], now: number): Promise<void> {
    if (tasks.length <= MOST_HEADERS) {
      for (const task of tasks) await this.#header(task, now);
      return;
    }
    const running = this.#cli.terminal.err.glyph('running');
    this.#note(`${running} ${tasks.length} tasks, #${tasks[0]?.id} to #${tasks.at(-1)?.id}`);
  }

  /** `▶ #41 rsync -a ./out/ nas:/backup/   up to 8 attempts, …`. */
  async #header(task: Task, now: number): Promise<void> {
    const { err } = this.#cli.terminal;
    const { answer } = await this.#options.policies.answerTo(task);
    const parts = [
      policyWords(answer),
      ...(task.dueAt && task.dueAt.getTime() > now
        ? [`${task.executions > 0 ? 'next' : 'first'} attempt ${until(task.dueAt.getTime(), now)}`]
        : []),
      ...(task.running ? [this.#whereItRuns(task.running.worker)] : []),
      ...(task.deadline ? [`until ${clockTime(task.deadline.getTime(), now)}`] : []),
    ];
    const line = `${err.glyph('running')} #${task.id} ${summaryOf(task)}`;
    this.#note(`${line}   ${err.paint('idle', parts.join(', '))}`);
    this.#held(task);
  }

  /** Shows what holds a due task. */
  #held(task: Task): void {
    const sentence = heldSentence(task);
    if (sentence === undefined) return;
    const { err } = this.#cli.terminal;
    const why = this.#cli.command(`explain ${task.id}`);
    this.#note(
      `  ${this.#whose(task)}${err.glyph('held')} held: ${sentence} (why: ${why})${err.paint('idle', this.#hint())}`,
    );
  }

  /** Shown once per command. */
  #hint(): string {
    const hint = this.#isHintShown ? '' : '      Ctrl-C detaches, the task stays';
    this.#isHintShown = true;
    return hint;
  }

  #whereItRuns(worker: string): string {
    const isLost = this.#options.lostWorkers.has(worker);
    return isLost
      ? `its worker ${visible(worker)} was lost: waiting to take it over`
      : `${visible(worker)} has taken it: following`;
  }

  /** Shows everything that happened to a task since the last look. */
  change({ before, task, news, history }: Change): void {
    const numbers = numbered(history);
    for (const entry of news) {
      if (entry.kind === 'action' && entry.note === this.#options.ownNote) continue;
      if (entry.kind === 'action') this.#act(task, entry);
      else if (entry.kind === 'execution') this.#execution(task, entry, numbers.get(entry) ?? 1);
    }
    this.#elsewhere(before, task);
    if (task.heldBy !== before.heldBy) this.#held(task);
    if (isLeftToPeople(task)) this.#end(task, history, news);
  }

  /** Shows a task for which nothing is left to do here. */
  over(task: Task, history: readonly HistoryEntry[]): void {
    this.#say(task, endLine(task, history));
    for (const line of nextSteps(this.#cli, task, history)) this.#note(`  ${line}`);
  }

  /** Shows the tasks that are not over when a person detaches. */
  async detached(open: readonly Task[]): Promise<void> {
    const [first] = open;
    if (!first) return;
    if (open.length > 1) this.#note(`detached. ${open.length} tasks stay on disk.`);
    else if (first.running && this.#isOwn(first.running.worker)) {
      this.#note(`detached. #${first.id} was stopped here, but that could not be recorded. A worker takes it over.`);
    } else if (first.running && this.#options.lostWorkers.has(first.running.worker)) {
      this.#note(`detached. The worker of #${first.id} was lost. Another worker takes it over.`);
    } else if (first.running) this.#note(`detached. #${first.id} goes on at ${visible(first.running.worker)}.`);
    else {
      const used = attemptsUsed(first, await this.#options.policies.answerTo(first));
      this.#note(`detached. #${first.id} stays on disk (${used}).`);
    }
    const resume = this.#cli.command(open.length > 1 ? 'resume' : `resume ${first.id}`);
    this.#note(`  continue here  ${resume}        in the background  ${this.#cli.command('worker')}`);
  }

  #execution(task: Task, entry: ExecutionEntry, attempt: number): void {
    const { err } = this.#cli.terminal;
    const took = formatDuration(Math.max(0, entry.endedAt - entry.startedAt));
    const start = `  ${this.#whose(task)}attempt ${attempt}`;
    const elsewhere = this.#isOwn(entry.worker) ? [] : [`on ${visible(entry.worker)}`];
    switch (entry.outcome) {
      case 'success':
        this.#parts(start, `${err.glyph('succeeded')} ${took}`, ...elsewhere);
        break;
      case 'interruption':
        this.#parts(start, `${err.glyph('cancelled')} ${took}`, 'interrupted, not counted', ...elsewhere);
        break;
      case 'loss':
        this.#parts(start, `${err.paint('waiting', GLYPHS.cancelled)} ${took}`, `lost with ${visible(entry.worker)}`);
        break;
      case 'expiry':
        this.#parts(`  ${this.#whose(task)}${err.glyph('dead')} its deadline passed`);
        break;
      default:
        this.#parts(start, `${err.glyph('dead')} ${took}`, ...this.#failure(task, entry), ...elsewhere);
    }
    if (entry.late) this.#note('    too late: the lease had ended, so this changed nothing');
    else if (entry.next === 'scheduled') this.#nextTry(task, entry);
  }

  #failure(task: Task, entry: ExecutionEntry): string[] {
    const { how, said } = endOf(entry);
    const same = said !== '' && this.#lastSaid.get(task.id) === said;
    this.#lastSaid.set(task.id, said);
    const quote = said === '' ? '' : `"${cut(said, SAID_COLUMNS)}"`;
    return [how, visible(entry.failure?.reason ?? entry.outcome), same ? 'same error' : quote].filter(
      (part) => part !== '',
    );
  }

  #nextTry(task: Task, entry: ExecutionEntry): void {
    const { err } = this.#cli.terminal;
    const glyph = `  ${this.#whose(task)}${err.glyph('retrying')}`;
    if (!entry.after) {
      if (entry.outcome !== 'interruption') this.#note(`${glyph} next attempt at once${this.#why(entry)}`);
      return;
    }
    const hint = err.paint('idle', this.#hint());
    if (entry.because?.step === 'awaits_verdict') {
      this.#note(`${glyph} it ends in ${formatDuration(entry.after)}, unless its source turns out to be down${hint}`);
      return;
    }
    this.#note(`${glyph} next attempt in ${formatDuration(entry.after)}${this.#why(entry)}${hint}`);
  }

  #why({ because }: ExecutionEntry): string {
    if (because?.step === 'source_down') return ' (its source is down or needs a person: not counted)';
    const parts = because ? reasoning(because) : '';
    return parts === '' ? '' : ` (${parts})`;
  }

  #act(task: Task, entry: ActionEntry): void {
    const note = entry.note === undefined ? '' : `: ${visible(entry.note)}`;
    const asked = entry.to === 'running' ? ' (asked for; its worker hears of it)' : '';
    this.#note(`  ${this.#whose(task)}${visible(entry.verb)} by ${visible(entry.actor)}${asked}${note}`);
  }

  /** Says that another worker has taken the task, once per execution. */
  #elsewhere(before: Task, task: Task): void {
    const worker = task.running?.worker;
    if (worker === undefined || this.#isOwn(worker)) return;
    if (before.running?.worker === worker && before.executions === task.executions) return;
    const glyph = this.#cli.terminal.err.glyph('running');
    this.#note(`  ${glyph} ${visible(worker)} has taken #${task.id}: following it`);
  }

  #end(task: Task, history: readonly HistoryEntry[], news: readonly HistoryEntry[]): void {
    if (task.state === 'succeeded') this.#success(task, news);
    const what = this.#options.many || this.#options.endsOnStdout ? `   ${summaryOf(task)}` : '';
    this.#say(task, `${endLine(task, history)}${what}`);
    if (task.state === 'succeeded') this.#notKept(task);
    if (task.state === 'succeeded' || task.state === 'cancelled') return;
    for (const line of nextSteps(this.#cli, task, history)) this.#note(`  ${line}`);
  }

  #success(task: Task, news: readonly HistoryEntry[]): void {
    const ranFor = this.#ranFor.get(task.id);
    if (ranFor === undefined) this.#outputFromElsewhere(task);
    else if (!this.#options.many && !news.some((entry) => entry.kind === 'execution')) {
      this.#parts('  attempt 1', `${this.#cli.terminal.err.glyph('succeeded')} ${formatDuration(ranFor)}`);
    }
  }

  /** Shows which properties of a file a move could not keep. */
  #notKept({ type, result }: Task): void {
    const { note } = Object(result) as { note?: unknown };
    if (type === FILE_MOVE && typeof note === 'string') this.#note(`  ${visible(note)}`);
  }

  /** Shows the output of a command that another worker ran. Only the end of it is kept, with the result. */
  #outputFromElsewhere({ result }: Task): void {
    const { stdout } = Object(result) as { stdout?: unknown };
    if (typeof stdout !== 'string' || stdout === '' || this.#options.endsOnStdout) return;
    const { terminal } = this.#cli;
    (terminal.json ? terminal.err : terminal.out).printed(stdout);
    if (Buffer.byteLength(stdout) >= KEPT_BYTES) terminal.warn('  only the end of its output was kept by its worker');
  }

  /** Shows the last line about a task. A failure is shown with --quiet too. */
  #say(task: Task, text: string): void {
    const { terminal } = this.#cli;
    const onStdout = this.#options.endsOnStdout && !terminal.json;
    const channel = onStdout ? terminal.out : terminal.err;
    const line = `${channel.glyph(task)} #${task.id} ${text}`;
    if (onStdout) terminal.result(line);
    else if (task.state === 'succeeded') terminal.note(line);
    else terminal.warn(line);
  }

  #parts(...parts: readonly string[]): void {
    this.#note(parts.join('  '));
  }

  #note(text: string): void {
    this.#cli.terminal.note(text);
  }

  #whose({ id }: Task): string {
    return this.#options.many ? `#${id} ` : '';
  }

  #isOwn(worker: string): boolean {
    return worker === this.#options.worker;
  }
}

/** Whether no worker will run a task: it is over, an operator holds it, or its source needs a person. */
export function isLeftToPeople({ state, heldBy }: Task): boolean {
  return isOver(state) || state === 'held' || heldBy === 'needs_person';
}
