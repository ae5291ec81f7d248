// How cases are written down. What is expected is argued from what happened on the wire, which the case's name tells:
// `kind reason fault`, then `ambiguous` where the effect may have happened, then `after 30s` where the peer asked for a wait.
// Where the object does not hold enough to tell, or authorities differ, several are accepted, with ` | ` between them.

/** The cases of one library: name of what happens, what to expect, and how to provoke it. */
export function library(name, ...cases) {
  return {
    name,
    cases: cases
      .filter((each) => each !== undefined)
      .map(([what, expected, provoke]) => ({ what, expected: expected.split(' | ').map(parsed), provoke })),
  };
}

function parsed(text) {
  const [, kind, reason, fault, ambiguous, seconds] =
    /^(\S+) (\S+) (task|source|quota|worker)( ambiguous)?(?: after (\d+(?:\.\d+)?)s)?$/.exec(text) ?? [];
  if (kind === undefined) throw new TypeError(`not an expectation: ${text}`);
  return {
    kind,
    reason,
    fault,
    ambiguous: ambiguous !== undefined,
    ...(seconds !== undefined && { retryAfterMs: Number(seconds) * 1_000 }),
  };
}

/** The same happenings for many libraries, each of which may know less of one: `{ name: [expected, provoke(call, on)] }`. */
export function each(name, call, happenings, otherwise = {}) {
  const cases = Object.entries(happenings)
    .filter(([what]) => otherwise[what] !== null)
    .map(([what, [expected, provoke]]) => [what, otherwise[what] ?? expected, (on) => provoke(call, on)]);
  return (...more) => library(name, ...cases, ...more);
}

/** Callbacks and events as a promise that fails as they do. */
export function failed(start) {
  return new Promise((resolve, reject) => start((error, value) => (error ? reject(error) : resolve(value))));
}

export function eventError(emitter, event = 'error') {
  return new Promise((_resolve, reject) => emitter.once(event, reject));
}
