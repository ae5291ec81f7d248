import type { Answer } from './meaning.ts';

/** A status, an expression for the message, and what both together mean. */
type Row = readonly [status: number, words: RegExp, answer: Answer];

/**
 * What a status means if only the message of the service tells: one table per service. Messages that many services share are in
 * `http.ts`.
 */
const SERVICES: Readonly<Record<string, readonly Row[]>> = {
  anthropic: [
    [400, /\breached your specified (?:\w+ )?(?:api )?usage limits\b/i, 'quota.exhausted rate_limited'],
    [400, /\bcredit balance is too low\b/i, 'quota.exhausted'],
    [400, /\bprompt is too long\b/i, 'too_large'],
  ],
  binance: [[418, /\bbanned\b|\btoo many requests\b/i, 'throttled']],
  deepl: [[456, /./, 'quota.exhausted rate_limited']],
  github: [
    [405, /\bbase branch was modified\b|\bmerge already in progress\b/i, 'conflict transient'],
    // GitHub computes later whether it can be merged, and a person may still approve it.
    [405, /\bnot mergeable\b|\brequired status check|\bapproving review/i, 'conflict unknown'],
    [422, /\bwas submitted too quickly\b/i, 'throttled'],
  ],
  gitlab: [[406, /\bbranch cannot be merged\b/i, 'conflict unknown']],
  gemini: [[400, /\binput token count .{1,40}exceeds the maximum\b/i, 'too_large']],
  instagram: [[400, /\bwait a few minutes before you try again\b/i, 'throttled']],
  lark: [[400, /\brequest trigger frequency limit\b/i, 'throttled']],
  meta: [[400, /\b(?:application|user) request limit reached\b/i, 'throttled']],
  qualys: [[409, /\bcannot be run again until\b|\brate limit|\bconcurren(?:t|cy) limit/i, 'throttled']],
  sendgrid: [[401, /\bmaximum credits exceeded\b/i, 'quota.exhausted']],
  twitter: [
    [403, /\bover (?:the )?daily [\w ]{1,30}limit\b/i, 'quota.exhausted rate_limited'],
    [403, /\bstatus is a duplicate\b/i, 'conflict'],
  ],
  xai: [[403, /\bused all available credits\b|\bmonthly spending limit\b/i, 'quota.exhausted']],
  zoho: [[400, /\bmade too many requests continuously\b|\bblocked for some time\b/i, 'throttled']],
};

const ROWS = Object.values(SERVICES).flat();
const STATUSES = new Set(ROWS.map(([status]) => status));

/** What a status means together with the message, if a service is known to send both. */
export function byServiceWords(status: number, words: () => string): Answer | undefined {
  if (!STATUSES.has(status)) return undefined;
  return ROWS.find((row) => row[0] === status && row[1].test(words()))?.[2];
}
