import { formatDuration, type Milliseconds } from '../duration.ts';
import type { Because } from '../failure/decide.ts';
import type { Failure } from '../failure/outcome.ts';
import { readStored } from '../stored-json.ts';

/**
 * A failure or an explanation in two parts. `shared` is JSON, and the same for many executions, so that a store can keep it once;
 * `own` is text that belongs to one execution.
 */
export interface SplitText {
  readonly shared: string;
  readonly own: string;
}

/** How many shared texts a store keeps at most. When it has these, it stores further ones with their executions. */
export const MOST_TEXTS = 10_000;

/** The own part is the message; if it wraps other errors, a list of its message and theirs as JSON. */
export function splitFailure(failure: Failure): SplitText {
  const { message, causes } = failure;
  if (!causes) return { shared: JSON.stringify({ ...failure, message: undefined }), own: message };
  const shared = { ...failure, message: undefined, causes: causes.map((inner) => ({ ...inner, message: undefined })) };
  return { shared: JSON.stringify(shared), own: JSON.stringify([message, ...causes.map((inner) => inner.message)]) };
}

export function joinFailure({ shared, own }: SplitText, unreadable: string[]): Failure | null {
  const failure = readStored<Failure | null>(shared, 'failure', unreadable, null);
  if (!failure?.causes) return failure && { ...failure, message: own };
  const [message = '', ...messages] = readStored<readonly string[]>(own, 'failure', unreadable, []);
  const causes = failure.causes.map((inner, i) => ({ ...inner, message: messages[i] ?? '' }));
  return { ...failure, message, causes };
}

/** A shared explanation: the delay between the two parts of its sentence is written when it is read. */
type SharedBecause = Omit<Because, 'text'> & { readonly text: readonly string[] };

/** The own part is the random number; empty if there is none. The delay of the decision is stored beside it anyway. */
export function splitBecause(because: Because, after: Milliseconds | null): SplitText {
  const { text, jitter } = because;
  const delay = after === null ? '' : formatDuration(after);
  const at = delay === '' ? -1 : text.indexOf(delay);
  const parts = at < 0 ? [text] : [text.slice(0, at), text.slice(at + delay.length)];
  return {
    shared: JSON.stringify({ ...because, text: parts, jitter: jitter && { ...jitter, roll: undefined } }),
    own: jitter ? String(jitter.roll) : '',
  };
}

export function joinBecause(
  { shared, own }: SplitText,
  after: Milliseconds | null,
  unreadable: string[],
): Because | undefined {
  const because = readStored<SharedBecause | null>(shared, 'because', unreadable, null);
  if (!because) return undefined;
  const { jitter } = because;
  const text = because.text.join(after === null ? '' : formatDuration(after));
  return { ...because, text, ...(jitter && { jitter: { ...jitter, roll: Number(own) } }) };
}
