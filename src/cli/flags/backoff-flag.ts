import { HoldfastError } from '../../errors.ts';
import { type Backoff, exponential, fixed, linear, none, schedule } from '../../failure/backoff.ts';
import { type Jitter, proportional } from '../../failure/jitter.ts';
import { visible } from '../../views/visible.ts';
import { Problem, usage } from '../problem.ts';

/** The delays between attempts, as `--backoff` says them. */
export interface Delays {
  readonly backoff: Backoff;
  readonly jitter: Jitter;
}

const BACKOFF_FORMS = [
  'exp:60s:x2:max=1h    60s, 2m, 4m … at most 1h (x2 and max=1h are the defaults)',
  'linear:30s:max=10m   30s, 1m, 1m30s …',
  'fixed:5m             always the same',
  'schedule:5m,15m,60m  one after the other; one attempt more than there are delays, unless --attempts says otherwise',
  'none                 no second attempt',
  'and :jitter=10%, :jitter=full or :jitter=equal at the end spreads them; without it they hold exactly',
];

/**
 * Reads `exp:60s:x2:max=1h`, `linear:…`, `fixed:…`, `schedule:…` or `none`.
 * @throws Problem with all forms, for anything else.
 */
export function parseBackoffFlag(text: string): Delays {
  const [kind = '', ...parts] = text.split(':');
  const options = new Map<string, string>();
  const values: string[] = [];
  for (const part of parts) {
    const [, key, value] = /^(max|jitter)=(.*)$/.exec(part) ?? [];
    const name = key ?? (/^x\d/.test(part) ? 'x' : undefined);
    if (name === undefined) values.push(part);
    else if (options.has(name)) throw refused(text, `"${visible(part)}" is given twice`);
    else options.set(name, value ?? part.slice(1));
  }
  try {
    return { backoff: backoffFrom(kind, values, options), jitter: jitterFrom(options.get('jitter')) };
  } catch (error) {
    if (error instanceof HoldfastError || error instanceof Problem) throw refused(text, error.message);
    throw error;
  }
}

function backoffFrom(kind: string, values: readonly string[], options: ReadonlyMap<string, string>): Backoff {
  const [first] = values;
  const known = FORMS[kind];
  if (!known) throw usage(`"${visible(kind)}" is none of ${Object.keys(FORMS).join(', ')}`);
  const foreign = [...options.keys()].find((name) => name !== 'jitter' && !known.options.includes(name));
  if (foreign !== undefined) throw usage(`${kind} takes no ${foreign === 'x' ? 'factor' : foreign}`);
  if (values.length !== known.values) {
    throw usage(known.values === 0 ? `${kind} takes no delay` : `${kind} takes one delay, got ${values.length}`);
  }
  const cap = options.has('max') ? { cap: options.get('max') as string } : {};
  const factor = options.has('x') ? { factor: Number(options.get('x')) } : {};
  return known.make(first ?? '', { ...cap, ...factor });
}

interface Form {
  readonly values: number;
  readonly options: readonly string[];
  readonly make: (value: string, options: { cap?: string; factor?: number }) => Backoff;
}

const EXPONENTIAL: Form = {
  values: 1,
  options: ['x', 'max'],
  make: (base, options) => exponential({ base, ...options }),
};

const FORMS: Readonly<Record<string, Form>> = {
  exp: EXPONENTIAL,
  exponential: EXPONENTIAL,
  linear: { values: 1, options: ['max'], make: (step, options) => linear({ step, ...options }) },
  fixed: { values: 1, options: [], make: (delay) => fixed(delay) },
  schedule: { values: 1, options: [], make: (delays) => schedule(delays.split(',')) },
  none: { values: 0, options: [], make: () => none },
};

function jitterFrom(text: string | undefined): Jitter {
  if (text === undefined || text === 'none') return { kind: 'none' };
  if (text === 'full' || text === 'equal') return { kind: text };
  const percent = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text)?.[1];
  if (percent === undefined)
    throw usage(`jitter is none, full, equal or a percentage such as 10%, got "${visible(text)}"`);
  return proportional(Number(percent) / 100);
}

function refused(text: string, why: string) {
  return usage(`--backoff ${visible(text)}: ${why}`, { hints: BACKOFF_FORMS });
}
