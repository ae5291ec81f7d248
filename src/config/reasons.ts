import { KnownReasons } from '../failure/known-reasons.ts';
import { isFamily, isReason } from '../failure/outcome.ts';
import { likeName } from '../nearest.ts';
import { type Located, type Problems, quoted } from './problems.ts';
import { membersOf, type RetryBlock } from './retry.ts';

/** The reasons that a file may name: Holdfast's own, those of its `classify` rules, and those under `reasons:`. */
export class ReasonsOfFile {
  readonly #known: KnownReasons;

  constructor(byRules: readonly string[], listed: readonly string[] | undefined) {
    const own = [...new Set([...byRules, ...(listed ?? [])])];
    this.#known = new KnownReasons(own, listed !== undefined, 'List your own reasons under `reasons:`.');
  }

  /** Refuses rules that no failure can match. */
  check({ node }: RetryBlock, problems: Problems): void {
    const rules = membersOf(node).find((entry) => entry.name === 'rules');
    for (const { name, at } of rules ? membersOf(rules.value) : []) {
      if (problems.full) return;
      if (isReason(name) || isFamily(name)) refuse(this.#known.objectionTo(name), at, problems);
      else this.#refuseForm(name, at, problems);
    }
  }

  /** Refuses the name of a reason or family that no ended task can have. */
  checkName(name: string, at: Located, problems: Problems): void {
    refuse(this.#known.objectionToEnd(name), at, problems);
  }

  #refuseForm(name: string, at: Located, problems: Problems): void {
    if (/^[^.]+\..+\.\*$/.test(name) && isReason(name.slice(0, -2))) {
      const what = `A family is the first word of a reason, so ${quoted(name)} would match nothing.`;
      problems.refuse(at, what, `Write ${quoted(`${name.split('.', 1)[0]}.*`)}.`);
      return;
    }
    const like = likeName(name, this.#known.names);
    const aCode = /^[A-Z][A-Z0-9_]+$/.test(name) ? 'Write a rule for that error code under `classify:`.' : undefined;
    problems.refuse(
      at,
      `A rule is named by a reason (fs.locked), a family (fs.*) or a kind (transient), got ${quoted(name)}.`,
      like === undefined ? aCode : `Did you mean ${quoted(like)}?`,
    );
  }
}

function refuse(objection: ReturnType<KnownReasons['objectionTo']>, at: Located, problems: Problems): void {
  if (objection) problems.refuse(at, objection.message, objection.suggestion);
}
