import { FAILURE_VERBS, type FailureGroupState, type FailureVerb } from '../../src/failure/groups.ts';
import type { Act } from '../parts/act.tsx';
import { segment } from './address.ts';
import { post } from './api.ts';
import { commandFor } from './commands.ts';
import type { FailureGroupJson } from './documents.ts';

const HOUR = 3_600_000;

/** The failures of each of the last hours, the oldest first. */
export function hoursOf(
  { hours }: FailureGroupJson,
  now: number,
  count: number,
): readonly { readonly at: string; readonly count: number }[] {
  const last = now - (now % HOUR);
  const known = new Map(hours.map(({ at, count: failures }) => [Date.parse(at), failures]));
  return Array.from({ length: count }, (_, i) => {
    const at = last - (count - 1 - i) * HOUR;
    return { at: new Date(at).toISOString(), count: known.get(at) ?? 0 };
  });
}

/** `94 % (88 to 97 %)`: how many retries succeeded, and between which shares it truly lies. */
export function helpsWords({ retry_helps: helps }: FailureGroupJson): string | undefined {
  if (!helps) return undefined;
  const percent = (share: number) => Math.round(share * 100);
  return `${percent(helps.share)} % (${percent(helps.low)} to ${percent(helps.high)} %)`;
}

/** What a retry is worth, from the range in which its true share lies. */
export function adviceOf({ retry_helps: helps, kind }: FailureGroupJson): string {
  if (!helps) return kind === 'permanent' ? 'Failures of this kind are not retried.' : 'Nothing was retried yet.';
  if (helps.low > 0.5) return 'A retry mostly helps: wait, or redrive what is dead.';
  if (helps.high < 0.2) return 'A retry hardly ever helps: mend the cause first.';
  return 'Whether a retry helps is open: more retries will tell.';
}

const WORDS: Readonly<Record<FailureVerb, { readonly does: string; readonly means: string; readonly is: string }>> = {
  acknowledge: { does: 'Acknowledge', means: 'Somebody knows of it. It stays in the list.', is: 'acknowledged' },
  mute: { does: 'Mute', means: 'It does not matter: the list leaves it out.', is: 'muted' },
  resolve: { does: 'Resolve', means: 'It is mended. If it fails again, it is shown as regressed.', is: 'resolved' },
  reopen: { does: 'Reopen', means: 'What was said of it is taken back.', is: 'open' },
  note: { does: 'Note', means: 'It stands with the group for others. Nothing else changes.', is: 'noted' },
};

/** What can be said of a group in this state. */
export function verbsForGroup(state: FailureGroupState): readonly FailureVerb[] {
  const already: Readonly<Record<FailureGroupState, readonly FailureVerb[]>> = {
    open: ['reopen'],
    regressed: ['reopen'],
    acknowledged: ['acknowledge'],
    muted: ['mute'],
    resolved: ['resolve', 'acknowledge', 'mute'],
  };
  return FAILURE_VERBS.filter((verb) => !already[state].includes(verb));
}

/** `lasts`: how long a mute lasts, such as `24h`; empty: until it is reopened. */
export function actOnGroup(
  verb: FailureVerb,
  { id, message }: FailureGroupJson,
  again: () => void,
  lasts: () => string = () => '',
): Act {
  const { does, means, is } = WORDS[verb];
  return {
    title: `${does}: ${message.slice(0, 80)}`,
    words: means,
    does,
    note: verb === 'mute' || verb === 'note' ? 'required' : 'optional',
    command: commandFor('failures', verb, id),
    run: async (note) => {
      await post(`failures/${segment(id)}/${verb}`, {
        ...(note !== undefined && { note }),
        ...(lasts() !== '' && { for: lasts() }),
      });
      again();
      return `The group ${id} is ${is}${lasts() === '' ? '' : ` for ${lasts()}`}.`;
    },
  };
}
