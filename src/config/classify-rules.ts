import type { DurationInput } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { type ClassifyRule, classifierFrom, type RuleMatch } from '../failure/classify/rules.ts';
import { FAILURE_KINDS, FAULTS, isReason } from '../failure/outcome.ts';
import { type Located, type Problems, quoted } from './problems.ts';
import { membersOf } from './retry.ts';
import {
  type Fields,
  field,
  fields,
  flag,
  type JsonSchema,
  name,
  oneOf,
  oneOrMore,
  type Shape,
  shown,
  spanOption,
} from './shapes.ts';
import type { Node } from './source.ts';

/** A rule and its place. */
export interface RuleBlock {
  readonly node: Node;
  readonly rule: ClassifyRule & { readonly when: RuleMatch };
}

/** A text or a number: both are compared as text. */
const CODE: Shape<string> = {
  schema: { type: ['string', 'integer'] },
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : undefined;
    if ((typeof value === 'string' && value !== '') || Number.isSafeInteger(value)) return String(value);
    problems.refuse(node, `A code must be a text or a whole number, got ${shown(node)}.`);
    return undefined;
  },
};

const STATUS: Shape<string> = {
  schema: {
    anyOf: [
      { type: 'integer', minimum: 300, maximum: 599 },
      { type: 'string', pattern: '^[345](\\d\\d|xx)$' },
    ],
  },
  read(node, problems) {
    const value = node.kind === 'scalar' ? String(node.value) : '';
    if (/^[345](?:\d\d|xx)$/.test(value)) return value;
    const wild = /^[345](?:\*|\*\*|XX|Xx|x|\d?x)$/.test(value) ? `Write '${value[0]}xx'.` : undefined;
    problems.refuse(
      node,
      `A status must be a number from 300 to 599, or '4xx' and the like, got ${shown(node)}.`,
      wild,
    );
    return undefined;
  },
};

const EXPRESSION: Shape<string> = {
  schema: { type: 'string', minLength: 1, maxLength: 1_024 },
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : undefined;
    if (typeof value !== 'string') {
      problems.refuse(
        node,
        `It must be a regular expression, got ${shown(node)}.`,
        node.source === '' ? undefined : `Put it in quotes: '${node.source}'.`,
      );
      return undefined;
    }
    const objection = objectionTo({ when: { message: value }, reason: 'unknown' });
    if (objection === undefined) return value;
    problems.refuse(node, objection.replace('rules[0].when.message', 'The regular expression'));
    return undefined;
  },
};

/** A reason: a lower-case slug. */
export const REASON: Shape<string> = {
  schema: { type: 'string', pattern: '^[a-z0-9]+([._-][a-z0-9]+)*$', maxLength: 64 },
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : undefined;
    if (isReason(value)) return value;
    const slug =
      typeof value === 'string'
        ? String(value)
            .toLowerCase()
            .replaceAll(/[^a-z0-9.]+/g, '_')
            .replaceAll(/^[._]+|[._]+$/g, '')
        : '';
    problems.refuse(
      node,
      `A reason is a lower-case slug such as order.closed, at most 64 characters, got ${shown(node)}.`,
      isReason(slug) ? `Write ${slug}.` : undefined,
    );
    return undefined;
  },
};

interface Match {
  readonly code: readonly string[];
  readonly status: readonly string[];
  readonly name: readonly string[];
  readonly message: string;
  readonly type: readonly string[];
}

const MATCH_FIELDS: Fields<Match> = {
  code: field(oneOrMore(CODE), "The error's `code`, or one of several.", {
    examples: ['ECONNRESET', ['40001', '40P01']],
  }),
  status: field(oneOrMore(STATUS), 'The HTTP status, or one of several.', { examples: [429, '5xx'] }),
  name: field(oneOrMore(name()), "The error's name or class, or one of several.", { examples: ['StripeCardError'] }),
  message: field(EXPRESSION, "An expression in RE2's syntax, searched in the message. (?i) ignores case.", {
    examples: ['(?i)try again later'],
  }),
  type: field(oneOrMore(name()), "The task's type, or one of several."),
};
const MATCH = fields<Match>('`when`', MATCH_FIELDS);

const RULE = fields<
  Omit<ClassifyRule, 'when' | 'retryAfter'> & { readonly when: Partial<Match>; readonly retryAfter?: DurationInput }
>(
  'A rule of `classify`',
  {
    name: field(name(), 'Its name in the evidence of failures. Default: its number.'),
    when: field(
      MATCH,
      'Which errors it matches. All parts must match the same error: the thrown one or one that it wraps.',
    ),
    reason: field(REASON, 'The reason of such a failure: one of Holdfast, or your own.', {
      examples: ['order.closed'],
    }),
    kind: field(oneOf(FAILURE_KINDS), 'Default: the usual kind of the reason, or unknown.'),
    fault: field(oneOf(FAULTS), 'Who is at fault. Default: the usual fault of the reason, or task.'),
    ambiguous: field(flag(), 'Whether the effect may have happened. Default: as usual for the reason, or false.'),
    retryAfter: field(
      spanOption(),
      'How long to wait, as if the other side had asked for it. Default: the wait that the error asks for.',
    ),
  },
  {
    instead: {
      // biome-ignore lint/suspicious/noThenProperty: nobody awaits a list of hints
      then: 'Write reason, kind and fault next to `when`.',
      if: "Did you mean 'when'?",
      match: "Did you mean 'when'?",
    },
  },
);

/** One rule of `classify:`. */
export const CLASSIFY_RULE: Shape<RuleBlock> = {
  schema: { ...RULE.schema, required: ['when', 'reason'] } satisfies JsonSchema,
  read(node, problems) {
    const read = RULE.read(node, problems);
    if (!read) return undefined;
    const { when, reason } = read;
    const said = new Map(membersOf(node).map((entry) => [entry.name, entry]));
    for (const key of ['when', 'reason']) {
      if (!said.has(key)) problems.refuse(node, `A rule of \`classify\` needs ${quoted(key)}.`);
    }
    if (!when || reason === undefined) return undefined;
    const about = said.get('when');
    if (about && membersOf(about.value).length === 0) {
      problems.refuse(
        about.at,
        `${Object.keys(MATCH_FIELDS).join(', ')}: \`when\` must name at least one, or the rule would match everything.`,
      );
    }
    if (Object.keys(when).length === 0) return undefined;
    const rule = { ...read, when, reason };
    const objection = objectionTo(rule);
    if (objection === undefined) return { node, rule };
    problems.refuse(node, objection.replaceAll('rules[0].', ''));
    return undefined;
  },
};

function objectionTo(rule: ClassifyRule): string | undefined {
  try {
    classifierFrom([rule]);
    return undefined;
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return error.message;
  }
}

const MOST_RULES = 500;

/** Refuses a rule after a rule that matches the same errors: it would never apply. */
export function refuseShadowed(blocks: readonly RuleBlock[], problems: Problems): void {
  const [, ...more] = blocks.slice(MOST_RULES - 1);
  if (more[0]) {
    problems.refuse(
      more[0].node,
      `There are ${blocks.length} rules; at most ${MOST_RULES} are allowed, because each error is compared with all of them.`,
    );
    return;
  }
  blocks.forEach(({ node, rule }, i) => {
    const earlier = blocks.slice(0, i).find((each) => covers(each.rule.when, rule.when));
    if (!earlier) return;
    const at: Located = membersOf(node).find((entry) => entry.name === 'when')?.at ?? node;
    problems.refuse(
      at,
      `This rule never applies: the rule in line ${earlier.node.line} comes first and matches the same errors.`,
      `Move it above line ${earlier.node.line}, or remove it.`,
    );
  });
}

function covers(wide: RuleMatch, narrow: RuleMatch): boolean {
  return Object.entries(wide).every(([key, value]) => {
    const other = narrow[key as keyof RuleMatch];
    if (other === undefined) return false;
    if (key === 'message') return value === other;
    const accepted = [value].flat().map(String);
    return [other]
      .flat()
      .every(
        (each) => accepted.includes(String(each)) || (key === 'status' && accepted.includes(`${String(each)[0]}xx`)),
      );
  });
}
