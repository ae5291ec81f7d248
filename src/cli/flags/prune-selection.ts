import { isFamily, isReason } from '../../failure/outcome.ts';
import { nearest } from '../../nearest.ts';
import { type KeepFor, keepFor, REMOVABLE_STATES, type RemovableState, type Retention } from '../../retention.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';
import { span } from './moment.ts';

export interface PruneFlags {
  readonly olderThan?: string;
  readonly state?: string;
  readonly reason?: string;
}

const NOTHING: Retention = { succeeded: {}, dead: {}, cancelled: {}, needs_manual: {} };

/**
 * What to remove: by the configured times or by one age, limited to states and reasons. Tasks that need a person are removed only if
 * a flag names their state or the configuration has a time for them.
 * @throws Problem for a flag that makes no sense.
 */
export function pruneSelection(flags: PruneFlags, configured: Retention): Retention {
  const states = flags.state === undefined ? undefined : statesIn(flags.state);
  const reasons = flags.reason === undefined ? undefined : reasonsIn(flags.reason);
  const age = flags.olderThan === undefined ? undefined : span(flags.olderThan, '--older-than');
  if (reasons && states?.includes('succeeded')) {
    throw usage('what succeeded has no reason, so --state succeeded and --reason are never both true');
  }
  const unnamed = REMOVABLE_STATES.filter((state) => age === undefined || state !== 'needs_manual');
  const chosen = (states ?? unnamed).filter((state) => !reasons || state !== 'succeeded');
  const selection = Object.fromEntries(
    chosen.map((state) => [state, timesOf(state, age === undefined ? configured : ofAge(state, age), reasons)]),
  );
  const kept = states?.find((state) => Object.values(selection[state] ?? {}).every((time) => time === 'never'));
  if (kept !== undefined) {
    const which = reasons ? `${kept} for ${reasons.map(visible).join(', ')}` : kept;
    throw usage(`the retention keeps tasks that are ${which} for ever`, {
      hints: ['to remove them, give an age: --older-than 90d'],
    });
  }
  return { ...NOTHING, ...selection };
}

function ofAge(state: RemovableState, age: number): Retention {
  return { ...NOTHING, [state]: { default: age } };
}

/** The times of a state. With reasons: only the times of these reasons and of the reasons in these families. */
function timesOf(
  state: RemovableState,
  retention: Retention,
  reasons: readonly string[] | undefined,
): Readonly<Record<string, KeepFor>> {
  if (!reasons) return retention[state];
  const times = new Map<string, KeepFor>();
  for (const reason of reasons) {
    const family = reason.endsWith('.*') ? reason.slice(0, -1) : undefined;
    for (const [name, time] of Object.entries(retention[state])) {
      if (family !== undefined && name.startsWith(family)) times.set(name, time);
    }
    times.set(reason, keepFor(retention, state, reason));
  }
  return Object.fromEntries(times);
}

function statesIn(text: string): readonly RemovableState[] {
  return wordsOf(text, '--state').map((word) => {
    if ((REMOVABLE_STATES as readonly string[]).includes(word)) return word as RemovableState;
    const [like] = nearest(word, REMOVABLE_STATES);
    throw usage(`--state ${visible(word)}: only ended tasks are removed`, {
      hints: [like === undefined ? `states: ${REMOVABLE_STATES.join(', ')}` : `did you mean "${like}"?`],
    });
  });
}

function reasonsIn(text: string): readonly string[] {
  return wordsOf(text, '--reason').map((word) => {
    if (isReason(word) || isFamily(word)) return word;
    throw usage(`--reason ${visible(word)} is no reason (fs.locked) and no family (fs.*)`);
  });
}

function wordsOf(text: string, flag: string): readonly string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.some((word) => word === '')) throw usage(`${flag} needs names, separated by commas`);
  return [...new Set(words)];
}
