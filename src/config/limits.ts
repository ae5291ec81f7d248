import { InvalidInputError } from '../errors.ts';
import { type Limits, type Pace, parsePace } from '../pace.ts';
import { field, fields, orNone, type Shape, shown, whole } from './shapes.ts';

const RATE = String.raw`^\s*\d{1,9}(\.\d{1,9})?\s*/\s*[\w.]{1,32}\s*$`;
const EXAMPLES = ['10/s', '100/m', '5000/h', '3/10s'];
const MOST_AT_ONCE = 1_000_000;

const RATE_TEXT: Shape<string> = {
  schema: { type: 'string', pattern: RATE, examples: EXAMPLES },
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : undefined;
    if (typeof value === 'string' && isRate(value)) return value;
    const bare = typeof value === 'number' ? `Write ${node.source}/s for so many a second.` : respelt(value);
    problems.refuse(node, `It must be a rate such as 10/s, 100/m, 5000/h or 3/10s, got ${shown(node)}.`, bare);
    return undefined;
  },
};

const WITH_BURST = fields<{ rate: string; burst: number }>('A pace', {
  rate: field(RATE_TEXT, 'How many executions may start in a time.', { examples: EXAMPLES }),
  burst: field(
    whole(1, MOST_AT_ONCE),
    'How many may start at once after a pause. Default: what starts in a tenth of a second, at least 1.',
  ),
});

const PACE: Shape<Pace> = {
  schema: { anyOf: [RATE_TEXT.schema, { ...WITH_BURST.schema, required: ['rate'] }] },
  read(node, problems) {
    if (node.kind !== 'map') {
      const rate = RATE_TEXT.read(node, problems);
      return rate === undefined ? undefined : parsePace(rate);
    }
    const { rate, burst } = WITH_BURST.read(node, problems) ?? {};
    if (rate !== undefined) return parsePace({ rate, ...(burst !== undefined && { burst }) });
    if (!node.entries.some(({ name }) => name === 'rate')) {
      problems.refuse(node, "A pace needs a 'rate'.", 'Write, for example, pace: { rate: 10/s, burst: 5 }.');
    }
    return undefined;
  },
};

/** The limits of a source or queue. `none` removes one that a program or an earlier file has set. */
export const LIMITS = {
  pace: field(orNone(PACE), 'How often executions may start, over all workers. `none`: no limit.', {
    examples: [...EXAMPLES, { rate: '10/s', burst: 5 }],
  }),
  concurrency: field(
    orNone(whole(1, 100_000)),
    'How many may run at the same time, over all workers. `none`: no limit.',
  ),
} as const;

/** Limits as a file has them. */
export interface LimitsBlock {
  readonly pace: Pace | 'none';
  readonly concurrency: number | 'none';
}

/** The same in the form of code. */
export function limitsOf({ pace, concurrency }: Partial<LimitsBlock>): Limits {
  return {
    ...(pace !== undefined && { pace: pace === 'none' ? null : pace }),
    ...(concurrency !== undefined && { concurrency: concurrency === 'none' ? null : concurrency }),
  };
}

/** Names under which people look for these limits. */
export const LIMITS_INSTEAD = {
  rate: "Did you mean 'pace'?",
  limits: 'Write pace: 10/s or concurrency: 4.',
  limit: 'Write pace: 10/s or concurrency: 4.',
  maxConcurrency: "Did you mean 'concurrency'?",
} as const;

function isRate(text: string): boolean {
  try {
    parsePace(text);
    return true;
  } catch (error) {
    if (error instanceof InvalidInputError) return false;
    throw error;
  }
}

const WORDS: Readonly<Record<string, string>> = { sec: 's', second: 's', min: 'm', minute: 'm', hour: 'h', day: 'd' };

/** The valid spelling of `10/sec`, `10 per minute` and `5000/hour`. */
function respelt(value: unknown): string | undefined {
  const [, amount, word = ''] = /^\s*(\d+(?:\.\d+)?)\s*(?:\/|per|an?)\s*([a-z]+?)s?\s*$/i.exec(String(value)) ?? [];
  const unit = Object.hasOwn(WORDS, word.toLowerCase()) ? WORDS[word.toLowerCase()] : undefined;
  return amount === undefined || unit === undefined ? undefined : `Write ${amount}/${unit}.`;
}
