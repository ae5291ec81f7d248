import type { SeenStatus } from '../../documents/status.ts';
import { SIGN_OF_ATTENTION } from '../../views/attention-signs.ts';
import { visible } from '../../views/visible.ts';
import { type Problem, problemLines, problemOf } from '../problem.ts';
import type { Key, NamedKey } from '../terminal/keys.ts';
import { type LiveView, type Size, timeNow } from '../terminal/live.ts';
import { table } from '../terminal/table.ts';
import { cut, padded, widthOf, wrapped } from '../terminal/width.ts';
import { type Listed, PANE, PANES, type PaneContext, type PaneName, type Question } from './panes.ts';

/** How many things that need attention are shown above the panes. */
const MOST_ATTENTION = 3;

/** Below this, nothing can be read. */
const LEAST: Size = { rows: 10, columns: 40 };

/** What is shown instead of the list: lines about one thing, which can be scrolled. */
interface Open {
  readonly title: string;
  /** Reads the lines again; they change while one looks. */
  readonly read: () => Promise<readonly string[]>;
  readonly lines: readonly string[];
  readonly top: number;
}

export interface TopParts {
  readonly context: Omit<PaneContext, 'filter' | 'columns'>;
  readonly store: string;
  readonly seen: () => Promise<SeenStatus>;
  /** The lines of `status`. */
  readonly screen: (seen: SeenStatus) => readonly string[];
  /** The totals by state in one line. */
  readonly totals: (seen: SeenStatus) => string;
}

/** `holdfast top`: four lists of a store, what each line is about, and what a person can do about it. */
export class TopView implements LiveView {
  paused = false;
  readonly #parts: TopParts;
  #pane: PaneName = 'tasks';
  #seen: SeenStatus | undefined;
  #listed: Listed | undefined;
  /** The selected line of each pane: what it is about, and where it was. */
  readonly #selected = new Map<PaneName, { readonly key: string; readonly index: number }>();
  #open: Open | undefined;
  #filter = '';
  /** The text of a filter while it is typed. */
  #typing: string | undefined;
  #asked: Question | undefined;
  #message = '';
  /** Why what is shown is old. */
  #trouble = '';
  #readAt = '';
  #size: Size = LEAST;

  constructor(parts: TopParts) {
    this.#parts = parts;
  }

  async read(): Promise<void> {
    this.#seen = await this.#parts.seen();
    await this.#readPane();
    this.#trouble = '';
    this.#readAt = timeNow();
  }

  markOld(problem?: Problem): void {
    const why = problem ? inOneLine(problem) : 'the store does not answer';
    this.#trouble = `What is shown is of ${this.#readAt}: ${why}`;
  }

  async #readPane(): Promise<void> {
    if (this.#open) this.#open = { ...this.#open, lines: await this.#open.read() };
    else this.#listed = await PANE[this.#pane].list(this.#context);
  }

  get #context(): PaneContext {
    return { ...this.#parts.context, filter: this.#filter, columns: this.#size.columns };
  }

  // ── Keys ──

  async press(key: Key): Promise<boolean> {
    if (this.#typing !== undefined) return this.#type(key);
    const pressed = 'name' in key ? key.name : 'typed' in key ? key.typed : '';
    if (this.#asked) return this.#answer(pressed);
    this.#message = '';
    try {
      return this.#open ? await this.#pressOpen(pressed) : await this.#pressList(pressed);
    } catch (error) {
      this.#fail(error);
      return true;
    }
  }

  async #pressOpen(pressed: NamedKey | string): Promise<boolean> {
    const open = this.#open as Open;
    const step = STEPS[pressed];
    if (step !== undefined) {
      const last = Math.max(0, this.#wrappedLines(open).length - this.#room);
      const top = Math.min(last, Math.max(0, open.top + step * (Math.abs(step) > 1 ? this.#room - 1 : 1)));
      this.#open = { ...open, top };
      return true;
    }
    if (['escape', 'enter', 'q', 'backspace'].includes(pressed)) {
      this.#open = undefined;
      await this.#readPane();
      return true;
    }
    return this.#actOrLook(pressed);
  }

  async #pressList(pressed: NamedKey | string): Promise<boolean> {
    const step = STEPS[pressed];
    if (step !== undefined) {
      this.#select(this.#index + step * (Math.abs(step) > 1 ? this.#room - 1 : 1));
      return true;
    }
    const pane = PANES[Number(pressed) - 1];
    if (pane) return this.#goTo(pane);
    switch (pressed) {
      case 'tab':
      case 'back_tab': {
        const by = pressed === 'tab' ? 1 : PANES.length - 1;
        return this.#goTo(PANES[(PANES.indexOf(this.#pane) + by) % PANES.length] as PaneName);
      }
      case 'enter': {
        const key = this.#key;
        if (key !== undefined) await this.#show(this.#titleOf(key), () => PANE[this.#pane].show(this.#context, key));
        return true;
      }
      case 's':
        await this.#show('status', async () => {
          return this.#parts.screen(this.#seen ?? (await this.#parts.seen()));
        });
        return true;
      case '?':
        await this.#show('keys', async () => HELP);
        return true;
      case '/':
        this.#typing = this.#filter;
        return true;
      case 'escape':
        this.#filter = '';
        await this.#readPane();
        return true;
      case 't': {
        const tasksOf = PANE[this.#pane].tasksOf;
        if (!tasksOf || this.#key === undefined) return false;
        this.#filter = tasksOf(this.#key);
        return this.#goTo('tasks');
      }
      default:
        return this.#actOrLook(pressed);
    }
  }

  /** What a key does with the selected line, also while that is shown. */
  async #actOrLook(pressed: string): Promise<boolean> {
    const { actions, looks } = PANE[this.#pane];
    const key = this.#key;
    if (key === undefined) return false;
    const look = looks.find((each) => each.key === pressed);
    if (look) {
      await this.#show(this.#titleOf(key), () => look.lines(this.#context, key));
      return true;
    }
    const action = actions.find((each) => each.key === pressed);
    if (!action) return false;
    this.#asked = await action.ask(this.#context, key);
    return true;
  }

  async #answer(pressed: NamedKey | string): Promise<boolean> {
    const { yes } = this.#asked as Question;
    this.#asked = undefined;
    if (pressed === 'y' || pressed === 'Y') await this.#act(yes);
    else this.#message = 'Nothing was changed.';
    return true;
  }

  async #act(act: Question['yes']): Promise<void> {
    try {
      this.#message = await act();
      await this.read();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #type(key: Key): Promise<boolean> {
    const text = this.#typing as string;
    this.#message = '';
    if ('typed' in key) this.#typing = text + key.typed;
    else if ('pasted' in key) this.#typing = text + key.pasted.replace(/\p{Cc}+/gu, ' ');
    else if (key.name === 'backspace') this.#typing = [...text].slice(0, -1).join('');
    else if (key.name === 'escape') this.#typing = undefined;
    else if (key.name === 'enter') await this.#applyFilter(text.trim());
    return true;
  }

  async #applyFilter(filter: string): Promise<void> {
    const before = { filter: this.#filter, pane: this.#pane };
    this.#pane = 'tasks';
    this.#filter = filter;
    try {
      await this.#readPane();
      this.#typing = undefined;
    } catch (error) {
      // It can be corrected: what was typed stays.
      this.#filter = before.filter;
      this.#pane = before.pane;
      this.#fail(error);
    }
  }

  async #goTo(pane: PaneName): Promise<boolean> {
    this.#pane = pane;
    this.#listed = undefined;
    await this.#readPane();
    return true;
  }

  async #show(title: string, read: () => Promise<readonly string[]>): Promise<void> {
    this.#open = { title, read, lines: await read(), top: 0 };
  }

  #fail(error: unknown): void {
    this.#message = inOneLine(problemOf(error));
  }

  // ── The selected line ──

  get #index(): number {
    const rows = this.#listed?.rows ?? [];
    const selected = this.#selected.get(this.#pane);
    const found = selected ? rows.findIndex(({ key }) => key === selected.key) : 0;
    return found >= 0 ? found : Math.min(selected?.index ?? 0, Math.max(0, rows.length - 1));
  }

  get #key(): string | undefined {
    return this.#open ? this.#selected.get(this.#pane)?.key : this.#listed?.rows[this.#index]?.key;
  }

  #select(index: number): void {
    const rows = this.#listed?.rows ?? [];
    const kept = Math.min(rows.length - 1, Math.max(0, index));
    const row = rows[kept];
    if (row) this.#selected.set(this.#pane, { key: row.key, index: kept });
  }

  #titleOf(key: string): string {
    // What is shown stays selected, also if the list changes meanwhile.
    if (!this.#open) this.#selected.set(this.#pane, { key, index: this.#index });
    return `${PANE[this.#pane].title.toLowerCase()} › ${visible(key)}`;
  }

  // ── Drawing ──

  /** How many lines a list or an open text has. */
  get #room(): number {
    return Math.max(1, this.#size.rows - 1 - this.#attentionLines().length - 1 - (this.#open ? 0 : 1) - 2);
  }

  draw(size: Size): readonly string[] {
    this.#size = size;
    if (size.rows < LEAST.rows || size.columns < LEAST.columns) {
      return [`The terminal is too small: it needs ${LEAST.columns}×${LEAST.rows}. q: quit`.slice(0, size.columns)];
    }
    const body = this.#open ? this.#openLines(this.#open) : this.#listLines();
    const fill = Array.from({ length: Math.max(0, this.#room + (this.#open ? 0 : 1) - body.length) }, () => '');
    return [
      this.#titleLine(),
      ...this.#attentionLines(),
      this.#tabLine(),
      ...body,
      ...fill,
      this.#messageLine(),
      this.#out.paint('idle', cut(this.#keyLine(), size.columns)),
    ];
  }

  get #out() {
    return this.#parts.context.cli.terminal.out;
  }

  #titleLine(): string {
    const { columns } = this.#size;
    const right = `${this.paused ? 'paused  ' : ''}${timeNow()}`;
    const totals = this.#seen ? this.#parts.totals(this.#seen) : '';
    const room = Math.max(0, columns - widthOf(totals) - widthOf(right) - 4);
    const name = cut(`top ${visible(this.#parts.store)}`, room);
    return (
      padded(cut(`${padded(name, room)}  ${totals}  `, columns - widthOf(right)), columns - widthOf(right)) + right
    );
  }

  #attentionLines(): readonly string[] {
    const attention = this.#seen?.attention ?? [];
    const shown = attention.slice(0, attention.length > MOST_ATTENTION ? MOST_ATTENTION - 1 : MOST_ATTENTION);
    const more = attention.length - shown.length;
    return [
      ...shown.map(
        ({ kind, text }) => `${this.#out.glyph(SIGN_OF_ATTENTION[kind])} ${cut(text, this.#size.columns - 2)}`,
      ),
      ...(more > 0 ? [cut(`  and ${more} more that need attention: s`, this.#size.columns)] : []),
    ];
  }

  #tabLine(): string {
    if (this.#open) return this.#out.paint('strong', cut(this.#open.title, this.#size.columns));
    const tabs = PANES.map((name, i) => {
      const { title } = PANE[name];
      return name === this.#pane ? this.#out.paint('strong', `[${i + 1} ${title}]`) : ` ${i + 1} ${title} `;
    }).join(' ');
    const filter = this.#filter === '' || this.#pane !== 'tasks' ? '' : `  ${visible(this.#filter)}`;
    const taken = PANES.reduce((sum, name) => sum + PANE[name].title.length + 5, 0);
    return `${tabs}${cut(filter, Math.max(0, this.#size.columns - taken))}`;
  }

  #listLines(): readonly string[] {
    if (!this.#listed) return [];
    const { columns, rows, none } = this.#listed;
    if (rows.length === 0) return [none];
    const index = this.#index;
    const room = this.#room;
    const first = Math.max(0, Math.min(index - Math.floor(room / 2), rows.length - room));
    const shown = rows.slice(first, first + room);
    const lines = table(
      columns,
      shown.map(({ cells }) => cells),
      this.#out,
      this.#size.columns - 2,
    );
    return lines.map((line, i) => (i > 0 && first + i - 1 === index ? `> ${line}` : `  ${line}`));
  }

  #openLines(open: Open): readonly string[] {
    const lines = this.#wrappedLines(open);
    const top = Math.min(open.top, Math.max(0, lines.length - this.#room));
    return lines.slice(top, top + this.#room);
  }

  #wrappedLines({ lines }: Open): readonly string[] {
    return lines.flatMap((line) => wrapped(line, this.#size.columns));
  }

  #messageLine(): string {
    const { columns } = this.#size;
    if (this.#typing !== undefined) {
      // The end of a long filter is what one types.
      const text = `filter: ${visible(this.#typing)}_`;
      return text.length > columns ? text.slice(-columns) : text;
    }
    if (this.#asked) return this.#out.paint('human', cut(`${this.#asked.text} y: yes, any other key: no`, columns));
    return cut(this.#message === '' ? this.#trouble : this.#message, columns);
  }

  #keyLine(): string {
    if (this.#typing !== undefined && this.#message !== '') return this.#message;
    if (this.#typing !== undefined) return 'Enter: apply  Esc: leave it  such as state:dead reason:http.* since:2h';
    const { actions, looks, tasksOf } = PANE[this.#pane];
    const keys = [...looks, ...actions].map(({ key, words }) => `${key}: ${words}`);
    const tasks = tasksOf ? ['t: its tasks'] : [];
    return this.#open
      ? ['j/k: scroll', ...keys, 'q: back'].join('  ')
      : ['Enter: show', ...keys, ...tasks, '/: filter', '?: keys', 'q: quit'].join('  ');
  }
}

/** A problem for the one line that there is for messages. Several lines are joined. */
function inOneLine(problem: Problem): string {
  return problemLines(problem)
    .map((line) => line.trim())
    .join('  ');
}

/** More lines than any list or text has. */
const FAR = 1_000_000;

/** By how many lines a key moves; 2 and -2: by a page. */
const STEPS: Readonly<Record<string, number>> = {
  j: 1,
  down: 1,
  k: -1,
  up: -1,
  ' ': 2,
  page_down: 2,
  page_up: -2,
  b: -2,
  g: -FAR,
  home: -FAR,
  G: FAR,
  end: FAR,
};

export const HELP: readonly string[] = [
  '1 2 3 4, Tab   tasks, failures, sources, workers',
  'j k, arrows    the next and the previous line; Space and b: a page; g and G: the first and the last',
  'Enter          everything about what is selected; Esc or q: back',
  's              all of `holdfast status`',
  '/              a filter of the tasks, as in `holdfast list`; Esc: no filter',
  't              the tasks of a group of failures, or of a source',
  'p              pause reading, and go on',
  'q, Ctrl-C      quit',
  '',
  'Tasks          e: explain, r: retry, c: cancel, h: hold or release',
  'Failures       a: acknowledge, m: mute, d: resolve',
  'Sources        h: hold or release, x: test it with its next task',
  'What changes something is asked first.',
];
