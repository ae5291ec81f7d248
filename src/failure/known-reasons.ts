import { editsBetween, likeName } from '../nearest.ts';
import { show } from '../show.ts';
import { ENGINE_REASONS, type EngineReasonInfo, familyOf, REASONS } from './classify/reasons.ts';
import { FAILURE_KINDS, isFamily, isKind } from './outcome.ts';

const ENGINE: Readonly<Record<string, EngineReasonInfo>> = ENGINE_REASONS;
const OURS: readonly string[] = [
  ...Object.keys(REASONS),
  ...Object.keys(ENGINE).filter((reason) => ENGINE[reason]?.answered),
];

/** Why a rule with this name can never apply, and what to write instead. */
export interface Objection {
  readonly message: string;
  readonly suggestion: string | undefined;
  /** Whether the name is certainly a typing error. Otherwise it may be the application's own reason, which is not listed. */
  readonly slip: boolean;
}

/** The reasons that rules may name: Holdfast's and those of the application. */
export class KnownReasons {
  /** Whether the application listed all of its own reasons. */
  readonly #complete: boolean;
  /** Advice for a reason of the application that looks like a typing error. */
  readonly #advice: string;
  readonly #all: readonly string[];
  readonly #families: readonly string[];

  constructor(own: readonly string[], complete: boolean, advice: string) {
    this.#complete = complete;
    this.#advice = advice;
    this.#all = [...OURS, ...own];
    this.#families = [...new Set(this.#all.map(familyOf))];
  }

  /** Every name that a rule may have. */
  get names(): readonly string[] {
    return [...FAILURE_KINDS, ...this.#all, ...this.#families];
  }

  /** Checks the name of a rule, which has the form of a reason or family. */
  objectionTo(name: string): Objection | undefined {
    if (isFamily(name)) return this.#objectionToFamily(name);
    if (isKind(name) || this.#all.includes(name)) return undefined;
    const message = `Unknown reason ${show(name)}.`;
    const status = /^http\.([345])\d\d$/.exec(name)?.[1];
    if (status !== undefined) {
      return {
        message: `There is no reason ${show(name)}.`,
        suggestion: `That status is 'http.${status}xx'. ${this.#advice}`,
        slip: true,
      };
    }
    const family = familyOf(name);
    if (OURS.some((reason) => familyOf(reason) === family)) {
      const like = likeName(name, this.#all);
      const others = this.#all.filter((each) => familyOf(each) === family);
      const hint = like === undefined ? `Of ${family} there are: ${others.join(', ')}.` : didYouMean(like);
      return { message, suggestion: `${hint} ${this.#advice}`, slip: like !== undefined };
    }
    const like = slipOf(name, [...FAILURE_KINDS, ...this.#all]);
    if (like !== undefined) return { message, suggestion: `${didYouMean(like)} ${this.#advice}`, slip: isLong(name) };
    return this.#complete ? { message, suggestion: this.#advice, slip: false } : undefined;
  }

  /** The same for a reason of a waiting or ended task. */
  objectionToEnd(name: string): Objection | undefined {
    return Object.hasOwn(ENGINE, name) || name === 'unique.*' ? undefined : this.objectionTo(name);
  }

  #objectionToFamily(name: string): Objection | undefined {
    if (this.#families.includes(name)) return undefined;
    const like = slipOf(name, this.#families);
    if (like === undefined && !this.#complete) return undefined;
    return {
      message: `There is no family ${show(name)} of reasons.`,
      suggestion: like && didYouMean(like),
      slip: like !== undefined && isLong(name),
    };
  }
}

/** Whether one different letter is surely a typing error. Short families often differ by one: `app.*` may be meant, not `api.*`. */
function isLong(name: string): boolean {
  return (name.split('.', 1)[0] as string).length >= 6;
}

function didYouMean(like: string): string {
  return `Did you mean ${show(like)}?`;
}

/** A known name that differs by at most one edit. With more edits, it may be a name of the application. */
function slipOf(name: string, known: readonly string[]): string | undefined {
  return known.find((each) => Math.abs(each.length - name.length) <= 1 && editsBetween(name, each) <= 1);
}

/** In code there is no list of the application's own reasons, so any name is allowed that does not resemble one of Holdfast's. */
const IN_CODE = new KnownReasons([], false, 'Give your own reason another name.');

/** What is wrong with the name of a rule in code, or with a reason of waiting or ended tasks. */
export function slipIn(name: string, of: 'rule' | 'end'): string | undefined {
  const objection = of === 'rule' ? IN_CODE.objectionTo(name) : IN_CODE.objectionToEnd(name);
  return objection?.slip ? `${objection.message} ${objection.suggestion}` : undefined;
}
