import { ENGINE_REASONS, type EngineReasonInfo, familyOf, REASONS } from '../failure/classify/reasons.ts';
import { FAILURE_KINDS, isKind, isReason } from '../failure/outcome.ts';
import { editsBetween } from '../nearest.ts';
import { likeName } from './nearest-name.ts';
import { type Located, type Problems, quoted } from './problems.ts';
import { membersOf, type RetryBlock } from './retry.ts';

const ENGINE: Readonly<Record<string, EngineReasonInfo>> = ENGINE_REASONS;

const LISTED = 'A reason of your own is listed under `reasons:`.';

type Objection = readonly [message: string, suggestion?: string | undefined];

/** The reasons that a file can speak of. */
export class KnownReasons {
  readonly #own: ReadonlySet<string>;
  /** Whether the file lists all reasons of the application. */
  readonly #complete: boolean;
  readonly #all: readonly string[];
  readonly #families: readonly string[];

  constructor(byRules: readonly string[], listed: readonly string[] | undefined) {
    this.#own = new Set([...byRules, ...(listed ?? [])]);
    this.#complete = listed !== undefined;
    this.#all = [
      ...Object.keys(REASONS),
      ...Object.keys(ENGINE).filter((reason) => ENGINE[reason]?.answered),
      ...this.#own,
    ];
    this.#families = [...new Set(this.#all.map(familyOf))];
  }

  /** Refuses the rules of a policy that no failure will ever meet. */
  check({ node }: RetryBlock, problems: Problems): void {
    const rules = membersOf(node).find((entry) => entry.name === 'rules');
    for (const { name, at } of rules ? membersOf(rules.value) : []) {
      if (problems.full) return;
      const objection = isKind(name) ? undefined : this.#objectionTo(name);
      if (objection) problems.refuse(at, ...objection);
    }
  }

  /** Refuses the name of a reason or family with which no task comes to rest. */
  checkName(name: string, at: Located, problems: Problems): void {
    const objection = Object.hasOwn(ENGINE, name) || name === 'unique.*' ? undefined : this.#objectionTo(name);
    if (objection) problems.refuse(at, ...objection);
  }

  #objectionTo(name: string): Objection | undefined {
    if (name.endsWith('.*')) return this.#objectionToFamily(name);
    if (!isReason(name)) {
      const form = `A rule is named by a reason (fs.locked), a family (fs.*) or a kind (transient), got ${quoted(name)}.`;
      const like = likeName(name, [...FAILURE_KINDS, ...this.#all, ...this.#families]);
      if (like !== undefined) return [form, `Did you mean ${quoted(like)}?`];
      return [
        form,
        /^[A-Z][A-Z0-9_]+$/.test(name) ? 'What an error with that code is, is said under `classify:`.' : undefined,
      ];
    }
    if (this.#all.includes(name)) return undefined;
    const family = familyOf(name);
    const status = /^http\.([345])\d\d$/.exec(name);
    if (status)
      return [
        `The classifier gives no reason ${quoted(name)}.`,
        `That status is 'http.${status[1]}xx'; for an own reason, write a rule under \`classify:\`.`,
      ];
    if (this.#ours(family)) {
      const others = this.#all.filter((each) => familyOf(each) === family);
      const like = likeName(name, this.#all);
      const hint =
        like === undefined ? `Of ${family} there are: ${others.join(', ')}.` : `Did you mean ${quoted(like)}?`;
      return [`Unknown reason ${quoted(name)}.`, `${hint} ${LISTED}`];
    }
    const slip = slipOf(name, [...FAILURE_KINDS, ...this.#all]);
    if (slip !== undefined) return [`Unknown reason ${quoted(name)}.`, `Did you mean ${quoted(slip)}? ${LISTED}`];
    return this.#complete ? [`Unknown reason ${quoted(name)}.`, LISTED] : undefined;
  }

  #objectionToFamily(name: string): Objection | undefined {
    if (this.#families.includes(name)) return undefined;
    const form = isReason(name.slice(0, -2));
    if (form && name.indexOf('.') < name.length - 2) {
      return [
        `A family is the first word of a reason, so ${quoted(name)} would match nothing.`,
        `Write ${quoted(familyOf(name))}.`,
      ];
    }
    const like = form ? slipOf(name, this.#families) : likeName(name, this.#families);
    if (form && like === undefined && !this.#complete) return undefined;
    return [`No reason is of the family ${quoted(name)}.`, like && `Did you mean ${quoted(like)}?`];
  }

  #ours(family: string): boolean {
    return Object.keys(REASONS).some((reason) => familyOf(reason) === family);
  }
}

/** A family of one's own may look a little like one of ours: only a single edit is surely a slip. */
function slipOf(name: string, known: readonly string[]): string | undefined {
  return known.find((each) => Math.abs(each.length - name.length) <= 1 && editsBetween(name, each) <= 1);
}
