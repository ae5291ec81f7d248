import type { Act } from '../parts/act.tsx';
import { post } from './api.ts';
import { commandFor } from './commands.ts';
import type { RedriveJson } from './operating-documents.ts';

export type RedriveVerb = 'pause' | 'resume' | 'cancel';

/** What can be done with a redrive in its state. */
export function verbsOfRedrive({ state }: RedriveJson): readonly RedriveVerb[] {
  if (state === 'running') return ['pause', 'cancel'];
  return state === 'paused' ? ['resume', 'cancel'] : [];
}

const WORDS = {
  pause: { does: 'Pause', means: 'Nothing more is put back until it is resumed.', said: 'is paused' },
  resume: { does: 'Resume', means: 'It goes on where it was.', said: 'goes on' },
  cancel: {
    does: 'Cancel',
    means: 'It ends. What was put back stays so; the other tasks are left as they are.',
    said: 'is cancelled',
  },
} as const;

export function actOnRedrive(verb: RedriveVerb, { id, left }: RedriveJson): Act {
  const { does, means, said } = WORDS[verb];
  return {
    title: `${does} redrive ${id}?`,
    words: `${means} ${left.toLocaleString()} of its tasks are left.`,
    does: verb === 'cancel' ? 'End it' : does,
    isSevere: verb === 'cancel',
    command: commandFor('redrives', verb, id),
    run: async (note) => {
      await post(`redrives/${id}/${verb}`, note === undefined ? {} : { note });
      return `Redrive ${id} ${said}.`;
    },
  };
}
