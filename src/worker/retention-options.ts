import { type DurationInput, duration } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { slipIn } from '../failure/known-reasons.ts';
import { isFamily, isReason } from '../failure/outcome.ts';
import { refuseNoRecord, refuseUnknown } from '../options.ts';
import { type KeepFor, REMOVABLE_STATES, type RemovableState, type Retention } from '../retention.ts';
import { show } from '../show.ts';

/** How long tasks are kept, or `never` to keep them. */
export type KeepForInput = DurationInput | 'never';

/**
 * When tasks that ended or need a person are removed, with everything that belongs to them: by state, and within a state by
 * reason (`fs.locked`) or family of reasons (`fs.*`), else by its `default`. What is left out has its default: 30 days, and
 * `needs_manual` never.
 */
export type RetentionOptions = {
  /** Succeeded tasks have no reason. */
  readonly succeeded?: KeepForInput;
} & {
  readonly [State in Exclude<RemovableState, 'succeeded'>]?: KeepForInput | Readonly<Record<string, KeepForInput>>;
};

const THIRTY_DAYS = 30 * 86_400_000;

/** The default retention. */
const DEFAULT_RETENTION: Retention = {
  succeeded: { default: THIRTY_DAYS },
  dead: { default: THIRTY_DAYS },
  cancelled: { default: THIRTY_DAYS },
  needs_manual: { default: 'never' },
};

/**
 * Reads a retention over the default one.
 * @throws InvalidInputError naming the state or reason, and showing the value.
 */
export function parseRetention(given: RetentionOptions = {}): Retention {
  refuseUnknown(given, REMOVABLE_STATES, 'retention');
  const read = REMOVABLE_STATES.map((state) => {
    const said = given[state];
    return [state, { ...DEFAULT_RETENTION[state], ...(said !== undefined && times(state, said)) }];
  });
  return Object.fromEntries(read);
}

/**
 * Refuses a retention in code that misspells a reason.
 * @throws InvalidInputError like `parseRetention`, and with a suggestion for the reason.
 */
export function refuseRetention(given: RetentionOptions | undefined): void {
  parseRetention(given);
  for (const [state, times] of Object.entries(given ?? {})) {
    if (typeof times !== 'object') continue;
    for (const reason of Object.keys(times)) {
      const slip = reason === 'default' ? undefined : slipIn(reason, 'end');
      if (slip !== undefined) throw new InvalidInputError(`retention.${state}: ${slip}`);
    }
  }
}

function times(state: RemovableState, said: NonNullable<RetentionOptions['dead']>): Readonly<Record<string, KeepFor>> {
  if (typeof said !== 'object') return { default: keptFor(said, `retention.${state}`) };
  if (state === 'succeeded') {
    throw new InvalidInputError(
      `retention.succeeded must be a time, for what succeeded has no reason, got ${show(said)}.`,
    );
  }
  refuseNoRecord(said, `retention.${state}`);
  return Object.fromEntries(
    Object.entries(said).map(([reason, time]) => {
      // `default` has the form of a reason.
      if (!isReason(reason) && !isFamily(reason)) {
        throw new InvalidInputError(
          `retention.${state} is by reason ('fs.locked'), family ('fs.*') or 'default', got ${show(reason)}.`,
        );
      }
      return [reason, keptFor(time, `retention.${state}['${reason}']`)];
    }),
  );
}

function keptFor(value: KeepForInput, what: string): KeepFor {
  return value === 'never' ? value : duration(value, what);
}
