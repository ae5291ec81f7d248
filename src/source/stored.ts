import { type Memory, NORMAL, WHY_A_PERSON } from './memory.ts';

/** The version of the format of stored memories. Other versions are not read. */
const VERSION = 1;

export function writeMemory(memory: Memory): string {
  return JSON.stringify({ v: VERSION, ...memory });
}

/**
 * Reads what `writeMemory` wrote. A damaged memory, or one of an unknown version, counts as that of a source in its normal state,
 * and the next observation removes it.
 */
export function readMemory(text: string): Memory {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return NORMAL;
  }
  if (!isStored(value)) return NORMAL;
  const { v: _, ...read } = value;
  return read;
}

type Check = (value: unknown) => boolean;

const amount: Check = (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const text: Check = (value) => typeof value === 'string';
const flag: Check = (value) => typeof value === 'boolean';

function one(...of: readonly unknown[]): Check {
  return (value) => of.includes(value);
}

function members(checks: Readonly<Record<string, Check>>, optional: Readonly<Record<string, Check>> = {}): Check {
  return (value) => {
    if (typeof value !== 'object' || value === null) return false;
    const of = value as Readonly<Record<string, unknown>>;
    return (
      Object.entries(checks).every(([name, check]) => check(of[name])) &&
      Object.entries(optional).every(([name, check]) => of[name] === undefined || check(of[name]))
    );
  };
}

const cause = members({ reason: text, message: text });
const refund = members({ task: amount, execution: amount });
const refunds: Check = (value) => Array.isArray(value) && value.every(refund);
const evidence = members(
  { events: amount, eventAgo: amount, lastAgo: amount, failed: refunds, last: cause },
  { firstAgo: amount },
);
const throttle = members({ ago: amount, ceiling: amount, floor: amount, answers: amount });
const ramp = members(
  { rate: amount, measured: amount, measuredAgo: amount, begunAgo: amount, free: flag },
  { throttle },
);
const shut = { sinceAgo: amount, shutFor: amount, heldFor: amount, failedProbes: amount, last: cause };

const PHASES: Readonly<Record<string, Check>> = {
  closed: members({}),
  probing: members({ ...shut, answeredProbes: amount }, { failedBefore: amount }),
  ramping: members({ ...shut, cause: one('breaker', 'rate_limit'), ramp }),
  needs_person: members({ why: one(...WHY_A_PERSON), sinceAgo: amount, last: cause }),
};

const phase: Check = (value) => {
  const name = (value as { readonly name?: unknown } | null)?.name;
  return typeof name === 'string' && Object.hasOwn(PHASES, name) && (PHASES[name] as Check)(value);
};

const quota = members({ perSecond: amount, resetsIn: amount });

const falseAlarms = members({ count: amount, ago: amount });

const memory = members({ v: one(VERSION), phase }, { evidence, permanent: evidence, quota, falseAlarms });

function isStored(value: unknown): value is Memory & { readonly v: number } {
  return memory(value);
}
