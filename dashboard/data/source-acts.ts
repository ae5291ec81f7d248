import { plural } from '../../src/views/plural.ts';
import { visible } from '../../src/views/visible.ts';
import type { Act } from '../parts/act.tsx';
import { segment } from './address.ts';
import { post } from './api.ts';
import { commandFor } from './commands.ts';
import type { SourceJson } from './operating-documents.ts';

export type SourceVerb = 'hold' | 'release' | 'probe';

/** What can be done with a source in its state. */
export function verbsOfSource({ state }: SourceJson): readonly SourceVerb[] {
  switch (state) {
    case 'held':
      return ['release'];
    case 'down':
    case 'asked_to_wait':
      return ['probe', 'release', 'hold'];
    case 'probing':
    case 'needs_person':
      return ['release', 'hold'];
    default:
      return ['hold'];
  }
}

export function actOnSource(verb: 'release' | 'probe', source: SourceJson): Act {
  const { name, ready } = source;
  const waits = plural(ready, 'ready task waits', 'ready tasks wait');
  const parts = {
    release: {
      title: `Release ${visible(name)}?`,
      words: `${waits}. ${afterRelease(source)}`,
      does: 'Release',
      said: 'is released',
    },
    probe: {
      title: `Test ${visible(name)} now?`,
      words: `Its next task starts at once, alone. If it fails, the source stays down and the task is not charged. ${waits}.`,
      does: 'Probe now',
      said: 'is tested with its next task',
    },
  }[verb];
  return {
    title: parts.title,
    words: parts.words,
    does: parts.does,
    command: commandFor('sources', verb, name),
    run: async (note) => {
      await post(`sources/${segment(name)}/${verb}`, note === undefined ? {} : { note });
      return `${visible(name)} ${parts.said}.`;
    },
  };
}

function afterRelease({ state }: SourceJson): string {
  if (state === 'held') return 'They go on in the order of their queues.';
  if (state === 'needs_person') return 'It is tested first, with one task at a time.';
  return 'They are released slowly at first.';
}

export const NO_END = '';

/** A hold with its end. */
export function holdSource({ name, running }: SourceJson, ends: () => string): Act {
  return {
    title: `Hold ${visible(name)}?`,
    does: 'Hold',
    isSevere: true,
    command: commandFor('sources', 'hold', name),
    run: async (note) => {
      const time = ends();
      await post(`sources/${segment(name)}/hold`, {
        ...(note !== undefined && { note }),
        ...(time !== NO_END && { for: time }),
      });
      const goesOn = running > 0 ? ` ${plural(running, 'running task goes', 'running tasks go')} on.` : '';
      return `${visible(name)} is held.${goesOn}`;
    },
  };
}
